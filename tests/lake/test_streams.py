"""Streams that TiCDC wrote, against what TiDB held: gold at a few watermarks of each, the last one always. All streams,
at more of their watermarks: `test_campaigns`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Source, at, ddl
from live_versions import wrong_versions

from ticdc_codec.event import Column, Resolved
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.silver import events_table
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_streams import RecordedStream, base64_text, recorded_stream, write_gzipped
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


MADE = Column(name="made", type="timestamp")
Held = dict[str, tuple[Sequence[Column], list[str]]]
"""By table its columns and its only row."""


def made_stream(folder: Path, creates: dict[str, str], events: list[Event], held: Held) -> RecordedStream:
    """A stream in Canal-JSON, written into a folder, with the answer at its only watermark."""
    options = {"enable-tidb-extension": True}
    sent = protocol_named("canal_json").encode(events, sink_options("canal_json", options))
    messages = [{"partition": 0, "key": base64_text(m.key), "value": base64_text(m.value)} for m in sent]
    tables = {
        name: {"create": "", "columns": [*map(shown, columns)], "rows": [r]} for name, (columns, r) in held.items()
    }
    file = {"file": "canal_json.jsonl.gz", "protocol": "canal_json", "options": options}
    described = {"files": [{**file, "counts": {"watermark_messages": 1}}], "time_zone": "UTC"}
    folder.mkdir()
    write_gzipped(folder / "canal_json.jsonl.gz", map(json.dumps, messages))
    write_gzipped(folder / "answers.jsonl.gz", [json.dumps({"watermark": at(9), "tables": tables})])
    (folder / "stream.json").write_text(json.dumps({**described, "tables_at_start": creates}), encoding="utf-8")
    return recorded_stream(folder, "canal_json.jsonl.gz", {})


def shown(column: Column) -> dict[str, str]:
    """A column as SHOW COLUMNS has it."""
    return {"name": column.name, "type": str(column.type), "nullable": "NO", "key": "PRI" if column.key else ""}


@pytest.mark.long
def test_a_stream_of_odd_names_and_ddls_of_another_zone(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A CREATE's text may have its database in another case than messages and TiDB have it."""
    creates = {"my.db.t": "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY)"}
    alter = "ALTER TABLE `mutatio`.`T` ADD COLUMN `made` TIMESTAMP DEFAULT '2024-07-01 12:00:00'"
    events = [
        ddl(at(1), "CREATE TABLE `mutatio`.`T` (`id` BIGINT PRIMARY KEY)", "Mutatio", "T", "CREATE"),
        *(Source(database=d, table=t, columns=(ID,)).insert(at(2), 7) for d, t in (("Mutatio", "T"), ("my.db", "t"))),
        ddl(at(3), alter, "Mutatio", "T", "ALTER"),
        Resolved(commit_ts=at(9)),
    ]
    held: Held = {
        "Mutatio.T": ((ID, MADE), ["7", "2024-07-01 04:00:00"]),
        "My.DB.t": ((ID,), ["7"]),
        "MUTATIO.none": ((ID,), ["7"]),
    }
    stream = replace(made_stream(tmp_path / "stream", creates, events, held), ddl_time_zone="Asia/Shanghai")
    run = load_stream(spark, broker, stream, tmp_path, name="s_odd")
    (verdict,) = verify(run, stream)
    assert [str(each) for each in verdict.differences] == ["MUTATIO.none *: expected a table, found none"]
    assert sorted(map(str, published(run.lake, run.feed.name).tables)) == ["Mutatio.T", "my.db.t"]
