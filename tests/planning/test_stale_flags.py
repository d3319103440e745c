"""Partitioned tables of Open Protocol: columns with the flags of others that had their names (wire.md 8.4)."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from one_table import NAME, STATE, block_reason, ddl, definition, plan, planning_input, quarantined
from planned_rows import as_defined
from test_recorded_rows import OF_DDLS, assert_rows

from ticdc_codec.event import RowChange, events_of
from ticdc_codec.open_protocol.frame import VERSION, framed, texts_of
from ticdc_codec.open_protocol.value import quoted
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows, MergeRows
from ticdc_lakehouse.planning.window import BatchRange, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.policy import Mode
from ticdc_testkit.recorded_streams import RecordedStream

OPEN = GoldConfig(feed="f", time_zone="UTC", traits=ProtocolTraits(flags_may_be_stale=True))
PARTITIONED = "PARTITION BY HASH (id) PARTITIONS 2"
BINARY, NULLABLE = 1, 64
ID = {"t": 8, "h": True, "f": 11, "v": 1}
TEXTS = [
    "12", "", "\\", "C:\\dir", "a\\nb", "a\\\\b", "say \"hi\"", "two\nlines", "naïve 😀", "no\u00a0break", "\\u00e9",
    "\\u00a0", "\\u00ad é", "\\x41", "\\xff", "\\x07", "\\xc3\\xa9", "\u200b", "\0", "\x7f", "\\x7f", "c3a9",
    "\\ud800", "\\U0001f600", "\U0001fae8 \\t",
]  # fmt: skip
BYTES = [b"", b"ab", b"\0\xff", b"\\", b"C:\\dir", b'\n"', "é\u00a0\u200b".encode(), bytes(range(256)), b"\xc3", b"00"]


def row(commit_ts: int, cell: dict[str, Any], *, partition: bool = True) -> RowChange:
    """A row that the decoder of Open Protocol makes of ``cell`` in column v."""
    return event_of(commit_ts, {"id": ID, "v": cell}, **({"ptn": 7} if partition else {}))


def event_of(commit_ts: int, cells: dict[str, Any], **members: int) -> RowChange:
    """The INSERT that the decoder of Open Protocol makes of these cells. ``members``: more of the message's key."""
    head = {"ts": commit_ts, "scm": "d", "tbl": "t", "t": 1} | members
    texts = [json.dumps(part, ensure_ascii=False).encode() for part in (head, {"u": cells})]
    batch = Decoder("open_protocol", sink_options("open_protocol", {})).decode(
        [VERSION + framed(texts[:1])], [framed(texts[1:])]
    )
    ((_, event),) = events_of(batch)
    assert isinstance(event, RowChange), event
    return event


def group(change: RowChange) -> RowGroup:
    at = change.commit_ts or 0
    return RowGroup(
        name=NAME, columns=change.columns, is_upsert=True, handle_only=False, keyed=True, first=at, last=at, rows=1
    )


def planned(kind: str, alter: str, *rows: RowChange, partitioning: str = PARTITIONED) -> TablePlan:
    """The plan of a table that had a column v of this kind and is altered at 14."""
    known = definition(sql=f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, v {kind}) {partitioning}")
    groups = map(group, rows)
    return plan(planning_input(*groups, ddls=(ddl(14, alter),), known=known, state=STATE, config=OPEN))


def value(kind: str, data: str | bytes, flags: int) -> dict[str, Any]:
    """The cell that ticdc writes of a value: it goes by the column, and the flags may be another's."""
    data_bytes = data.encode() if isinstance(data, str) else data
    name = kind.partition("(")[0].lower()
    if name in ("text", "blob"):
        return {"t": 252, "f": flags, "v": base64.b64encode(data_bytes).decode()}
    text = data if isinstance(data, str) else quoted(data)
    return {"t": 254 if name in ("char", "binary") else 15, "f": flags, "v": text}


NUMBER = {"t": 3, "f": BINARY | NULLABLE, "v": 12}
MOMENT = {"t": 12, "f": BINARY | NULLABLE, "v": "2024-01-01 00:00:00"}
MODIFIED = [
    ("INT", NUMBER, "VARCHAR(40)"),
    ("INT", NUMBER, "CHAR(40)"),
    ("DATETIME", MOMENT, "TEXT"),
    ("VARBINARY(40)", value("VARBINARY", b"\0", 65), "VARCHAR(40)"),
    ("BLOB", value("BLOB", b"\xff", 65), "TEXT"),
    ("VARCHAR(40)", value("VARCHAR", "a", 64), "VARBINARY(300)"),
    ("CHAR(40)", value("CHAR", "a", 64), "BINARY(255)"),
    ("TEXT", value("TEXT", "a", 64), "BLOB"),
]


