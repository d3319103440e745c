"""What a window (W_prev, W] of silver holds, table by table, before anything is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ticdc_codec.event import Kind, Op, columns_from
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.late_rows import first_deliveries
from ticdc_lakehouse.gold.retired_topics import tables_of
from ticdc_lakehouse.planning.barriers import Barriers, barriers, unapplied_after
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    Statement,
    TruncateTable,
    names_of,
)
from ticdc_lakehouse.silver import events_table
from ticdc_lakehouse.sql.text import folded_sql, rows_sql

_EVENT = ("topic", "partition", "offset", "index")
_DDL_IDENTITY = ("commit_ts", "database", "table", "query")
_Identity = tuple[int, str | None, str | None, str]
_DEFAULTS = """
    filter(from_json(columns, 'ARRAY<STRUCT<`name`: STRING, `default`: STRING>>'), c -> c.`default` IS NOT NULL)
"""
_GROUPED_BY = ("database", "table", "columns", "is_upsert", "handle_only", "keyed", "barriers_passed")


def read_window(
    lake: Lake,
    feed: str,
    before: Published,
    tso: int,
    *,
    has_ddls: bool = True,
    replays_through: datetime | None = None,
) -> Window:
    """Returns the window after the published state ``before``, up to ``tso``; tables that lag behind are read from
    where they are blocked. Without ``has_ddls`` it surely has no DDL, and none is looked for."""
    events = _known(events_table.events(lake, feed), before, replays_through)
    past_definitions = () if replays_through is None else tuple(before.definitions.values())
    is_new = F.col("commit_ts") > before.tso
    return _window(events, before, tso, is_new, replays_through, has_ddls=has_ddls, past_definitions=past_definitions)


def read_arrivals(
    lake: Lake,
    feed: str,
    before: Published,
    tso: int,
    batch: int,
    *,
    replays_through: datetime | None,
) -> Window:
    """Returns the events of the bronze batches after those of the published state ``before``, up to ``batch``, whatever
    their commit_ts. Rows are also split at the DDLs that the published definitions come from."""
    ordered = lake.spark.sql(events_table.ordered_sql(lake, feed)).withColumn("commit_ts", F.col("commit_order"))
    events = _known(ordered, before, replays_through).where(F.col("batch") <= batch)
    arrived, is_duplicate = _with_duplicates(events, before)
    is_new = (F.col("batch") > before.batch) & ~is_duplicate
    past_definitions = tuple(before.definitions.values())
    return _window(
        arrived, before, tso, is_new, replays_through, past_definitions=past_definitions, seen_batch=before.batch
    )


def _replays_seen(before: Published, replays_through: datetime | None) -> datetime | None:
    """Returns `Window.replays_seen`."""
    return replays_through or before.replays_seen


def _known(events: DataFrame, before: Published, replays_through: datetime | None) -> DataFrame:
    """Returns the events of the window, whatever their commit_ts: without replays that ended since its start."""
    return events.where(events_table.known_sql(_replays_seen(before, replays_through)))


def _with_duplicates(events: DataFrame, before: Published) -> tuple[DataFrame, SparkColumn]:
    """Returns the events, and a column that is true for a row up to the newest DDL that gold has seen if it arrived
    before, as after a restart. The DDL may have changed its table, so that the row cannot be merged again, or renamed
    or dropped it."""
    seen = events.where((F.col("kind") == Kind.DDL.value) & (F.col("batch") <= before.batch))
    through = seen.agg(F.max("commit_ts")).collect()[0][0]
    firsts = first_deliveries(events, before, through, exact=False) if through else None
    if firsts is None:
        return events, F.lit(False)
    marked = events.join(F.broadcast(firsts.select(*_EVENT, F.lit(True).alias("_first"))), [*_EVENT], "left")
    is_row = (F.col("kind") == Kind.ROW.value) & F.col("replayed_at").isNull()
    return marked, is_row & (F.col("commit_ts") <= through) & F.col("_first").isNull()


def _window(
    events: DataFrame,
    before: Published,
    tso: int,
    is_new: SparkColumn,
    replays_through: datetime | None,
    *,
    has_ddls: bool = True,
    past_definitions: Sequence[Definition] = (),
    seen_batch: int | None = None,
) -> Window:
    """Returns the window of these events. ``seen_batch`` is the bronze batch after which a DDL is new, whatever its
    commit_ts."""
    replays = _replays(before, replays_through)
    may_be_unapplied = (F.col("commit_ts") >= first_unapplied(before)) | replays
    ddls = events.where((F.col("kind") == Kind.DDL.value) & (F.col("commit_ts") <= tso))
    wanted = may_be_unapplied if seen_batch is None else may_be_unapplied | is_new
    ddl_rows = _ddl_rows(ddls.where(wanted)) if has_ddls else []
    new_below = _new_below(ddls, ddl_rows, before.tso, replays, seen_batch)
    ddl_events = tuple(_ddl_event(row, new_below, is_arrival=seen_batch is not None) for row in ddl_rows)
    reread_after = unapplied_after(ddl_events, before, in_any_order=seen_batch is not None)
    rows = events.where((F.col("kind") == Kind.ROW.value) & (F.col("commit_ts") <= tso))
    unapplied = unapplied_rows(rows, is_new | replays, [*reread_after, *_changed_below(ddl_events, before)])
    groups = _grouped_rows(unapplied, barriers(ddl_events, before, past_definitions), replays)
    return Window(
        rows=_by_table(groups),
        ddls=ddl_events,
        replays_seen=_replays_seen(before, replays_through),
        row_changes=sum(row["rows"] for row in groups),
        topics=_topics(groups, ddl_rows, ddl_events),
    )


def first_unapplied(before: Published) -> int:
    """Returns the lowest commit_ts of a DDL that some table may not have applied. A DDL at exactly the published
    watermark may arrive after it (wire.md 2.1)."""
    applied = (state.applied_tso for state in before.tables.values() if not state.dropped)
    return min(before.tso, min(applied, default=before.tso))


def _replays(before: Published, through: datetime | None) -> SparkColumn:
    """Returns a condition on the window's events: true if one was decoded again from quarantine since the published
    state. ``through``: None if none was."""
    return F.lit(False) if through is None else F.expr(events_table.replayed_since_sql(before.replays_seen))


def unapplied_rows(rows: DataFrame, is_new: SparkColumn, reread_after: Iterable[tuple[TableName, int]]) -> DataFrame:
    """Returns the rows that are new, and those with a commit_ts above the lowest beside their name."""
    after: dict[tuple[str, ...], int] = {}
    for name, commit_ts in reread_after:
        after[name.folded] = min(commit_ts, after.get(name.folded, commit_ts))
    if not after:
        return rows.where(is_new)
    # By this condition Delta skips files, which it cannot do by one on a joined column.
    above = rows.where(is_new | (F.col("commit_ts") > min(after.values())))
    joined = _with_value_of_name(above, ("database", "table"), "_after: BIGINT", after.items())
    return joined.where(is_new | (F.col("commit_ts") > F.col("_after"))).drop("_after")


def _changed_below(ddls: Iterable[DdlEvent], before: Published) -> Iterator[tuple[TableName, int]]:
    """Yields the tables that may have to take rows again after a DDL that was dismissed before, and those that a late
    DDL makes or alters: their rows may have arrived before it. Each has the DDL's commit_ts."""
    for ddl in ddls:
        for statement in ddl.statements:
            names = names_of(statement)
            if ddl.replayed:
                yield from ((name, ddl.commit_ts) for name in names)
            elif ddl.out_of_order and _is_below(ddl, statement, before.definition_of(names[0]) if names else None):
                yield names[0], ddl.commit_ts


