"""Simple in JSON and Avro against the bytes of both of TiCDC's encoders, and what is written against what was read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from content import content_of
from vectors import FOLDER, Case, as_expected, cases, differing, header, stored_of

from ticdc_codec.batch import DecoderContext
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import (
    Bootstrap,
    Column,
    Ddl,
    Event,
    Failure,
    Layout,
    Resolved,
    RowChange,
    columns_text,
    events_of,
)
from ticdc_codec.message import Message
from ticdc_codec.options import LargeMessage, SinkOptions, sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.simple import encode
from ticdc_codec.simple.decode import pattern_of
from ticdc_codec.simple.schema import Schemas

DEFECTS = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("tiflow-simple-*-defect.jsonl.gz"))
FILES = sorted({path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*-simple-*.jsonl.gz")} - set(DEFECTS))
PAIRS = [(file, file.replace("-json", "-avro")) for file in FILES if "-json" in file]


def options_of(file: str) -> SinkOptions:
    return sink_options("simple", header(file)["options"] | {"time-zone": header(file)["time_zone"]})


WRITTEN = [
    file
    for file in FILES
    if not file.startswith("ticdc-simple-avro") or file.endswith(("claim-check", "handle-key-only"))
]


def decode(values: list[bytes | None], options: SinkOptions, context: DecoderContext | None = None) -> list[Event]:
    batch = Decoder("simple", options, context or DecoderContext()).decode([None] * len(values), values)
    return [event for _, event in events_of(batch)]


@cache
def decoded(file: str) -> dict[str, list[Event]]:
    """The events of each case, decoded alone."""
    options = options_of(file)
    return {case.name: decode(case.values, options, DecoderContext(objects=stored_of(case))) for case in cases(file)}


def carried(expected: dict[str, Any]) -> dict[str, Any]:
    """What this wire tells of an expected event: of a DDL's type, a word; a checksum is no part of an event."""
    return {name: value for name, value in expected.items() if name not in ("type", "checksum")}


def test_all_files_are_here() -> None:
    assert len(FILES) == 24
    assert sum(len(cases(file)) for file in FILES) == 3929
    assert len(DEFECTS) == 2


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.startswith("ticdc-simple-json") and "snappy" not in file]
)
def test_the_start_of_a_transaction_changes_nothing(file: str) -> None:
    """The vectors are older than simple-include-start-ts (ticdc #6143), which adds a member to rows."""
    head = re.compile(rb'(\{"version":1,"database":[^{}]*"commitTs":\d+),"buildTs":(?=\d+,"schemaVersion":)')
    options, count = options_of(file), 0
    for case in cases(file):
        started = [value and head.subn(rb'\1,"startTs":470613127188971520,"buildTs":', value) for value in case.values]
        values = [value and value[0] for value in started]
        count += sum(value[1] for value in started if value)
        assert decode(values, options, DecoderContext(objects=stored_of(case))) == decoded(file)[case.name], case.name
        rows = [value[0] for value in started if value and value[1]]
        assert None not in [pattern_of(value) for value in rows], "each row is read alone, which is slow"
    assert count > 0


@pytest.mark.parametrize("file", FILES)
def test_decodes_to_the_values_that_sql_reads(file: str) -> None:
    def found(case: Case) -> list[dict[str, Any]]:
        return [carried(as_expected(*pair)) for pair in zip(decoded(file)[case.name], case.expect, strict=True)]

    expected = [(case.id, found(case), [carried(event) for event in case.expect]) for case in cases(file)]
    assert differing(expected) == {}


@pytest.mark.parametrize("file", FILES)
def test_a_batch_decodes_as_its_messages_do(file: str) -> None:
    """Twice, so that all tables are known: rows are read together then."""
    some = cases(file)
    stored = {place: content for case in some for place, content in stored_of(case).items()}
    values = [value for case in some for value in case.values]
    decoder = Decoder("simple", options_of(file), DecoderContext(objects=stored))
    alone = [event for events in decoded(file).values() for event in events]
    for _ in range(2):
        batch = decoder.decode([None] * len(values), values)
        batch.validate(full=True)
        assert [event for _, event in events_of(batch)] == alone


