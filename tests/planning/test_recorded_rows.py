"""Rows of recorded streams as plans make them are cell by cell what TiDB held, wherever windows end and whatever the
names are."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from odd_names import with_odd_names
from planned_rows import RowPlanner, merged

from ticdc_codec.event import Column, Op, RowChange
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_testkit.recorded_streams import RecordedStream, answers, recorded_streams
from ticdc_testkit.respelled_streams import commit_order, respelled

FILES = {
    "tiflow-ddl/craft.jsonl.gz",
    "ticdc-ddl/open_protocol.jsonl.gz",
    *(f"tiflow-basic/{name}.jsonl.gz" for name in ("canal_json", "open_protocol", "simple-avro")),
}
"""Streams of DDLs, and one in other protocols (but Debezium: its decimals get their digits in SQL)."""
STREAMS = recorded_streams(Path(__file__).parents[1] / "data" / "streams", {"craft-float": "trust"})
COMPARED = [stream for stream in STREAMS if str(stream) in FILES]
OF_DDLS = [stream for stream in COMPARED if "-ddl/" in str(stream)]
SOME_ENDS = 25


@pytest.mark.parametrize("stream", COMPARED, ids=map(str, COMPARED))
def test_rows_are_those_of_tidb_wherever_windows_end(stream: RecordedStream) -> None:
    assert_rows(stream, seed=1)


@pytest.mark.parametrize("stream", OF_DDLS, ids=map(str, OF_DDLS))
def test_rows_of_odd_names_are_those_of_tidb(stream: RecordedStream, tmp_path: Path) -> None:
    assert_rows(with_odd_names(stream, tmp_path / "odd"), seed=2)


def test_rows_are_those_of_tidb_in_databases_with_capitals(tmp_path: Path) -> None:
    (stream,) = (stream for stream in OF_DDLS if stream.folder.name == "tiflow-ddl")
    assert_rows(respelled(stream, "evo", tmp_path), seed=3)


def assert_rows(stream: RecordedStream, seed: int) -> None:
    """Windows end at the answers, at some commits and just before some DDLs."""
    planner, random = RowPlanner(stream), Random(seed)
    changes = [commit_order(row) for row in planner.rows] + [ddl.commit_ts - 1 for ddl in planner.ddls]
    wanted = {answer.watermark: answer.tables for answer in answers(stream.folder)}
    compared = 0
    for end, _ in planner.windows(random.sample(changes, SOME_ENDS)):
        if end in wanted:
            assert [str(difference) for difference in planner.differences(wanted[end])][:20] == []
            compared += 1
    assert compared == len(wanted)


def test_rows_without_a_key_on_the_wire_are_found_by_their_definitions_key() -> None:
    """As gold finds them: TiCDC's Canal-JSON names primary keys alone."""
    (table,) = tables_from_sql("CREATE TABLE shop.t (u VARCHAR(9) NOT NULL, n INT, UNIQUE KEY (u))")
    columns = (Column(name="u", type="varchar"), Column(name="n", type="int"))
    a, b, moved = ({"u": u, "n": n} for u, n in (("a", "1"), ("b", "2"), ("c", "2")))

    def change(op: Op, before: dict[str, str], after: dict[str, str] | None) -> RowChange:
        return RowChange(
            op=op, database="shop", table="t", commit_ts=5, commit_ms=0, before=before, after=after, columns=columns
        )

    step = MergeRows(table=table, after=0, through=9, groups=())
    assert merged(step, [change(Op.DELETE, a, None), change(Op.UPDATE, b, moved)], [a, b]) == [moved]
