"""Long campaigns, `make test-long`: every recorded stream through Spark, and kills at random moments.

The streams are those of `../shared/streams` where it lies beside the project, else those of `tests/data/streams`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import kill
import kill_ddl
import pytest
from live_versions import wrong_versions

from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import RecordedStream, recorded_stream, recorded_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

PROJECT = Path(__file__).parents[2]
CARRIED = PROJECT / "tests" / "data" / "streams"
SHARED = PROJECT.parent / "shared" / "streams"
STREAMS = recorded_streams(SHARED if SHARED.is_dir() else CARRIED, {"craft-float": "trust"})
AT_EVERY_ANSWER = {
    ("tiflow-ddl", "craft.jsonl.gz"),
    ("tiflow-ddl", "canal_json.jsonl.gz"),
    ("ticdc-ddl", "open_protocol.jsonl.gz"),
    ("ticdc-ddl", "canal_json.jsonl.gz"),
}
"""Streams of DDLs, two protocols of each writer; of the others every eighth answer and the last."""
KILLS = 25


@pytest.mark.parametrize("stream", STREAMS, ids=map(str, STREAMS))
def test_gold_is_what_tidb_held(spark: SparkSession, broker: Broker, tmp_path: Path, stream: RecordedStream) -> None:
    run = load_stream(spark, broker, stream, tmp_path, name=f"stream_{STREAMS.index(stream)}")
    every = 1 if (stream.folder.name, stream.file) in AT_EVERY_ANSWER else 8
    verdicts = list(verify(run, stream, every))
    assert [str(difference) for verdict in verdicts for difference in verdict.differences][:20] == []
    assert verdicts[-1].rows > 0
    if stream.watermarks:
        assert list(wrong_versions(run, [verdict.watermark for verdict in verdicts])) == []


@pytest.mark.parametrize(
    ("folder", "file"), [("tiflow-ddl", "craft.jsonl.gz"), ("ticdc-ddl", "open_protocol.jsonl.gz")]
)
def test_gold_killed_between_ddls_equals_tidb(broker: Broker, lake_root: Path, folder: str, file: str) -> None:
    stream = recorded_stream(CARRIED / folder, file, {})
    result = kill_ddl.run(lake_root, broker, stream, kills=KILLS, seed=20)
    assert result.mistakes == []
    assert result.kills["process"] > 0
    assert result.kills["JVM"] > 0


def test_job_killed_in_every_task_completes(broker: Broker, tmp_path: Path) -> None:
    result = kill.run(tmp_path, broker, kills=10, seed=2)
    assert result.mistakes == ()
    assert {task.split()[0] for task in result.killed_in} >= {"bronze", "silver", "gold"}