@pytest.mark.parametrize("file", FILES)
def test_columns_are_all_that_rows_need(file: str) -> None:
    """What a decoder learned, read back from its bootstrap lines, decodes the rows alone to the same events."""
    if "lz4" in file or "snappy" in file:
        return
    for case in cases(file)[::3]:
        events = decoded(file)[case.name]
        schemas = {
            (event.database, event.table, event.schema_version): event.columns
            for event in events
            if isinstance(event, Bootstrap) and event.schema_version is not None
        }
        rows = [number for number, event in enumerate(events) if isinstance(event, RowChange)]
        if not schemas or len(rows) == len(events):
            continue
        context = DecoderContext(objects=stored_of(case), schemas=schemas)
        again = decode([case.values[number] for number in rows], options_of(file), context)
        assert again == [events[number] for number in rows], case.id


@pytest.mark.parametrize("file", ["tiflow-simple-json", "tiflow-simple-avro"])
def test_ddl_has_the_constant_defaults_of_dates_and_times(file: str) -> None:
    """A TIMESTAMP's in UTC; rows and bootstraps have none, also where the schema is that of a DDL's event."""
    (ddl,), (bootstrap, row) = (decoded(file)[name] for name in ("evolve.9.add_many", "evolve.10.delete_old_row"))
    assert isinstance(ddl, Ddl)
    assert isinstance(bootstrap, Bootstrap)
    assert isinstance(row, RowChange)
    assert defaults(ddl) == {"ts": "2019-12-31 16:00:00.500"}
    assert defaults(bootstrap) == defaults(row) == {}
    schemas = {("test", "evolve", ddl.schema_version or 0): ddl.columns}
    value = next(case for case in cases(file) if case.name == "evolve.10.delete_old_row").values[-1]
    assert decode([value], options_of(file), DecoderContext(schemas=schemas)) == [row]


@pytest.mark.parametrize("file", ["ticdc-simple-json", "ticdc-simple-avro"])
def test_other_defaults_are_not_sent(file: str) -> None:
    """CURRENT_TIMESTAMP, YEAR, BIT and numbers."""
    (ddl,) = decoded(file)["ddl.create_table_all_types"]
    assert isinstance(ddl, Ddl)
    assert defaults(ddl) == {"c15": "2020-01-01 00:00:00.000"}


def defaults(event: Ddl | Bootstrap | RowChange) -> dict[str, str]:
    return {column.name: column.default for column in event.columns if column.default is not None}


def test_a_schema_may_come_after_its_rows() -> None:
    case = next(case for case in cases("ticdc-simple-json") if case.name == "core.insert")
    options = options_of(case.file)
    bootstrap, row = case.values
    events = decode([row, bootstrap], options)
    assert events == decoded(case.file)[case.name][::-1]
    decoder = Decoder("simple", options)
    batches = [decoder.decode([None], [value]) for value in (row, bootstrap, row)]
    (missing,), (schema,), (found,) = ([event for _, event in events_of(batch)] for batch in batches)
    assert isinstance(missing, Failure)
    assert (missing.reason, missing.database, missing.table) == ("schema_missing", "vec", "core")
    assert isinstance(schema, Bootstrap)
    assert str(schema.schema_version) in missing.detail
    assert [schema, found] == events[::-1]


@pytest.mark.parametrize("file", [file for file in FILES if file in ("ticdc-simple-json", "tiflow-simple-avro")])
def test_types_are_those_of_show_columns(file: str) -> None:
    for case in cases(file):
        types = {column["name"]: column["type"] for column in case.content["columns"] or []}
        for event in decoded(file)[case.name]:
            if isinstance(event, Bootstrap) and f"`{event.table}`" in (case.content["create"] or ""):
                columns = {c.name: c.type for c in event.columns if not c.name.startswith("_V$_")}
                if set(columns) == set(types) and "tables" not in case.content:
                    assert columns == {name: told_type(text) for name, text in types.items()}, case.id


def told_type(text: str) -> str:
    """FLOAT(M,D) comes without M and D."""
    return text.partition("(")[0] if text.startswith(("float(", "double(")) else text


