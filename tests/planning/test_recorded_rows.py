"""Rows of recorded streams as plans make them are cell by cell what TiDB held, wherever windows end and whatever the
names are."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from odd_names import with_odd_names
from planned_rows import RowPlanner

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
