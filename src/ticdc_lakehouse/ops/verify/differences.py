"""What differs in a table, as people read it: rows and cells, out of the texts of rows whose hashes differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import orjson
from pyspark.sql import SparkSession

from ticdc_lakehouse.ops.verify.compared_table import ComparedTable
from ticdc_lakehouse.ops.verify.comparison import Comparison, DifferentRows, Unlisted
from ticdc_lakehouse.ops.verify.row_differences import Difference, DifferenceKind, of_keys
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.tidb.session import SnapshotReader


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentKeys:
    """A chunk, and the key hashes of its rows that do differ in value."""

    rows: DifferentRows
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The differences of one table."""

    first: tuple[Difference, ...] = ()
    """At most the requested number."""
    rows: int = 0
    """How many rows differ, those of chunks that were only counted among them as far as their numbers differ."""
    keys: tuple[DifferentKeys, ...] = ()
    instants: frozenset[str] = frozenset()
    """The TIMESTAMPs in the keys of these rows, as texts in UTC."""
    unlisted: tuple[Unlisted, ...] = ()


def differences(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, comparison: Comparison, limit: int
) -> Differences:
    """Reads the rows that differ from both sides, a batch at a time, and lists what differs in them: the first
    ``limit`` differences."""
    first: list[Difference] = []
    keys: list[DifferentKeys] = []
    instants: set[str] = set()
    for rows in comparison.different:
        different: list[str] = []
        for key, of_key in of_keys(spark, source, table, rows.chunk, rows.keys):
            different.append(key)
            instants.update(_instants(table, of_key))
            first.extend(of_key[: max(0, limit - len(first))])
        if different:
            keys.append(DifferentKeys(rows=rows, keys=tuple(different)))
    first.extend(_many(table, each) for each in comparison.unlisted)
    listed = sum(len(each.keys) for each in keys)
    counted = sum(max(1, abs(each.lake.rows - each.source.rows)) for each in comparison.unlisted)
    return Differences(
        first=tuple(first),
        rows=listed + counted,
        keys=tuple(keys),
        instants=frozenset(instants),
        unlisted=comparison.unlisted,
    )


def _instants(table: ComparedTable, different: Iterable[Difference]) -> Iterator[str]:
    """Yields the TIMESTAMPs in the keys of rows that differ."""
    if places := table.instants_in_key:
        for each in different:
            texts = orjson.loads(each.key or "")
            yield from (texts[place] for place in places)


def _many(table: ComparedTable, chunk: Unlisted) -> Difference:
    return Difference(
        table=table.name,
        kind=DifferenceKind.MANY,
        key=chunk.chunk.source,
        source=f"{chunk.source.rows} rows",
        lake=f"{chunk.lake.rows} rows",
    )


def column_differences(name: TableName, only_lake: Iterable[str], only_source: Iterable[str]) -> list[Difference]:
    """Returns the columns that only one side has."""
    lake = (Difference(table=name, kind=DifferenceKind.COLUMN, column=each, lake="a column") for each in only_lake)
    source = (
        Difference(table=name, kind=DifferenceKind.COLUMN, column=each, source="a column") for each in only_source
    )
    return list(chain(lake, source))