@pytest.mark.parametrize(("before", "old", "after"), MODIFIED)
def test_a_column_that_keeps_the_flags_of_its_former_type_has_its_values(
    before: str, old: dict[str, Any], after: str
) -> None:
    values: list[str | bytes] = [*(BYTES if "B" in after else TEXTS)]
    rows = [row(16, value(after, data, old["f"])) for data in values]
    made = planned(before, f"ALTER TABLE t MODIFY COLUMN v {after}", row(12, old), *rows)
    merge = made.steps[-1]
    assert block_reason(made) is None
    assert [type(step) for step in made.steps] == [MergeRows, AlterRows, MergeRows]
    assert isinstance(merge, MergeRows)
    assert merge.misread.keys() == {"v"}
    found = [(as_defined(merge.table, change).after or {})["v"] for change in rows]
    assert found == [data if isinstance(data, str) else data.hex() for data in values]


@pytest.mark.parametrize(("kind", "data", "flags"), [("VARCHAR(40)", "\\n", 64), ("VARBINARY(40)", b"\n", 65)])
def test_right_flags_of_a_partition_need_no_definition(kind: str, data: str | bytes, flags: int) -> None:
    change = row(16, value(kind, data, flags))
    made = planned(kind, "ALTER TABLE t ADD INDEX (v)", change)
    assert isinstance(made.steps[0], MergeRows)
    assert (block_reason(made), made.steps[0].misread, made.steps[0].wire_keys) == (None, {}, True)
    assert (change.after or {})["v"] == ("\\n" if isinstance(data, str) else "0a")
    assert change.columns[1].defect is None


def test_a_key_with_stale_flags_is_made_from_the_definition() -> None:
    key = row(16, value("VARCHAR", "a\\nb", 65) | {"h": True})
    known = definition(sql=f"CREATE TABLE d.t (id BIGINT, v VARCHAR(40), PRIMARY KEY (id, v)) {PARTITIONED}")
    made = plan(planning_input(group(key), known=known, state=STATE, config=OPEN))
    (merge,) = made.steps
    assert isinstance(merge, MergeRows)
    assert (block_reason(made), merge.misread, merge.wire_keys) == (None, {"v": {"varbinary"}}, False)


def test_a_block_by_stale_flags_says_what_ends_them() -> None:
    """Without partitions, too, a node may keep flags: of two changefeeds, or of a table that moved away and back."""
    sent = row(16, value("VARCHAR", "x", 65), partition=False)
    made = planned("INT", "ALTER TABLE t MODIFY v VARCHAR(20)", sent, partitioning="")
    assert "rows have varbinary, perhaps by flags from before a DDL (restart" in (block_reason(made) or "")


@pytest.mark.parametrize("sql", ["id BIGINT NOT NULL", "id BIGINT NOT NULL, u INT UNIQUE"])
def test_the_flag_of_a_dropped_key_names_no_rows(sql: str) -> None:
    """With force-replicate ticdc sends tables without a key, and their flags may be from before DROP PRIMARY KEY."""
    cells = {"id": {"t": 8, "f": 11, "v": 1}, "u": {"t": 3, "f": 81, "v": 2}, "v": {"t": 15, "f": 64, "v": "x"}}
    sent = event_of(16, {name: cell for name, cell in cells.items() if f"{name} " in f"{sql}, v "})
    assert (sent.handle_key, [column.name for column in sent.columns if column.key]) == ('["1"]', ["id"])
    known = definition(sql=f"CREATE TABLE d.t ({sql}, v VARCHAR(9), PRIMARY KEY (id) NONCLUSTERED)")
    drop = ddl(14, "ALTER TABLE t DROP PRIMARY KEY")
    made = plan(planning_input(group(sent), ddls=(drop,), known=known, state=STATE, config=OPEN))
    assert "name id as the handle key of its rows, its definition has none" in str(made.stop)
    assert made.through == 15


def test_a_table_that_only_rows_define_has_no_key_by_a_flag_alone() -> None:
    sent = event_of(16, {"id": {"t": 8, "f": 11, "v": 1}, "v": {"t": 15, "f": 64, "v": "x"}})
    config = replace(OPEN, options=sink_options("open_protocol", {}))
    made = plan(planning_input(group(sent), config=config))
    assert "set the feed's option open-flags" in (block_reason(made) or "")


@pytest.mark.parametrize("batches", [None, BatchRange(after=3, through=5)])
def test_rows_that_are_read_again_may_declare_any_type(batches: BatchRange | None) -> None:
    """A replay reads the other changes of its keys, too, and in mode eventual all rows: of earlier windows."""
    replayed = replace(group(row(8, value("VARCHAR", "C:\\dir", 65))), replayed=True)
    known = definition(sql=f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(40)) {PARTITIONED}")
    config = OPEN if batches is None else replace(OPEN, mode=Mode.EVENTUAL)
    made = plan(replace(planning_input(replayed, known=known, state=STATE, config=config), batches=batches))
    (merge,) = made.steps
    assert isinstance(merge, MergeRows)
    earlier = row(9, value("VARCHAR", "12", 65))
    assert earlier.columns[1].type in merge.misread["v"]
    assert (as_defined(merge.table, earlier).after or {})["v"] == "12"


