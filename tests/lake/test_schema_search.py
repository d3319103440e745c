"""Silver of Simple finds every schema, and reads for that only what came since."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from bench.generated_messages import append
from bench.scans import files_read, last_execution
from changefeed import Source, at, lake_in

from ticdc_codec.errors import SCHEMA_MISSING
from ticdc_codec.event import Bootstrap, Column
from ticdc_codec.options import SinkOptions
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.silver import decode_stream, events_table, external_schemas, quarantine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ticdc_codec.event import Event
    from ticdc_lakehouse.folder_lake import FolderLake

FEED = "f"
COLUMNS = (Column(name="id", type="bigint", key=True), Column(name="v", type="varchar(10)"))
VERSION = 7
_encode = protocol_named("simple").encode


def schema(table: str) -> Bootstrap:
    return Bootstrap(database="shop", table=table, columns=COLUMNS, schema_version=VERSION)


def row(table: str) -> Event:
    return replace(Source(table=table, columns=COLUMNS).insert(at(1), 1, "a"), schema_version=VERSION)


@dataclass(slots=True)
class Landed:
    """Batches of bronze that no broker sent, and the runs of silver over them."""

    lake: FolderLake
    batches: int = 0
    sent: int = 0

    def land(self, *events: Event) -> None:
        """One batch of bronze, in a file of its own."""
        landing.create_tables(self.lake, FEED)
        messages = [message for event in events for message in _encode([event], SinkOptions())]
        rows = [(self.sent + number, message.key, message.value) for number, message in enumerate(messages)]
        frame = self.lake.spark.createDataFrame(rows, "offset BIGINT, key BINARY, value BINARY")
        append(self.lake, FEED, self.batches, frame.coalesce(1))
        self.batches, self.sent = self.batches + 1, self.sent + len(rows)

    def decode(self, **more: int) -> set[str]:
        """Silver; gives the tables whose schemas it knows then."""
        external_schemas.decode(self.lake, self.decoding(**more))
        return {table for _, table, _ in external_schemas.learned(self.lake, FEED)}

    def decoding(self, **more: int) -> decode_stream.Decoding:
        schemas = external_schemas.learned(self.lake, FEED)
        return decode_stream.Decoding(feed=FEED, protocol="simple", options=SinkOptions(), schemas=schemas, **more)

    def files_read(self, layer: Layer, name: str, after: int) -> tuple[int, ...]:
        return files_read(self.lake.spark, self.lake.table(layer, name), after)


def landed(spark: SparkSession, folder: Path, name: str) -> Landed:
    lake = lake_in(spark, folder, name)
    lake.register()
    return Landed(lake)


@pytest.mark.long
def test_a_run_reads_what_came_since_and_the_batches_of_waiting_messages(spark: SparkSession, lake_root: Path) -> None:
    feed = landed(spark, lake_root, "search")
    feed.land(row("waiting"), schema("a"))
    assert feed.decode() == {"a"}
    for known in ("ab", "abc"):
        feed.land(schema("a"), schema(known[-1]))
        before = last_execution(spark)
        assert feed.decode() == {*known}
    assert quarantine.reasons(feed.lake, FEED) == {SCHEMA_MISSING: 1}
    scans = feed.files_read(Layer.SILVER, events_table.table_name(FEED), before)
    assert scans, "the search"
    assert max(scans) == 2, "of three: those of the newest batch before, and of the new one"
    scans = feed.files_read(Layer.BRONZE, landing.messages_table(FEED), before)
    assert set(scans) == {1}, "of three: that of the waiting message"


def test_waiting_rows_are_decoded_again_only_if_a_new_schema_came(
    spark: SparkSession, lake_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may never come."""
    feed, replays, replay = landed(spark, lake_root, "waits"), [], quarantine.replay

    def counted(*given: Any, **named: Any) -> object:
        replays.append(feed.batches)
        return replay(*given, **named)

    monkeypatch.setattr(quarantine, "replay", counted)
    feed.land(row("waiting"), schema("a"))
    for _ in range(3):
        feed.decode()
        feed.land(row("a"), schema("a"))
    assert replays == [1], "the schema of `a` comes again and again"
    assert quarantine.reasons(feed.lake, FEED) == {SCHEMA_MISSING: 1}

    # Killed before the row was decoded again.
    def die(*_: object, **__: object) -> None:
        raise InterruptedError

    feed.land(schema("waiting"))
    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "replay", die)
        with pytest.raises(InterruptedError):
            feed.decode()
    for _ in range(2):
        feed.land(row("a"))
        feed.decode()
    assert quarantine.reasons(feed.lake, FEED) == {}


def by_rows(*given: Any, append_in_order: Callable[..., None] = quarantine._append_in_order) -> None:
    """What a replay reads of bronze has values of 16 MB."""
    rows: DataFrame = given[1]
    assert rows.sparkSession.conf.get("spark.sql.parquet.enableVectorizedReader") == "false"
    append_in_order(*given)


@pytest.mark.long
def test_no_schema_is_missed_after_a_failure(
    spark: SparkSession, lake_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = landed(spark, lake_root, "missed")
    feed.land(schema("a"))
    assert feed.decode() == {"a"}

    # Killed between the events and the schemas.
    feed.land(row("b"), schema("b"))

    def die(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(external_schemas, "_store", die)
        with pytest.raises(InterruptedError):
            feed.decode()
    feed.land(schema("a"))
    assert feed.decode() == {"a", "b"}
    assert quarantine.reasons(feed.lake, FEED) == {}

    # A schema that could not be decoded, and is replayed when its batch was searched.
    feed.land(schema("c"))
    assert feed.decode(max_message_bytes=10) == {"a", "b"}
    feed.land(schema("a"))
    assert feed.decode() == {"a", "b"}
    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "_append_in_order", by_rows)
        assert quarantine.replay(feed.lake, feed.decoding()).still_open == 0
    feed.land(schema("a"))
    assert feed.decode() == {"a", "b", "c"}

    # The table of schemas is lost, then silver's checkpoint.
    table = external_schemas.schemas_table(FEED)
    feed.lake.drop(Layer.SILVER, table)
    assert feed.decode() == {"a", "b", "c"}
    feed.lake.drop(Layer.SILVER, table)
    shutil.rmtree(decode_stream.stream(feed.lake, FEED))
    assert feed.decode() == {"a", "b", "c"}
