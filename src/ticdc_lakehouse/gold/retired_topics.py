"""Topics that say nothing any more because their tables are gone.

TiCDC sends watermarks to the topics of current tables alone: with a topic a table, that of a dropped or renamed table
falls silent for ever. Before the DDL every row of the table was sent, and a watermark up to just below it. Rows of a
dropped table need not be waited for; those of a renamed one are there once that watermark is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from pyspark.sql import functions as F

from ticdc_codec.event import Kind
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import (
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropTables,
    RenameTables,
    RestoreTable,
    Statement,
)
from ticdc_lakehouse.silver import decode_stream

LastRows = Mapping[str, Mapping[TableName, int]]
"""By topic: each of its tables and the commit_ts of its last row change."""
Heard = Mapping[str, int]
"""By topic: the lowest of its partitions' highest watermarks."""


def finished_topics(lake: Lake, feed: str, since: Published, topics: Collection[str], batch: int) -> set[str]:
    """Those of the topics whose tables are all gone, as far as bronze batch ``batch``."""
    events = lake.spark.table(lake.table(Layer.SILVER, decode_stream.events_table(feed))).where(F.col("batch") <= batch)
    rows = events.where((F.col("kind") == Kind.ROW.value) & F.col("topic").isin(list(topics)))
    last: dict[str, dict[TableName, int]] = {}
    for topic, database, table, tso in rows.groupBy("topic", "database", "table").agg(F.max("commit_ts")).collect():
        tables, name = last.setdefault(topic, {}), TableName(database, table)
        tables[name] = max(tso, tables.get(name, 0))
    resolved = events.where((F.col("kind") == Kind.RESOLVED.value) & F.col("topic").isin(list(topics)))
    highest = resolved.groupBy("topic", "partition").agg(F.max("commit_ts").alias("tso"))
    heard = {line[0]: line[1] for line in highest.groupBy("topic").agg(F.min("tso")).collect()}
    ddls = events.where((F.col("kind") == Kind.DDL.value) & (F.col("commit_ts") >= since.tso))
    lines = ddls.select("commit_ts", "database", "table", "query").distinct().orderBy("commit_ts").collect()
    read = ((line[0], read_ddl(line[3], line[1], line[2])) for line in lines)
    return finished(last, heard, since, [(tso, statement) for tso, statements in read for statement in statements])


def finished(last: LastRows, heard: Heard, since: Published, ddls: Iterable[tuple[int, Statement]]) -> set[str]:
    """The topics without a table that may still change: each went after its last row, or is in gold no more."""
    gone: dict[TableName, tuple[int, Statement]] = {}
    for tso, statement in _with_one_rename(ddls):
        for name in _made(statement):
            gone.pop(name, None)
        for name in _unmade(statement, {name for tables in last.values() for name in tables}):
            gone[name] = tso, statement

    def is_gone(topic: str, name: TableName, tso: int) -> bool:
        match gone.get(name):
            case (at, RenameTables()):
                return tso <= at <= heard.get(topic, 0) + 1
            case (at, _):
                return tso <= at
        known = since.tables.get(name)
        return since.tso > 0 and (known is None or known.dropped) and tso <= since.tso

    return {topic for topic, tables in last.items() if all(is_gone(topic, name, tso) for name, tso in tables.items())}


def _with_one_rename(ddls: Iterable[tuple[int, Statement]]) -> Iterator[tuple[int, Statement]]:
    """The renames of one commit_ts as one: TiCDC sends those of one statement one by one, and through several topics
    they come in no order."""
    for tso, some in groupby(ddls, key=itemgetter(0)):
        statements = [statement for _, statement in some]
        yield from ((tso, statement) for statement in statements if not isinstance(statement, RenameTables))
        if pairs := tuple(pair for s in statements if isinstance(s, RenameTables) for pair in s.pairs):
            yield tso, RenameTables(pairs=pairs)


def _made(statement: Statement) -> list[TableName]:
    match statement:
        case CreateTable(table=table):
            return [table.name]
        case CreateTableLike(name=name):
            return [name]
        case RenameTables(pairs=pairs):
            return [new for _, new in pairs]
        case RestoreTable(to=name):
            return [name]
        case _:
            return []


def _unmade(statement: Statement, names: Collection[TableName]) -> list[TableName]:
    match statement:
        case DropTables(names=dropped):
            return list(dropped)
        case DropDatabase(database=database):
            return [name for name in names if fold(name.database) == fold(database)]
        case RenameTables(pairs=pairs):
            return [old for old, _ in pairs if old not in {new for _, new in pairs}]
        case _:
            return []