@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS if pair[1] in FILES and "tiflow" in pair[0]])
def test_json_and_avro_give_equal_rows(one: str, other: str) -> None:
    """tiflow's two encodings were recorded in separate runs, so times differ."""

    def values(event: Event) -> Any:
        if not isinstance(event, RowChange):
            return type(event)
        names = [column.name for column in event.columns]
        return (event.op, event.before, event.after, event.handle_key, event.old_handle_key, names)

    assert differing(
        (name, [*map(values, events)], [*map(values, decoded(other)[name])])
        for name, events in decoded(one).items()
        if name in decoded(other)
    ) == {}  # fmt: skip


@pytest.mark.parametrize(("simple", "canal"), [("ticdc-simple-json", "ticdc-canal_json-ext"),
                                               ("tiflow-simple-json", "tiflow-canal_json-ext")])  # fmt: skip
def test_rows_and_keys_are_those_of_canal_json(simple: str, canal: str) -> None:
    """Equal rows have equal texts and keys in both protocols, where Canal names the key."""
    decoder = Decoder("canal_json", sink_options("canal_json", header(canal)["options"]))
    for case in cases(canal):
        theirs = [e for _, e in events_of(decoder.decode(case.keys, case.values)) if isinstance(e, RowChange)]
        ours = [e for e in decoded(simple).get(case.name, []) if isinstance(e, RowChange)]
        for one, other in zip(ours, theirs, strict=False):
            assert (one.op, one.before, one.after) == (other.op, other.before, other.after), case.id
            if other.handle_key is not None:
                keys = (one.handle_key, one.old_handle_key)
                assert keys == (other.handle_key, other.old_handle_key), case.id


@pytest.mark.parametrize("file", WRITTEN)
def test_encodes_rows_to_the_same_content(file: str) -> None:
    """In Avro tiflow's: ticdc writes BIT as text there."""
    options = options_of(file)

    def written(event: Event) -> Any:
        (message,) = encode([event], options)
        return content_of("simple", message, options)

    def recorded(value: bytes | None) -> Any:
        return content_of("simple", Message(key=None, value=value), options)

    assert differing(
        (case.id, written(event), recorded(value))
        for case in cases(file)
        for value, event in zip(case.values, decoded(file)[case.name], strict=True)
        if isinstance(event, RowChange | Resolved)
    ) == {}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_decodes_again_what_it_wrote(file: str) -> None:
    options = replace(options_of(file), large_message_handle_option=LargeMessage.NONE)
    for case in cases(file):
        events = decoded(file)[case.name]
        values = [message.value for message in encode(events, options)]
        assert decode(values, options) == events, case.id


@pytest.mark.parametrize("file", DEFECTS)
def test_the_column_order_defect_is_no_error(file: str) -> None:
    """Rows of a table whose columns are not in the order of their ids carry values under wrong names (wire.md 8.2):
    nothing in the messages shows it where the types are alike."""
    for case in cases(file):
        for event, expected in zip(decode(case.values, options_of(file)), case.expect, strict=True):
            if expected["kind"] == "row":
                assert isinstance(event, RowChange | Failure)
                assert not isinstance(event, RowChange) or event.after != expected["after"], case.id


def test_largest_watermark_is_read() -> None:
    for file in ("tiflow-simple-json", "tiflow-simple-avro"):
        (case,) = [case for case in cases(file) if case.name == "resolved.max"]
        assert decoded(file)[case.name] == [Resolved(commit_ts=case.expect[0]["commit_ts"])]


def test_row_of_a_partition_has_the_id_of_its_message() -> None:
    rows = [e for e in decoded("ticdc-simple-json")["keys.partition_range.insert"] if isinstance(e, RowChange)]
    ids = {json.loads(value or b"")["tableID"] for value in rows_of("keys.partition_range.insert")}
    assert {row.table_id for row in rows} == ids


def rows_of(name: str) -> list[bytes | None]:
    (case,) = [case for case in cases("ticdc-simple-json") if case.name == name]
    return [value for value in case.values if b'"schemaVersion"' in (value or b"")]


def test_the_oldest_schema_makes_room_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schemas, "MOST", 2)
    columns = (Column(name="id", type="int"),)
    first, *others = (Layout("d", table, columns, columns_text(columns), 7) for table in "abc")
    schemas = Schemas({})
    for layout in (first, *others):
        schemas.learn(layout)
    assert [schemas.find("d", table, 7) for table in "bc"] == others
    with pytest.raises(DecodeError, match="schema_missing"):
        schemas.find("d", "a", 7)
