"""Streams that TiCDC wrote, against what TiDB held: gold at a few watermarks of each, the last one always. All streams,
at more of their watermarks: `test_campaigns`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_versions import wrong_versions

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.silver import events_table
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import recorded_stream
from ticdc_testkit.respelled_streams import respelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

STREAMS = Path(__file__).parents[1] / "data" / "streams"
TRUST = {"craft-float": "trust"}


@pytest.mark.parametrize(
    ("stream", "file", "options", "every"),
    [
        pytest.param("tiflow-basic", "canal_json.jsonl.gz", {}, 25, marks=pytest.mark.long),
        ("tiflow-types", "craft.jsonl.gz", TRUST, 60),
        pytest.param("ticdc-types", "canal_json.jsonl.gz", {}, 60, marks=pytest.mark.long),
    ],
)
def test_gold_is_what_tidb_held(
    spark: SparkSession, broker: Broker, tmp_path: Path, stream: str, file: str, options: dict[str, str], every: int
) -> None:
    recorded = recorded_stream(STREAMS / stream, file, options)
    run = load_stream(spark, broker, recorded, tmp_path, name=f"s_{stream.replace('-', '_')}")
    verdicts = list(verify(run, recorded, every))
    assert len(verdicts) >= 2
    assert list(wrong_versions(run, [verdict.watermark for verdict in verdicts])) == []
    assert all(verdict.rows > 0 for verdict in verdicts[1:])
    assert [str(difference) for verdict in verdicts for difference in verdict.differences][:20] == []


@pytest.mark.long
def test_gold_is_what_tidb_held_in_databases_with_capitals(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A renamed table's messages have the database in lower case until its next DDL (wire.md 8.14)."""
    shown = recorded_stream(STREAMS / "tiflow-ddl", "craft.jsonl.gz", TRUST)
    recorded = respelled(shown, "evo", tmp_path / "stream")
    run = load_stream(spark, broker, recorded, tmp_path, name="s_capitals")
    verdicts = list(verify(run, recorded, 36))
    assert list(wrong_versions(run, [verdict.watermark for verdict in verdicts])) == []
    assert [str(difference) for verdict in verdicts for difference in verdict.differences][:20] == []
    changes = spark.table(events_table.full_name(run.lake, run.feed.name)).where("kind = 'row'")
    assert {spelled.islower() for (spelled,) in changes.select("database").distinct().collect()} == {True, False}
    counts = spark.table(run.lake.table(Layer.OPS, f"{run.feed.name}_accounting"))
    assert counts.selectExpr("sum(filtered)").first() == (0,)