def _is_below(ddl: DdlEvent, statement: Statement, definition: Definition | None) -> bool:
    """True if a late DDL makes or alters the table with this published definition (None: there is none) below rows
    that are the table's own."""
    match statement:
        case CreateTable() | CreateTableLike() | TruncateTable():
            return definition is None or definition.named_at < ddl.commit_ts
        case AlterTable(of_indexes=False):
            return definition is not None and definition.mergeable_since < ddl.commit_ts
        case _:
            return False


def _grouped_rows(rows: DataFrame, barriers: Barriers, replays: SparkColumn) -> list[Row]:
    """Groups rows by topic, table, layout and the barriers that they lie between; ``replays`` is true for those that
    were replayed since the published state."""
    rows_of_groups = (
        with_barriers_passed(rows, barriers)
        .groupBy(
            "topic",
            "database",
            "table",
            "columns",
            (F.col("op") != Op.DELETE.value).alias("is_upsert"),
            F.coalesce("handle_only", F.lit(False)).alias("handle_only"),
            F.col("handle_key").isNotNull().alias("keyed"),
            "barriers_passed",
        )
        .agg(
            F.min("commit_ts").alias("first"),
            F.max("commit_ts").alias("last"),
            F.count("*").alias("rows"),
            F.max(F.coalesce(replays, F.lit(False))).alias("replayed"),
        )
        .collect()
    )
    return sorted(rows_of_groups, key=lambda row: row["first"])


