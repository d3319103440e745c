"""The text of a handle key of several columns: the same in whatever order a message lists the columns.

TiDB's order of them changes without the key (MODIFY COLUMN … FIRST), tiflow's Open Protocol sorts them by name, and an
index may have another one than the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from well_typed import handle_key_text
from wires import WIRES, Wire, flat

from ticdc_codec import Column, Op, RowChange, encode
from ticdc_codec.event import events_of, key_order
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

B, A, V = (
    Column(name="b", type="int", key=True),
    Column(name="A", type="varchar(9)", key=True),
    Column(name="v", type="int"),
)
ROW = RowChange(
    op=Op.UPDATE, database="d", table="t", commit_ts=470613127470252033, commit_ms=1795246610528,
    before={"b": "1", "A": "x", "v": "0"}, after={"b": "2", "A": "y", "v": "0"}, columns=(B, A, V),
)  # fmt: skip
MOVED = replace(
    ROW, columns=(A, V, B), before={"A": "x", "v": "0", "b": "1"}, after={"A": "y", "v": "0", "b": "2"}
)  # fmt: skip
SHIFTED = replace(
    ROW, columns=(V, B, A), before={"v": "0", "b": "1", "A": "x"}, after={"v": "0", "b": "2", "A": "y"}
)  # fmt: skip
"""With the key's columns in their order: Debezium's Kafka key is the same."""


_WIRES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("craft", {}),
    ("open_protocol", {}),
    ("canal_json", {"enable-tidb-extension": True}),
    ("simple", {}),
    ("simple", {"encoding-format": "avro"}),
    ("debezium", {"enable-tidb-extension": True}),
    ("debezium", {"debezium-disable-schema": True}),
)


def _decoded(protocol: str, options: Mapping[str, object], rows: list[RowChange]) -> list[RowChange]:
    """The rows' events, of one batch."""
    messages = [message for row in rows for message in encode([row], protocol, options)]
    decoder = Decoder(protocol, sink_options(protocol, options))
    events = events_of(decoder.decode([m.key for m in messages], [m.value for m in messages]))
    return [event for _, event in events if isinstance(event, RowChange)]


@pytest.mark.parametrize(("protocol", "options"), _WIRES)
@pytest.mark.parametrize("rows", [[ROW, MOVED], [MOVED, ROW], [ROW, ROW, MOVED, MOVED, ROW]])
def test_the_order_of_columns_is_not_that_of_the_key(
    protocol: str, options: Mapping[str, object], rows: list[RowChange]
) -> None:
    """Whichever row's order a decoder has learnt: gold finds the row by the key of the message before the DDL."""
    found = _decoded(protocol, options, rows)
    assert len(found) == len(rows)
    assert {(row.handle_key, row.old_handle_key) for row in found} == {('["y","2"]', '["x","1"]')}


@pytest.mark.parametrize(("protocol", "options"), [wire for wire in _WIRES if wire[0] != "simple"])
@pytest.mark.parametrize("other", [MOVED, SHIFTED])
@pytest.mark.parametrize("counts", [(40, 40, 0), (1, 1, 1), (1, 2000, 3), (2000, 1, 0)])
def test_columns_are_listed_as_the_row_lists_them(
    protocol: str, options: Mapping[str, object], counts: tuple[int, int, int], other: RowChange
) -> None:
    """Rows from before and after a DDL that changes their order; Simple's schemas say it."""
    rows = [row for row, count in zip((ROW, other, ROW), counts, strict=True) for _ in range(count)]
    wanted = [[column.name for column in row.columns] for row in rows]
    found = _decoded(protocol, options, rows)
    assert [[column.name for column in row.columns] for row in found] == wanted
    assert [[*(row.after or {})] for row in found] == [[*(row.before or {})] for row in found] == wanted


_RECORDED = [wire for wire in WIRES.values() if any(case.name == "names.key.insert" for case in wire.cases)]


@pytest.mark.parametrize("wire", _RECORDED, ids=lambda wire: wire.name)
def test_the_order_of_an_index_is_not_that_of_the_key(wire: Wire) -> None:
    """Recorded: PRIMARY KEY (`k``2`,`k.1`) of a table whose first column is `k.1`."""
    (case,) = (case for case in wire.cases if case.name == "names.key.insert")
    assert "PRIMARY KEY (`k``2`,`k.1`)" in case.content["create"]
    rows = [
        event
        for event in flat(wire.decode([*zip(case.keys, case.values, strict=True)]))
        if isinstance(event, RowChange)
    ]
    assert rows
    for row in rows:
        assert row.after is not None
        assert row.handle_key == handle_key_text({name: row.after[name] for name in ("k.1", "k`2")})


def test_key_columns_are_ordered_by_their_folded_names() -> None:
    """Of names that differ in case only TiDB has one in a table, under either spelling."""
    assert key_order(["b", "A", "Ä", "a2", "_"]) == ["_", "A", "a2", "b", "Ä"]
    assert key_order(["ie", "İd"]) == ["İd", "ie"], "as id and ie"


@pytest.mark.parametrize("protocol", ["craft", "open_protocol", "canal_json"])
@pytest.mark.parametrize(("key", "columns"), [(True, ["b", "A"]), (False, ["b", "A", "v"])])
def test_short_delete_has_its_handle_key_or_all_columns_without_one(
    protocol: str, key: bool, columns: list[str]
) -> None:
    """TiCDC's writers refuse such a row, Craft's panics, and Canal-JSON's sends nothing of it (wire.md 1.4.1)."""
    described = tuple(replace(column, key=column.key and key) for column in ROW.columns)
    deleted = replace(ROW, op=Op.DELETE, after=None, columns=described)
    (found,) = _decoded(protocol, {"delete-only-output-handle-key-columns": True}, [deleted])
    assert [*(found.before or ())] == columns
