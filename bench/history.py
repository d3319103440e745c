"""The same window on a lake with a long history and on one with none: a run costs what its window holds.

Both lakes get the same first window, which fills the tables. The old one then gets as many bronze batches and published
windows as its history is long, each with two ALTER TABLE of one table: batches in one commit of as many files, and the
checkpoint that bronze's stream would have after them; windows in one commit, as Delta compacts them, but for the last
ones, which are published one by one. The logs of all its tables get as many commits that change nothing. Then both
land, decode and apply the same windows in turn. Gold does so as a process of its own (the state is read from the lake),
as the loop does (the state is kept), and, the state kept, with DDLs behind the changes: two ALTER TABLE and a CREATE
TABLE. CPU time counts, that of the JVM and its workers: the machine may do other things meanwhile.

Not in the old lake: the files that a thousand MERGEs leave, which would take most of an hour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.cpu_time import cpu_seconds
from bench.generated_messages import Made
from bench.old_logs import lengthen
from bench.recorded import recorded
from bench.report import Target, table
from bench.sustained import kafka_messages
from ticdc_codec.event import Ddl, Event, Resolved
from ticdc_codec.protocols import protocol_named
from ticdc_codec.tso import milliseconds
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold import state, windows
from ticdc_lakehouse.gold.state_tables import Identity, append
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.silver import decode_stream, events_table
from ticdc_local.broker import Broker, KafkaMessage

FEED = "history"
PROTOCOL = "canal_json"
HISTORY = 1_000
CHANGES = 300
TABLES = 3
ROUNDS = 33
"""Each of `GOLD` in turn. With four or five of one kind, gold's ratio lay between 1.08 and 1.19."""
GOLD = ("gold", "gold in a loop", "gold in a loop, with DDLs")
BOUND = 1.1
ONE_BY_ONE = 25
"""Windows at the end of the history whose files are not compacted yet: Delta lets 50 come together."""
AGES = ("young", "old")
"""Each lake's name, and that of its topic, which has one partition."""
BATCHES_IN_CHECKPOINT = 100
"""Spark deletes what a checkpoint has of older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """CPU seconds by what was timed and by the lake's age."""

    history: int
    seconds: dict[str, dict[str, list[float]]]

    def ratio(self, what: str) -> float:
        """The old lake's median as a multiple of the young one's."""
        return median(self.seconds[what]["old"]) / median(self.seconds[what]["young"])


def measure(lake: FolderLake, history: int = HISTORY, rounds: int = ROUNDS) -> HistoryResult:
    """Time the runs of bronze, silver and gold over the same windows in both lakes."""
    with Broker(lake.root / FEED / "kafka") as broker:
        lakes = {age: _lake(lake, age) for age in AGES}
        for age, each in lakes.items():
            broker.create_topic(age, 1)
            broker.produce(age, kafka_messages(_made(0), 1))
            _land(each, broker, age)
            _decode(each)
            windows.apply(each, _config())
        _land_history(lakes["old"], broker, history)
        _publish_history(lakes["old"], history)
        lengthen(lakes["old"], history)
        return HistoryResult(history=history, seconds=_timed_rounds(lakes, broker, history, rounds))


def _timed_rounds(
    lakes: Mapping[str, FolderLake], broker: Broker, history: int, rounds: int
) -> dict[str, dict[str, list[float]]]:
    names = ("bronze", "silver", "state read", *GOLD)
    seconds: dict[str, dict[str, list[float]]] = {name: {age: [] for age in AGES} for name in names}
    known: dict[str, Published] = {}
    warm_up = len(GOLD)
    for number in range(warm_up + rounds):
        gold = GOLD[number % len(GOLD)]
        for age in AGES if number // len(GOLD) % 2 else AGES[::-1]:
            made = _made(history + 1 + number)
            broker.produce(age, _with_ddls(made) if gold == GOLD[-1] else kafka_messages(made, 1))
            timed = _round(lakes[age], broker, age, made, gold, None if gold == GOLD[0] else known.get(age))
            known[age] = state.published(lakes[age], FEED)
            for name, taken in timed.items() if number >= warm_up else ():
                seconds[name][age].append(taken)
    return seconds


