"""The same window on a lake with a long history and on one with none: a run costs what its window holds.

Both lakes get the same first window, which fills the tables. The old one then gets, a row each, as many bronze batches
and published windows as its history is long: batches in one commit of as many files, windows in one commit, as Delta
compacts them, but for the last ones, which are published one by one. Then both apply the same windows in turn, as a
process of its own does (the state is read from the lake) and as the loop does (the state is kept). CPU time counts,
that of the JVM and its workers: the machine may do other things meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.made import Made, write
from bench.place import cpu_seconds
from bench.recorded import recorded
from bench.report import Target, table
from ticdc_codec.event import Resolved
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold import state, windows
from ticdc_lakehouse.gold.state_tables import Identity, append
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.silver import decode_stream, events_table

FEED = "history"
PROTOCOL = "canal_json"
HISTORY = 1_000
CHANGES = 300
TABLES = 3
ROUNDS = 21
"""Every other one begins with the state that is kept. With nine, gold's ratio lay between 1.08 and 1.19."""
BOUND = 1.1
ONE_BY_ONE = 25
"""Windows at the end of the history whose files are not compacted yet: Delta lets 50 come together."""
AGES = ("young", "old")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """CPU seconds by what was timed and by the lake's age."""

    history: int
    seconds: dict[str, dict[str, list[float]]]

    def ratio(self, what: str) -> float:
        """The old lake's median as a multiple of the young one's."""
        return median(self.seconds[what]["old"]) / median(self.seconds[what]["young"])


def measure(lake: FolderLake, history: int = HISTORY, rounds: int = ROUNDS) -> HistoryResult:
    """Time the runs of silver and gold over the same windows in both lakes."""
    lakes = {age: _lake(lake, age) for age in AGES}
    for each in lakes.values():
        _land(each, 0)
        windows.apply(each, _config())
    _land_history(lakes["old"], history)
    _publish_history(lakes["old"], history)
    names = ("state read", "silver", "gold", "gold in a loop")
    seconds: dict[str, dict[str, list[float]]] = {name: {age: [] for age in AGES} for name in names}
    known: dict[str, Published] = {}
    for number in range(1, rounds + 3):
        for age in AGES if number % 4 < 2 else AGES[::-1]:
            timed = _round(lakes[age], history + number, known.get(age) if number % 2 else None)
            known[age] = state.published(lakes[age], FEED)
            for name, taken in timed.items() if number > 2 else ():  # the first two warm up
                seconds[name][age].append(taken)
    return HistoryResult(history=history, seconds=seconds)


def _round(lake: FolderLake, batch: int, known: Published | None) -> dict[str, float]:
    """CPU seconds of one window, begun from the state that is kept if there is one."""
    silver = _land(lake, batch)
    read = _timed(lake, lambda: state.published(lake, FEED))
    start = cpu_seconds(lake.spark)
    applied = windows.apply(lake, _config(), known=known)
    gold = cpu_seconds(lake.spark) - start
    if (applied.tso, applied.merged) != (_made(batch).tso, TABLES):
        raise RuntimeError(f"expected {TABLES} tables merged up to {_made(batch).tso}, found {applied}")
    return {"state read": read, "silver": silver, "gold" if known is None else "gold in a loop": gold}


def _land(lake: FolderLake, batch: int) -> float:
    """Lay down a batch of bronze; gives the CPU seconds in which silver decodes it."""
    write(lake, _made(batch))
    return _timed(lake, lambda: _decode(lake))


def _decode(lake: FolderLake) -> None:
    options = recorded(PROTOCOL).options
    decode_stream.decode(lake, decode_stream.Decoding(feed=FEED, protocol=PROTOCOL, options=options))


def _timed(lake: FolderLake, run: Callable[[], object]) -> float:
    start = cpu_seconds(lake.spark)
    run()
    return cpu_seconds(lake.spark) - start


