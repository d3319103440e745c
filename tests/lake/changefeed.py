"""A changefeed that a test makes up: events into a real topic, the feed file, and the layers' runs."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from pyspark.sql import Row, SparkSession

from ticdc_codec.event import Column, Ddl, Event, Op, Resolved, RowChange
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_codec.tso import Tso, first_of, milliseconds
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold import state, windows
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.windows import Applied
from ticdc_lakehouse.ops import status
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.silver import events_table
from ticdc_local.broker import Broker, KafkaMessage
from ticdc_local.delta_reader import DeltaReader

ID = Column(name="id", type="bigint", key=True)
V = Column(name="v", type="varchar")

_NUMBER = count()


def at(second: int, logical: int = 0) -> Tso:
    """A TSO so many seconds after a fixed time."""
    return Tso(first_of(1_700_000_000_000 + 1000 * second) + logical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table of the database that the changefeed is of."""

    table: str
    database: str = "shop"
    columns: tuple[Column, ...] = (ID, V)

    def insert(self, commit_ts: int, *values: object) -> RowChange:
        return self._change(Op.INSERT, commit_ts, None, values)

    def update(self, commit_ts: int, old: Sequence[object], new: Sequence[object]) -> RowChange:
        return self._change(Op.UPDATE, commit_ts, old, new)

    def delete(self, commit_ts: int, *values: object) -> RowChange:
        return self._change(Op.DELETE, commit_ts, values, None)

    def _change(
        self, op: Op, commit_ts: int, before: Sequence[object] | None, after: Sequence[object] | None
    ) -> RowChange:
        return RowChange(
            op=op,
            database=self.database,
            table=self.table,
            commit_ts=commit_ts,
            commit_ms=milliseconds(commit_ts),
            before=self._image(before),
            after=self._image(after),
            columns=self.columns,
        )

    def _image(self, values: Sequence[object] | None) -> dict[str, str | None] | None:
        if values is None:
            return None
        texts = (None if value is None else str(value) for value in values)
        return {column.name: text for column, text in zip(self.columns, texts, strict=True)}


def ddl(commit_ts: int, query: str, database: str, table: str | None = None, kind: str = "QUERY") -> Ddl:
    """A DDL as Canal-JSON sends it."""
    return Ddl(
        database=database,
        table=table,
        commit_ts=commit_ts,
        commit_ms=milliseconds(commit_ts),
        query=query,
        type=kind,
    )


def alter(second: int, table: str, action: str) -> Ddl:
    """An ALTER TABLE of the database ``shop``, so many seconds after the fixed time of ``at``."""
    return ddl(at(second), f"ALTER TABLE `shop`.`{table}` {action}", "shop", table, "ALTER")


