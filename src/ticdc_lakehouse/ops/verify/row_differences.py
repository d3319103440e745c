"""What differs between the rows of a key on both sides, by value: two texts may mean the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson
from pyspark.sql import SparkSession

from ticdc_lakehouse.ops.verify.chunk import Chunk
from ticdc_lakehouse.ops.verify.compared_table import ComparedTable
from ticdc_lakehouse.ops.verify.value_text import ComparedColumn
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.tidb.session import SnapshotReader, text_of

Texts = tuple[str | None, ...]
"""The texts of a row's columns."""
_ROWS_AT_ONCE = 200
_SHOWN = 60
"""Characters of a value that are printed."""


class DifferenceKind(StrEnum):
    """What differs between gold and TiDB."""

    CHANGED = "changed"
    """A cell."""
    MISSING = "missing"
    """A row that only TiDB has."""
    EXTRA = "extra"
    """A row that only the lake has."""
    COLUMN = "column"
    """A column that only one side has."""
    TABLE = "table"
    """A table that TiDB does not have."""
    MANY = "many"
    """A chunk with more such rows than are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which the lake is not what TiDB held."""

    table: TableName
    kind: DifferenceKind
    key: str | None = None
    """JSON array of the key's texts; of the whole row where there is no key."""
    column: str | None = None
    source: str | None = None
    """TiDB's text; None is NULL, or nothing."""
    lake: str | None = None

    def __str__(self) -> str:
        place = " ".join(each for each in (self.kind.value, self.key, self.column) if each is not None)
        if self.kind in (DifferenceKind.MISSING, DifferenceKind.EXTRA):
            return f"{place}: {_MEANING[self.kind]}"
        return f"{place}: TiDB has {_shown(self.source)}, the lake has {_shown(self.lake)}"


_MEANING = {
    DifferenceKind.MISSING: "TiDB has the row, the lake has not",
    DifferenceKind.EXTRA: "the lake has the row, TiDB has not",
}


def _shown(text: str | None) -> str:
    if text is None:
        return "NULL"
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def parts(hashes: Sequence[str]) -> Iterator[Sequence[str]]:
    """Returns the hashes in parts, as many at a time as one query asks for."""
    return (hashes[start : start + _ROWS_AT_ONCE] for start in range(0, len(hashes), _ROWS_AT_ONCE))


def of_keys(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, chunk: Chunk, hashes: Iterable[str]
) -> Iterator[tuple[str, list[Difference]]]:
    """Reads the rows of a chunk that have these hashes of their keys, a batch at a time, and yields each hash whose
    rows differ in value, with what they differ in."""
    for some in parts(sorted(hashes)):
        yield from _of_part(spark, source, table, chunk, some)


def _of_part(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, chunk: Chunk, hashes: Sequence[str]
) -> list[tuple[str, list[Difference]]]:
    lake_rows = spark.sql(table.lake_texts_sql(chunk, hashes)).collect()
    source_rows = source.query(table.source_texts_sql(chunk, hashes))
    width = len(table.columns)
    in_lake = _by_key((row["key_hash"], tuple(row[1 : width + 1])) for row in lake_rows)
    in_source = _by_key((text_of(row[0]) or "", tuple(map(text_of, row[1:]))) for row in source_rows)
    if not table.key:
        in_lake, in_source = _without_same(table, in_lake, in_source)
    by_key = ((key, list(row_differences(table, in_source.get(key, ()), in_lake.get(key, ())))) for key in hashes)
    return [(key, each) for key, each in by_key if each]


def _by_key(rows: Iterable[tuple[str, Texts]]) -> dict[str, list[Texts]]:
    by_key: dict[str, list[Texts]] = defaultdict(list)
    for key, texts in rows:
        by_key[key].append(texts)
    return by_key


_Rows = Mapping[str, Sequence[Texts]]


def _without_same(
    table: ComparedTable, lake: _Rows, source: _Rows
) -> tuple[dict[str, list[Texts]], dict[str, list[Texts]]]:
    """Returns the rows without a key that one side has more often than the other. Equal rows may have texts that are
    written in two ways."""
    left = [(key, row) for key, rows in lake.items() for row in rows]
    over: dict[str, list[Texts]] = defaultdict(list)
    for key, row in ((key, row) for key, rows in source.items() for row in rows):
        same = next((each for each in left if _same_rows(table.columns, row, each[1])), None)
        if same is None:
            over[key].append(row)
        else:
            left.remove(same)
    return _by_key(left), over


def _same_rows(columns: Sequence[ComparedColumn], source: Texts, lake: Texts) -> bool:
    return all(c.same(s, t) for c, s, t in zip(columns, source, lake, strict=True))


def row_differences(table: ComparedTable, source: Sequence[Texts], lake: Sequence[Texts]) -> Iterator[Difference]:
    """Yields the differences between the rows of one key, of which there is one on each side mostly."""
    if len(source) == len(lake) == 1 and table.key:
        yield from _cells(table, source[0], lake[0])
        return
    left, over = Counter(source) - Counter(lake), Counter(lake) - Counter(source)
    for kind, rows in ((DifferenceKind.MISSING, left), (DifferenceKind.EXTRA, over)):
        for row in rows.elements():
            yield Difference(table=table.name, kind=kind, key=key_text(table, row))


def _cells(table: ComparedTable, source: Texts, lake: Texts) -> Iterator[Difference]:
    for column, expected, found in zip(table.columns, source, lake, strict=True):
        if not column.same(expected, found):
            yield Difference(
                table=table.name,
                kind=DifferenceKind.CHANGED,
                key=key_text(table, source),
                column=column.name,
                source=expected,
                lake=found,
            )


def key_text(table: ComparedTable, texts: Texts) -> str:
    """Returns a row's key as a JSON array."""
    return orjson.dumps(table.key_of(texts)).decode()