def _made(batch: int) -> Made:
    return Made(feed=FEED, protocol=PROTOCOL, rows=CHANGES, tables=TABLES, batch=batch)


def _config() -> GoldConfig:
    create = recorded(PROTOCOL).create
    texts = (create.replace("`sbtest1`", f"`sbtest{number}`") for number in range(TABLES))
    return GoldConfig(feed=FEED, time_zone="UTC", tables=tuple(tables_from_sql(text, "test")[0] for text in texts))


def _lake(lake: FolderLake, age: str) -> FolderLake:
    schemas = {layer: f"{age}_{layer}" for layer in Layer}
    own = replace(lake, schemas=schemas, root=lake.root / age, checkpoints=f"{lake.checkpoints}/{age}")
    own.register()
    return own


def _land_history(lake: FolderLake, history: int) -> None:
    """Bronze batches 1 … ``history``, a watermark each, in a file each; and silver's events of them."""
    made = [_made(batch) for batch in range(1, history + 1)]
    encode, options = protocol_named(PROTOCOL).encode, recorded(PROTOCOL).options
    values = [encode([Resolved(commit_ts=each.tso)], options)[0].value for each in made]
    rows = [(each.batch, each.first_offset, value) for each, value in zip(made, values, strict=True)]
    landed = lake.spark.createDataFrame(rows, "batch BIGINT, offset BIGINT, value BINARY").selectExpr(
        "*", f"'{FEED}' AS topic", "0 AS partition", "current_timestamp() AS ingest_time", "CAST(NULL AS BINARY) AS key"
    )
    headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
    messages = landed.selectExpr("*", "ingest_time AS timestamp", headers)
    _append_by_batch(lake, Layer.BRONZE, landing.messages_table(FEED), messages, history)
    counted = (
        "'bench' AS query",
        "offset AS start_offset",
        "offset + 1 AS end_offset",
        "1L AS messages",
        "batch AS listing",
    )
    offsets = landed.selectExpr("*", *counted)
    _append_by_batch(lake, Layer.BRONZE, landing.offsets_table(FEED), offsets, history)
    _decode(lake)
    events = events_table.full_name(lake, FEED)
    decoded = lake.spark.table(events).where(F.col("batch").between(1, history)).localCheckpoint()
    lake.spark.sql(f"DELETE FROM {events} WHERE batch BETWEEN 1 AND {history}")
    _append_by_batch(lake, Layer.SILVER, events_table.table_name(FEED), decoded, history)


def _append_by_batch(lake: FolderLake, layer: Layer, name: str, rows: DataFrame, history: int) -> None:
    """Append rows, a file for each batch."""
    target = lake.table(layer, name)
    shown = rows.select(*lake.spark.table(target).columns)
    shown.repartitionByRange(history, "batch").write.format("delta").mode("append").saveAsTable(target)


def _publish_history(lake: FolderLake, history: int) -> None:
    """Windows of batches 1 … ``history``, in each of which the state of one table changes."""
    before, compacted = state.published(lake, FEED), max(0, history - ONE_BY_ONE)
    rows: dict[str, list[dict[str, object]]] = {}
    for batch in range(1, compacted + 1):
        identity = Identity(FEED, before.number + 1, str(batch))
        before, found = state.rows_to_publish(identity, before, _next(before, batch), (), 0)
        for name, some in found.items():
            rows.setdefault(name, []).extend(some)
    for name, some in rows.items():
        append(lake, name, some)
    for batch in range(compacted + 1, history + 1):
        before = state.commit_window(lake, FEED, before, _next(before, batch), (), 0)


def _next(before: Published, batch: int) -> Published:
    """The state after a window in which the state of one table changes."""
    tso = _made(batch).tso
    tables = {name: replace(each, applied_tso=tso, ddls=()) for name, each in before.tables.items()}
    first = min(tables)
    tables[first] = replace(tables[first], ddls=(str(batch),))
    return replace(before, tso=tso, batch=batch, tables=tables)


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