def lake_in(spark: SparkSession, folder: Path, name: str) -> FolderLake:
    """A lake in a folder; schemas of its own keep it apart from the other lakes of the session."""
    schemas = {layer: f"{name}_{layer}" for layer in Layer}
    return FolderLake(
        spark=spark, catalog="spark_catalog", schemas=schemas, checkpoints=str(folder / "checkpoints"), root=folder
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogLake(Lake):
    """A lake in Spark's own catalog, which takes another statement for a view's comment than Databricks'."""

    comment_on_view = FolderLake.comment_on_view


def as_on_databricks(lake: Lake) -> Lake:
    """A lake whose tables the catalog stores, and that no lock guards."""
    return CatalogLake(spark=lake.spark, catalog=lake.catalog, schemas=lake.schemas, checkpoints=lake.checkpoints)


@cache
def ops_tables(spark: SparkSession) -> TemporaryDirectory[str]:
    """The tables of ops that gold makes in a new lake, made once: they take a second and more."""
    folder = TemporaryDirectory()
    lake = lake_in(spark, Path(folder.name), "made_once")
    lake.register()
    windows.create_tables(lake)
    return folder


@dataclass(slots=True)
class Changefeed:
    """A changefeed with a topic and a lake of its own in the shared broker and session."""

    spark: SparkSession
    broker: Broker
    folder: Path
    partitions: int = 1
    protocol: str = "canal-json"
    schema: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    described: Mapping[str, object] = field(default_factory=dict)
    """More members of the feed file."""
    is_new_lake: bool = False
    """Whether bronze and gold have to make the tables of ops."""
    name: str = field(default_factory=lambda: f"feed{next(_NUMBER)}")
    sent: list[KafkaMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.protocol == "canal-json":
            self.options = {"enable-tidb-extension": True, **self.options}
        self.broker.create_topic(self.topic, self.partitions)
        if not (self.is_new_lake or (self.folder / Layer.OPS).exists()):
            shutil.copytree(Path(ops_tables(self.spark).name, Layer.OPS), self.folder / Layer.OPS)
        self.lake.register()

    @property
    def topic(self) -> str:
        return f"topic-{self.name}"

    @property
    def lake(self) -> FolderLake:
        return lake_in(self.spark, self.folder, self.name)

    @property
    def run(self) -> Run:
        """The run that the feed file describes now."""
        return Run(lake=self.lake, feed=load_feed(self.write_file()), secret=lambda scope, key: f"{scope}/{key}")

    def write_file(self) -> Path:
        (self.folder / f"{self.name}.sql").write_text(self.schema, encoding="utf-8")
        described = {
            "protocol": self.protocol,
            "time_zone": "UTC",
            "options": dict(self.options),
            "kafka": {"bootstrap_servers": self.broker.bootstrap_servers, "topics": [self.topic]},
            "schema_file": f"{self.name}.sql",
            **self.described,
        }
        path = self.folder / f"{self.name}.yml"
        path.write_text(yaml.safe_dump(described), encoding="utf-8")
        return path

    def encoded(self, events: Sequence[Event]) -> list[bytes]:
        """The values of ``messages``."""
        return [message.value or b"" for message in self.messages(events)]

    def messages(self, events: Sequence[Event]) -> list[Message]:
        """The events as TiCDC would write them; what is to be a claim check, a test makes of that."""
        large = ("large-message", "claim-check")
        given = {name: value for name, value in self.options.items() if not name.startswith(large)}
        protocol = self.protocol.replace("-", "_")
        options = sink_options(protocol, given)
        return PROTOCOLS[protocol].encode(events, options)

    def send(self, partition: int, *events: Event | bytes) -> None:
        """Write events, or bytes as they stand, to a partition."""
        given = ([Message(key=None, value=e)] if isinstance(e, bytes) else self.messages([e]) for e in events)
        self.produce(KafkaMessage(partition=partition, key=m.key, value=m.value) for each in given for m in each)

    def produce(self, messages: Iterable[KafkaMessage]) -> None:
        messages = list(messages)
        self.broker.produce(self.topic, messages)
        self.sent.extend(messages)

    def resolve(self, commit_ts: int, *partitions: int) -> None:
        """A watermark in these partitions, or in all."""
        for partition in partitions or range(self.partitions):
            self.send(partition, Resolved(commit_ts=commit_ts))

    def load(self, *, max_offsets_per_trigger: int | None = None) -> None:
        """Bronze and silver."""
        replace(self.run, max_offsets_per_trigger=max_offsets_per_trigger).bronze()
        self.run.silver()

    def apply(self, until_tso: int | None = None) -> Applied:
        """Gold alone."""
        return replace(self.run, until_tso=until_tso).gold()

    def die_before_publishing(self, run: Callable[[], object] | None = None) -> None:
        """What a killed run of gold leaves behind: all tables written, nothing published."""
        _die_in(state, "commit_window", run or self.apply)

    def die_before_renaming(self) -> None:
        """What a killed run of gold leaves behind: a published window, and live tables with their former names."""
        _die_in(Lake, "begin_renames", self.apply)

    def go(self, until_tso: int | None = None) -> Applied:
        """All three layers."""
        self.load()
        return self.apply(until_tso)

    @property
    def state(self) -> Published:
        """What is published, read without Spark, as every command of a laptop does."""
        return published(DeltaReader(self.folder), self.name)

    @property
    def status(self) -> status.FeedStatus:
        """As `ticdc-lake status` asks for it."""
        return status.feed_status(DeltaReader(self.folder), self.name)

    def shown_name(self, table: str, database: str = "shop") -> str:
        """The name of a table's gold view and live table in their schemas."""
        return self.state.tables[database, table].lake_name

    def view(self, table: str, database: str = "shop") -> str:
        """The quoted name of a table's gold view."""
        return self.lake.table(Layer.GOLD, self.shown_name(table, database))

    def live(self, table: str, database: str = "shop") -> str:
        """The quoted name of a table's live table."""
        return self.lake.table(Layer.LIVE, self.shown_name(table, database))

    def rows(self, table: str, database: str = "shop") -> dict[Any, tuple[Any, ...]]:
        """What analysts see: first column to the others."""
        lines = [tuple(row) for row in self.spark.table(self.view(table, database)).collect()]
        found = {line[0]: line[1:] for line in lines}
        assert len(found) == len(lines), f"a key twice in {lines}"
        return found

    @property
    def accounted_messages(self) -> int:
        """The messages that the events of silver came with, as gold's accounting counts them."""
        lines = self.spark.table(self.lake.table(Layer.OPS, f"{self.name}_accounting")).collect()
        return sum(line["messages"] for line in lines)

    def data_versions(self) -> dict[str, int]:
        """The newest Delta version of every live table, by its stable id."""
        tables = [table for table in self.state.tables.values() if table.has_live_table]
        logs = {table.stable_id: self.folder / Layer.LIVE / table.lake_name / "_delta_log" for table in tables}
        return {data: max(int(commit.stem) for commit in log.glob("*.json")) for data, log in logs.items()}

    def events(self, columns: str = "*", where: str = "true") -> list[Row]:
        table = events_table.full_name(self.lake, self.name)
        return self.spark.sql(f"SELECT {columns} FROM {table} WHERE {where}").collect()

    def check_nothing_lost_or_doubled(self) -> None:
        """Every message sent is in bronze once, byte for byte, and is counted in silver."""
        messages = self.spark.table(self.lake.table(Layer.BRONZE, f"{self.name}_messages")).collect()
        ends = Counter(message.partition for message in self.sent)
        expected = [(p, offset) for p, end in sorted(ends.items()) for offset in range(end)]
        assert sorted((m["partition"], m["offset"]) for m in messages) == expected
        values = Counter((m["partition"], None if m["value"] is None else bytes(m["value"])) for m in messages)
        assert values == Counter((message.partition, message.value) for message in self.sent)
        lines = self.events("partition, offset", "index = 0 AND replayed_at IS NULL")
        assert sorted(map(tuple, lines)) == expected
        accounting = self.spark.table(self.lake.table(Layer.SILVER, f"{self.name}_accounting")).collect()
        assert sum(line["messages"] for line in accounting) == len(self.sent)
        assert all(line["waiting"] == 0 for line in accounting)
        assert all(line["messages"] == line["decoded"] + line["quarantined"] for line in accounting)


def _die_in(owner: object, function: str, run: Callable[[], object]) -> None:
    def die(*_: object) -> None:
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, function, die)
        with pytest.raises(InterruptedError):
            run()