def test_a_table_that_was_blocked_reads_rows_of_any_type_again() -> None:
    """In mode eventual it merges the rows of all batches, whose types no row group has."""
    known = definition(sql=f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(40)) {PARTITIONED}")
    now = planning_input(
        group(row(16, value("VARCHAR", "a", 64))),
        known=known,
        state=replace(STATE, stop=quarantined(10).stop),
        config=replace(OPEN, mode=Mode.EVENTUAL),
    )
    (merge,) = plan(replace(now, batches=BatchRange(after=3, through=5))).steps
    assert isinstance(merge, MergeRows)
    earlier = row(9, value("VARCHAR", "12", 65))
    assert earlier.columns[1].type in merge.misread["v"]
    assert (as_defined(merge.table, earlier).after or {})["v"] == "12"


def test_rows_of_a_table_without_partitions_that_are_read_again_may_declare_bytes_as_a_text() -> None:
    """Their flags may be missing, but are no other column's."""
    change = row(8, value("VARBINARY", b"ab", 0), partition=False)
    known = definition(sql="CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARBINARY(40), w VARCHAR(40))")
    columns = (*change.columns, replace(change.columns[1], name="w", flags=64))
    replayed = replace(group(change), columns=columns, replayed=True)
    (merge,) = plan(planning_input(replayed, known=known, state=STATE, config=OPEN)).steps
    assert isinstance(merge, MergeRows)
    assert merge.misread.keys() == {"v"}


@pytest.mark.parametrize(("kind", "data", "flags"), [("VARCHAR(40)", "a", 65), ("VARBINARY(40)", b"a", 64)])
def test_flags_of_a_table_without_partitions_count(kind: str, data: str | bytes, flags: int) -> None:
    change = row(16, value(kind, data, flags), partition=False)
    made = planned(kind, "ALTER TABLE t ADD INDEX (v)", change, partitioning="")
    assert "column v is" in (block_reason(made) or "")


def test_a_text_under_a_binary_flag_is_refused_without_a_definition() -> None:
    """The other columns' flags are stale, too."""
    made = plan(planning_input(group(row(16, value("VARCHAR", "C:\\dir", 65))), config=OPEN))
    assert "open-flags" in (block_reason(made) or "")


NAMES = {"1": "a\\nb", "2": "y", "3": 'C:\\dir "é"'}
"""Texts in place of the names x, y and z. y is a default of the recorded columns."""
ENUM = re.compile(r'"t":247,"f":(\d+),"v":(\d|null)')


def with_texts_for_enums(stream: RecordedStream, folder: Path) -> RecordedStream:
    """The stream with a VARCHAR in place of each ENUM. One was added to a partitioned table with the flags of a DOUBLE
    and a BIGINT UNSIGNED of its name, and renamed to the name of an INT."""
    folder.mkdir()
    rewritten = {stream.file: message, "answers.jsonl.gz": answer}
    for path in stream.folder.iterdir():
        if path.name in rewritten:
            with gzip.open(path, "rt") as lines, gzip.open(folder / path.name, "wt", compresslevel=1) as out:
                out.writelines(json.dumps(rewritten[path.name](json.loads(line))) + "\n" for line in lines)
        elif path.name == "stream.json":
            (folder / path.name).write_bytes(path.read_bytes())
    return replace(stream, folder=folder)


def message(line: dict[str, Any]) -> dict[str, Any]:
    texts = texts_of(base64.b64decode(line["value"]))
    return line | {"value": base64.b64encode(framed([with_text(text.decode()).encode() for text in texts])).decode()}


def with_text(json_text: str) -> str:
    """An event's JSON, a row's or a DDL's."""
    renamed = json_text.replace("ENUM('x','y','z')", "VARCHAR(40)")
    return ENUM.sub(lambda cell: f'"t":15,"f":{cell[1]},"v":{json.dumps(NAMES.get(cell[2]))}', renamed)


def answer(line: dict[str, Any]) -> dict[str, Any]:
    for table in line["tables"].values():
        for at, column in enumerate(table["columns"]):
            if column["type"] == "enum('x','y','z')":
                column["type"] = "varchar(40)"
                for cells in table["rows"]:
                    cells[at] = cells[at] and NAMES[str(cells[at]["index"])]
    return line


def test_an_enum_with_stale_flags_of_a_recorded_stream_may_be_a_text(tmp_path: Path) -> None:
    (stream,) = (stream for stream in OF_DDLS if str(stream) == "ticdc-ddl/open_protocol.jsonl.gz")
    assert_rows(with_texts_for_enums(stream, tmp_path / "texts"), seed=4)
