"""Streams that TiCDC wrote, against what TiDB held: gold at a few watermarks of each, the last one always. All streams,
at more of their watermarks: `test_campaigns`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Source, at, ddl
from live_versions import wrong_versions

from ticdc_codec.event import Resolved
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.silver import events_table
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import base64_text, recorded_stream, write_gzipped
from ticdc_testkit.respelled_streams import respelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_codec.event import Event
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


def made_stream(folder: Path, creates: dict[str, str], events: list[Event], tables: dict[str, list[list[str]]]) -> Path:
    """A folder with a stream in Canal-JSON, and the answer at its only watermark: rows by table."""
    options = {"enable-tidb-extension": True}
    sent = protocol_named("canal_json").encode(events, sink_options("canal_json", options))
    messages = [{"partition": 0, "key": base64_text(m.key), "value": base64_text(m.value)} for m in sent]
    columns = [{"name": "id", "type": "bigint(20)", "nullable": "NO", "key": "PRI"}]
    held = {name: {"create": "", "columns": columns, "rows": rows} for name, rows in tables.items()}
    file = {"file": "canal_json.jsonl.gz", "protocol": "canal_json", "options": options}
    described = {"files": [{**file, "counts": {"watermark_messages": 1}}], "time_zone": "UTC"}
    folder.mkdir()
    write_gzipped(folder / "canal_json.jsonl.gz", map(json.dumps, messages))
    write_gzipped(folder / "answers.jsonl.gz", [json.dumps({"watermark": at(9), "tables": held})])
    (folder / "stream.json").write_text(json.dumps({**described, "tables_at_start": creates}), encoding="utf-8")
    return folder


def test_names_with_dots_and_in_another_case(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A CREATE's text may have its database in another case than messages and TiDB have it."""
    create = ddl(at(1), "CREATE TABLE `mutatio`.`T` (`id` BIGINT PRIMARY KEY)", "Mutatio", "T", "CREATE")
    rows = [Source(database=d, table=t, columns=(ID,)).insert(at(2), 7) for d, t in (("Mutatio", "T"), ("my.db", "t"))]
    resolved = Resolved(commit_ts=at(9))
    creates = {"my.db.t": "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY)"}
    tables = {"Mutatio.T": [["7"]], "My.DB.t": [["7"]], "MUTATIO.none": [["7"]]}
    folder = made_stream(tmp_path / "stream", creates, [create, *rows, resolved], tables)
    recorded = recorded_stream(folder, "canal_json.jsonl.gz", {})
    run = load_stream(spark, broker, recorded, tmp_path, name="s_names")
    (verdict,) = verify(run, recorded)
    assert [str(each) for each in verdict.differences] == ["MUTATIO.none *: expected a table, found none"]
    assert sorted(map(str, published(run.lake, run.feed.name).tables)) == ["Mutatio.T", "my.db.t"]