def with_barriers_passed(rows: DataFrame, barriers: Barriers) -> DataFrame:
    """Returns the rows with ``barriers_passed``, as `Barriers.passed` returns it: how many barriers are below each."""
    below = F.lit(0)
    for names, barriers_of in (
        (("database", "table"), {name.folded: some for name, some in barriers.tables.items()}),
        (("database",), {(name,): some for name, some in barriers.databases.items()}),
        (("table",), {(name,): some for name, some in barriers.in_any_database.items()}),
    ):
        if not barriers_of:
            continue
        at = f"_barriers_of_{'_'.join(names)}"
        rows = _with_value_of_name(rows, names, f"{at}: ARRAY<BIGINT>", barriers_of.items())
        passed = F.size(F.filter(at, lambda barrier: barrier < F.col("commit_ts")))
        below = below + F.when(F.col(at).isNull(), 0).otherwise(passed)
    return rows.withColumn("barriers_passed", below)


def _with_value_of_name(
    rows: DataFrame, names: Sequence[str], field: str, values: Iterable[tuple[tuple[str, ...], object]]
) -> DataFrame:
    """Returns the rows with a ``field`` (name and type, as in SQL): the value of the folded ``names`` of each, NULL if
    they have none. One join, however many values there are: a condition for each would be tested on every row."""
    keys = [f"_folded_{name}" for name in names]
    columns = [*keys, field.partition(":")[0]]
    listed = [dict(zip(columns, (*name, value), strict=True)) for name, value in values]
    of_names = rows.sparkSession.sql(rows_sql(listed, ", ".join([*(f"{key}: STRING" for key in keys), field])))
    folded = {key: F.expr(folded_sql(name)) for key, name in zip(keys, names, strict=True)}
    return rows.withColumns(folded).join(F.broadcast(of_names), keys, "left").drop(*keys)


def _by_table(groups: list[Row]) -> dict[TableName, tuple[RowGroup, ...]]:
    """Returns the row groups by table; rows of one group that arrived through several topics are together."""
    parts: dict[tuple[object, ...], list[Row]] = {}
    for row in groups:
        parts.setdefault(tuple(row[name] for name in _GROUPED_BY), []).append(row)
    found: dict[TableName, list[RowGroup]] = {}
    for group in map(_row_group, parts.values()):
        found.setdefault(group.name, []).append(group)
    return {name: tuple(groups) for name, groups in found.items()}