def _round(
    lake: FolderLake, broker: Broker, topic: str, made: Made, gold: str, known: Published | None
) -> dict[str, float]:
    """CPU seconds of one window, which waits in Kafka, by what was run."""
    taken = {
        "bronze": _timed(lake, lambda: _land(lake, broker, topic)),
        "silver": _timed(lake, lambda: _decode(lake)),
        "state read": _timed(lake, lambda: state.published(lake, FEED)),
    }
    start = cpu_seconds(lake.spark)
    applied = windows.apply(lake, _config(), known=known)
    taken[gold] = cpu_seconds(lake.spark) - start
    if (applied.tso, applied.merged, applied.blocked) != (made.tso, TABLES, {}):
        raise RuntimeError(f"expected {TABLES} tables merged up to {made.tso}, found {applied}")
    return taken


def _land(lake: FolderLake, broker: Broker, topic: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    source = landing.KafkaSource(feed=FEED, kafka_options=options)
    landing.land(lake, source, last_used=lambda after: after, is_waited_for=lambda _: True)


def _decode(lake: FolderLake) -> None:
    options = recorded(PROTOCOL).options
    decode_stream.decode(lake, decode_stream.Decoding(feed=FEED, protocol=PROTOCOL, options=options))


def _timed(lake: FolderLake, run: Callable[[], object]) -> float:
    start = cpu_seconds(lake.spark)
    run()
    return cpu_seconds(lake.spark) - start


def _made(batch: int) -> Made:
    return Made(feed=FEED, protocol=PROTOCOL, rows=CHANGES, tables=TABLES, batch=batch)


def _with_ddls(made: Made) -> list[KafkaMessage]:
    """A batch's messages with DDLs between its changes and its watermark."""
    *changes, watermark = kafka_messages(made, 1)
    name = f"made{made.batch}"
    create = _ddl(made.tso - 1, name, "CREATE", f"CREATE TABLE `{name}` (`id` BIGINT PRIMARY KEY, `note` VARCHAR(40))")
    return [*changes, *_encoded([*_alters(made), create]), watermark]


def _alters(made: Made) -> list[Event]:
    """DDLs behind a batch's changes, after which the table is as before."""
    column, table_name = f"x{made.batch}", "sbtest0"
    return [
        _ddl(made.tso - 3, table_name, "ALTER", f"ALTER TABLE `{table_name}` ADD COLUMN `{column}` BIGINT"),
        _ddl(made.tso - 2, table_name, "ALTER", f"ALTER TABLE `{table_name}` DROP COLUMN `{column}`"),
    ]


def _ddl(commit_ts: int, table_name: str, kind: str, query: str) -> Ddl:
    return Ddl(
        database="test",
        table=table_name,
        commit_ts=commit_ts,
        commit_ms=milliseconds(commit_ts),
        query=query,
        type=kind,
    )


def _encoded(events: Sequence[Event]) -> list[KafkaMessage]:
    messages = protocol_named(PROTOCOL).encode(events, recorded(PROTOCOL).options)
    return [KafkaMessage(partition=0, key=message.key, value=message.value) for message in messages]


def _config() -> GoldConfig:
    create = recorded(PROTOCOL).create
    texts = (create.replace("`sbtest1`", f"`sbtest{number}`") for number in range(TABLES))
    return GoldConfig(feed=FEED, time_zone="UTC", tables=tuple(tables_from_sql(text, "test")[0] for text in texts))


def _lake(lake: FolderLake, age: str) -> FolderLake:
    schemas = {layer: f"{age}_{layer}" for layer in Layer}
    own = replace(lake, schemas=schemas, root=lake.root / age, checkpoints=f"{lake.checkpoints}/{age}")
    own.register()
    return own


def _land_history(lake: FolderLake, broker: Broker, history: int) -> None:
    """Bronze batches 1 … ``history``, `_alters` and a watermark each, in a file each; and silver's events of them."""
    checkpoint = lake.checkpoint(f"bronze_{FEED}")
    made = [_made(batch) for batch in range(1, history + 1)]
    batches = {each.batch: _encoded([*_alters(each), Resolved(commit_ts=each.tso)]) for each in made}
    numbered = [(batch, message) for batch, messages in batches.items() for message in messages]
    broker.produce("old", (message for _, message in numbered))
    [first] = stream_checkpoint.planned_offsets(checkpoint, 0).values()
    rows = [(batch, first + at, message.key, message.value) for at, (batch, message) in enumerate(numbered)]
    landed = lake.spark.createDataFrame(rows, "batch BIGINT, offset BIGINT, key BINARY, value BINARY").selectExpr(
        "*", "'old' AS topic", "0 AS partition", "current_timestamp() AS ingest_time"
    )
    headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
    messages = landed.selectExpr("*", "ingest_time AS timestamp", headers)
    _append_by_batch(lake, Layer.BRONZE, landing.messages_table(FEED), messages, history)
    offsets = landed.groupBy("batch", "topic", "partition", "ingest_time").agg(
        F.lit(stream_checkpoint.query_id(checkpoint)).alias("query"),
        F.min("offset").alias("start_offset"),
        (F.max("offset") + 1).alias("end_offset"),
        F.count("*").alias("messages"),
        F.min("batch").alias("listing"),
    )
    _append_by_batch(lake, Layer.BRONZE, landing.offsets_table(FEED), offsets, history)
    _continue_checkpoint(Path(checkpoint), {batch: first + batch * len(batches[batch]) for batch in batches})
    _decode(lake)
    events = events_table.full_name(lake, FEED)
    decoded = lake.spark.table(events).where(F.col("batch").between(1, history)).localCheckpoint()
    lake.spark.sql(f"DELETE FROM {events} WHERE batch BETWEEN 1 AND {history}")
    _append_by_batch(lake, Layer.SILVER, events_table.table_name(FEED), decoded, history)


def _continue_checkpoint(checkpoint: Path, ends: Mapping[int, int]) -> None:
    """Writes what a stream that has landed batch 0 would have in its checkpoint after batches up to these offsets."""
    planned, committed = (
        (checkpoint / log / "0").read_text(encoding="utf-8").splitlines() for log in ("offsets", "commits")
    )
    for batch in sorted(ends)[-BATCHES_IN_CHECKPOINT:]:
        end = json.dumps({"old": {"0": ends[batch]}})
        (checkpoint / "offsets" / str(batch)).write_text("\n".join([*planned[:-1], end]), encoding="utf-8")
        (checkpoint / "commits" / str(batch)).write_text("\n".join(committed), encoding="utf-8")


def _append_by_batch(lake: FolderLake, layer: Layer, name: str, rows: DataFrame, history: int) -> None:
    """Append rows, a file for each batch."""
    target = lake.table(layer, name)
    shown = rows.select(*lake.spark.table(target).columns)
    shown.repartitionByRange(history, "batch").write.format("delta").mode("append").saveAsTable(target)


def _publish_history(lake: FolderLake, history: int) -> None:
    """Windows of batches 1 … ``history``, in each of which the state and the definition of one table change."""
    before, compacted = state.published(lake, FEED), max(0, history - ONE_BY_ONE)
    rows: dict[str, list[dict[str, object]]] = {}
    for batch in range(1, compacted + 1):
        identity = Identity(FEED, before.number + 1, str(batch))
        before, found = state.rows_to_publish(identity, before, *_next(before, batch), 0)
        for name, some in found.items():
            rows.setdefault(name, []).extend(some)
    for name, some in rows.items():
        append(lake, name, some)
    for batch in range(compacted + 1, history + 1):
        before = state.commit_window(lake, FEED, before, *_next(before, batch), 0)


def _next(before: Published, batch: int) -> tuple[Published, tuple[Definition]]:
    """The state after a window of `_alters`, and the definition that is new in it."""
    tso = _made(batch).tso
    tables = {name: replace(each, applied_tso=tso, ddls=()) for name, each in before.tables.items()}
    first = min(tables)
    tables[first] = replace(tables[first], ddls=(str(batch),))
    defined = replace(before.definitions[tables[first].stable_id], commit_ts=tso - 2, origin=Origin.DDL)
    return replace(before, tso=tso, batch=batch, tables=tables), (defined,)


def report(result: HistoryResult) -> str:
    """CPU seconds in both lakes."""
    heads = ("run", "without history, CPU seconds, median", "with history", "ratio")
    lines = [
        (what, f"{median(times['young']):.2f}", f"{median(times['old']):.2f}", f"{result.ratio(what):.2f}")
        for what, times in result.seconds.items()
    ]
    title = f"history: {CHANGES} changes of {TABLES} tables after {result.history:,} windows and bronze batches"
    return table(title, heads, lines)


def targets(result: HistoryResult) -> list[Target]:
    """Each ratio with its bound."""
    return [
        Target(what=f"{what} after {result.history:,} windows", measured=result.ratio(what), bound=BOUND, at_most=True)
        for what in result.seconds
    ]


def main(lake: FolderLake, history: int = HISTORY) -> list[Target]:
    """Measure and print."""
    result = measure(lake, history)
    print(report(result), flush=True)
    return targets(result)