def _row_group(parts: Sequence[Row]) -> RowGroup:
    row = parts[0]
    return RowGroup(
        name=TableName(row["database"], row["table"]),
        columns=columns_from(row["columns"]),
        is_upsert=row["is_upsert"],
        handle_only=row["handle_only"],
        keyed=row["keyed"],
        first=min(part["first"] for part in parts),
        last=max(part["last"] for part in parts),
        rows=sum(part["rows"] for part in parts),
        replayed=any(part["replayed"] for part in parts),
    )


def _topics(
    groups: Iterable[Row], ddl_rows: Iterable[Row], ddls: Iterable[DdlEvent]
) -> dict[str, frozenset[TableName]]:
    """Returns by topic the tables of its rows and of its DDLs."""
    found: dict[str, set[TableName]] = {}
    for group in groups:
        found.setdefault(group["topic"], set()).add(TableName(group["database"], group["table"]))
    for row, ddl in zip(ddl_rows, ddls, strict=True):
        for topic in row["topics"]:
            found.setdefault(topic, set()).update(name for each in ddl.statements for name in tables_of(each))
    return {topic: frozenset(names) for topic, names in found.items()}


def _ddl_rows(ddls: DataFrame) -> list[Row]:
    """Returns each DDL once, in commit order, equal commit_ts in the order of arrival."""
    arrival = F.min(F.struct("topic", "partition", "offset", "index")).alias("arrival")
    newest_replay, topics = F.max("replayed_at").alias("newest_replay"), F.collect_set("topic").alias("topics")
    defaults = F.max(F.expr(_DEFAULTS)).alias("defaults")
    rows = ddls.groupBy(*_DDL_IDENTITY).agg(arrival, newest_replay, topics, defaults).collect()
    return sorted(rows, key=lambda row: (row["commit_ts"], row["arrival"]))


def _identity(row: Row) -> _Identity:
    return row["commit_ts"], row["database"], row["table"], row["query"]


def _new_below(
    ddls: DataFrame, ddl_rows: Sequence[Row], tso: int, replays: SparkColumn, seen_batch: int | None
) -> Set[_Identity]:
    """Returns the DDLs below ``tso`` of which gold has seen no copy: none except replays since the published state, and
    in eventual mode what is in batches after the bronze batch ``seen_batch``."""
    with_copies = (row for row in ddl_rows if seen_batch is not None or row["newest_replay"] is not None)
    below = {_identity(row) for row in with_copies if row["commit_ts"] < tso}
    if not below:
        return below
    copies = ddls.where(F.col("commit_ts").isin([identity[0] for identity in below]))
    earlier = copies.where(~F.coalesce(replays, F.lit(False)))  # a replay is in the batch of its message
    if seen_batch is not None:
        earlier = earlier.where(F.col("batch") <= seen_batch)
    seen = [_identity(row) for row in earlier.select(*_DDL_IDENTITY).distinct().collect()]
    known = [_understood(each) for each in seen]
    return {each for each in below.difference(seen) if _understood(each) not in known}


def _understood(identity: _Identity) -> tuple[int, object]:
    """Returns a DDL as it is understood, with its commit_ts: another version of TiCDC may send it again in a text of
    its own. One that is not understood is known by its text."""
    commit_ts, database, table, query = identity
    return commit_ts, statements_of(query, database, table) or identity


def _ddl_event(row: Row, new_below: Set[_Identity], *, is_arrival: bool) -> DdlEvent:
    is_new_below = _identity(row) in new_below
    return DdlEvent(
        commit_ts=row["commit_ts"],
        database=row["database"],
        table=row["table"],
        query=row["query"],
        statements=statements_of(row["query"], row["database"], row["table"]),
        defaults=dict(row["defaults"] or ()),
        topic=row["arrival"]["topic"],
        out_of_order=is_new_below and is_arrival,
        replayed=is_new_below and not is_arrival,
    )
