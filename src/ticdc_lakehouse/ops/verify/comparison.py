"""A table compared chunk by chunk: checksums of both sides, then the hashes of the rows of chunks that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from pyspark.sql import SparkSession

from ticdc_lakehouse.ops.verify.chunk import Bound, Chunk, bucket, key_ranges, lake_order, prefix_sql, range_number_sql
from ticdc_lakehouse.ops.verify.compared_table import Checksum, ComparedTable
from ticdc_lakehouse.ops.verify.row_differences import of_keys
from ticdc_lakehouse.session_settings import generated_code
from ticdc_lakehouse.tidb.session import SnapshotReader, text_of

CHUNK_ROWS = 20_000
"""Rows of a chunk whose rows are hashed one by one where it differs."""
_MOST_RANGES = 256
"""Ranges at once; one that differs and has more than twice CHUNK_ROWS is split again."""
_SAMPLED = 16
"""Keys sampled for each bound."""
_MOST_LISTED = 100_000
"""Rows of a table that are listed as different in value; a chunk beyond is only counted."""
_MOST_DIGITS = 4

_Hashes = Counter[tuple[str, str]]
"""(hash of the key, hash of the row) to how many rows have both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentRows:
    """The rows of a chunk that one side has, and the other does not have with the same values."""

    chunk: Chunk
    lake: _Hashes = field(default_factory=Counter)
    source: _Hashes = field(default_factory=Counter)

    @property
    def keys(self) -> set[str]:
        """The hashes of their keys."""
        return {key for key, _ in (*self.lake, *self.source)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """A chunk that differs in more rows than are listed."""

    chunk: Chunk
    lake: Checksum
    source: Checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What comparing a table has found."""

    rows: int = 0
    """Number of TiDB's rows."""
    chunks: int = 0
    different: tuple[DifferentRows, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compared:
    chunk: Chunk
    lake: Checksum
    source: Checksum

    @property
    def equal(self) -> bool:
        return self.lake == self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedChunks:
    """Like `Comparison`, before the rows of chunks are compared."""

    rows: int
    chunks: int
    different: list[_Compared]


def compare(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, *, chunk_rows: int = CHUNK_ROWS
) -> Comparison:
    """Compares a table's rows. ``source`` reads at the TSO of the version that ``table.rows`` names."""
    rows = _lake_rows(spark, table, Chunk())
    by = _ranges if table.has_key_order else _buckets
    with generated_code(spark, rows):
        compared = by(spark, source, table, rows, chunk_rows)
    different, unlisted = _list_rows(spark, source, table, compared.different, chunk_rows)
    return Comparison(
        rows=compared.rows,
        chunks=compared.chunks,
        different=tuple(without_moved(different)),
        unlisted=tuple(unlisted),
    )


def _list_rows(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, compared: Iterable[_Compared], chunk_rows: int
) -> tuple[list[DifferentRows], list[Unlisted]]:
    """Returns the rows that differ, and the chunks that are only counted. Rows that differ in text are compared by
    value once there are more of them than are listed: only what differs in value counts."""
    by_value: list[DifferentRows] = []
    by_text: list[DifferentRows] = []
    unlisted: list[Unlisted] = []
    for part in compared:
        if _count(by_value) + _count(by_text) > _MOST_LISTED:
            by_value += (_by_value(spark, source, table, each) for each in without_moved(by_text))
            by_text = []
        if part.lake.rows + part.source.rows > 4 * chunk_rows or _count(by_value) > _MOST_LISTED:
            unlisted.append(Unlisted(chunk=part.chunk, lake=part.lake, source=part.source))
        else:
            by_text.append(_different_rows(spark, source, table, part.chunk))
    return [*by_value, *by_text], unlisted


def _count(different: Iterable[DifferentRows]) -> int:
    return sum(len(each.lake) + len(each.source) for each in different)


def _by_value(spark: SparkSession, source: SnapshotReader, table: ComparedTable, rows: DifferentRows) -> DifferentRows:
    """Returns those of the rows that differ in value, too."""
    keys = {key for key, _ in of_keys(spark, source, table, rows.chunk, rows.keys)}
    lake, in_source = (_of(each, keys) for each in (rows.lake, rows.source))
    return DifferentRows(chunk=rows.chunk, lake=lake, source=in_source)


def _of(hashes: _Hashes, keys: Container[str]) -> _Hashes:
    """Returns the rows with these hashes of their keys."""
    return Counter({(key, row): count for (key, row), count in hashes.items() if key in keys})


def _lake_rows(spark: SparkSession, table: ComparedTable, chunk: Chunk) -> int:
    return int(spark.sql(f"SELECT count(*) FROM {table.rows} WHERE {chunk.lake}").collect()[0][0])


def _ranges(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, rows: int, chunk_rows: int
) -> _ComparedChunks:
    """Compares ranges of the key; those that differ are split as far as possible. ``rows`` are the lake's."""
    small: list[_Compared] = []
    source_rows = chunks = 0
    pending = [(Chunk(), rows)]
    while pending:
        within, rows = pending.pop()
        bounds = _bounds(spark, table, within, rows, chunk_rows)
        compared = _compare_ranges(spark, source, table, bounds, within)
        chunks += len(compared) - (within != Chunk())
        if within == Chunk():
            source_rows = sum(each.source.rows for each in compared)
        for each in (each for each in compared if not each.equal):
            if 2 * chunk_rows < each.lake.rows < rows:
                pending.append((each.chunk, each.lake.rows))
            else:
                small.append(each)
    return _ComparedChunks(rows=source_rows, chunks=chunks, different=small)


def _bounds(spark: SparkSession, table: ComparedTable, within: Chunk, rows: int, chunk_rows: int) -> list[Bound]:
    """Returns keys that split the lake's ``rows`` of a range into equal parts, estimated from a sample."""
    ranges = min(_MOST_RANGES, -(-rows // chunk_rows))
    if ranges < 2:
        return []
    texts = ", ".join(f"{column.lake_text} AS k{i}" for i, column in enumerate(table.key))
    orders = ", ".join(f"{lake_order(column)} AS o{i}" for i, column in enumerate(table.key))
    by = ", ".join(f"o{i}" for i in range(len(table.key)))
    sampled = (
        f"SELECT {texts}, {orders} FROM {table.rows} WHERE {within.lake} AND rand(1) < {_sample_part(rows, ranges)}"
    )
    names = ", ".join(f"k{i}" for i in range(len(table.key)))
    regular = " AND ".join(f"o{i} IS NOT NULL" for i in range(len(table.key)))
    answer = spark.sql(f"SELECT {names} FROM ({sampled}) WHERE {regular} ORDER BY {by}").collect()
    return quantiles([tuple(row) for row in answer], ranges)


def _sample_part(rows: int, ranges: int) -> float:
    """Returns the part of the rows to sample."""
    return min(1.0, _SAMPLED * ranges / rows)


def quantiles(sample: Sequence[Bound], ranges: int) -> list[Bound]:
    """Returns the bounds of ``ranges`` ranges, or of fewer, out of an ordered sample.

    >>> quantiles([("1",), ("2",), ("2",), ("3",)], 4)
    [('2',), ('3',)]
    """
    chosen = [sample[number * len(sample) // ranges] for number in range(1, ranges)] if sample else []
    return [bound for before, bound in pairwise([(), *chosen]) if bound != before]


def _compare_ranges(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, bounds: Sequence[Bound], within: Chunk
) -> list[_Compared]:
    chunks = key_ranges(table.key, bounds, within)
    with ThreadPoolExecutor(1) as pool:
        lake_job = pool.submit(spark.sql(table.lake_checksums_sql(range_number_sql(table.key, bounds), within)).collect)
        answers = source.query_all([table.source_checksum_sql(chunk) for chunk in chunks])
        lake = {row["number"]: Checksum.of(row["rows"], row["hash"]) for row in lake_job.result()}
    return [
        _Compared(chunk, lake.get(number, Checksum()), Checksum.of(*answer[0]))
        for number, (chunk, answer) in enumerate(zip(chunks, answers, strict=True))
    ]


def _buckets(
    spark: SparkSession, source: SnapshotReader, table: ComparedTable, rows: int, chunk_rows: int
) -> _ComparedChunks:
    """Compares the parts of the rows by the first digits of their hash; some that differ are together. ``rows`` are the
    lake's."""
    digits = bucket_digits(rows, chunk_rows)
    number = prefix_sql(table.lake_key_hash, digits)
    with ThreadPoolExecutor(1) as pool:
        lake_job = pool.submit(spark.sql(table.lake_checksums_sql(number, Chunk())).collect)
        answer = source.query(table.source_checksums_sql(digits))
        lake_sums = {row["number"]: Checksum.of(row["rows"], row["hash"]) for row in lake_job.result()}
    source_sums = {text_of(prefix) or "": Checksum.of(count, aggregate) for prefix, count, aggregate in answer}
    differ = [p for p in sorted({*lake_sums, *source_sums}) if lake_sums.get(p) != source_sums.get(p)]
    different = [
        _Compared(
            bucket(table.lake_key_hash, table.source_key_hash, prefixes),
            _sum(lake_sums, prefixes),
            _sum(source_sums, prefixes),
        )
        for prefixes in bucket_groups(
            differ,
            {p: lake_sums.get(p, Checksum()).rows + source_sums.get(p, Checksum()).rows for p in differ},
            4 * chunk_rows,
        )
    ]
    source_rows = sum(each.rows for each in source_sums.values())
    return _ComparedChunks(rows=source_rows, chunks=16**digits, different=different)


def _sum(checksums: Mapping[str, Checksum], prefixes: Sequence[str]) -> Checksum:
    """Returns a checksum of some buckets together: their rows, and no hash that means anything."""
    return Checksum(sum(checksums[prefix].rows for prefix in prefixes if prefix in checksums))


def bucket_groups(prefixes: Sequence[str], rows: Mapping[str, int], most: int) -> list[list[str]]:
    """Returns buckets in groups of at most ``most`` rows, since each group is a scan of TiDB's table.

    >>> bucket_groups(["a", "b", "c"], {"a": 3, "b": 4, "c": 5}, 8)
    [['a', 'b'], ['c']]
    """
    groups: list[list[str]] = []
    for prefix in prefixes:
        if groups and sum(rows[each] for each in groups[-1]) + rows[prefix] <= most:
            groups[-1].append(prefix)
        else:
            groups.append([prefix])
    return groups


def bucket_digits(rows: int, chunk_rows: int) -> int:
    """Returns how many first digits of the hash split ``rows`` rows into buckets of ``chunk_rows`` at most: 4 or
    fewer."""
    enough = (digits for digits in range(1, _MOST_DIGITS) if rows <= chunk_rows * 16**digits)
    return next(enough, _MOST_DIGITS)


def _different_rows(spark: SparkSession, source: SnapshotReader, table: ComparedTable, chunk: Chunk) -> DifferentRows:
    lake = spark.sql(table.lake_hashes_sql(chunk)).toArrow()
    in_lake = Counter(zip(lake["key_hash"].to_pylist(), lake["row_hash"].to_pylist(), strict=True))
    answer = source.query(table.source_hashes_sql(chunk))
    in_source = Counter((text_of(key) or "", text_of(row) or "") for key, row in answer)
    return DifferentRows(chunk=chunk, lake=in_lake - in_source, source=in_source - in_lake)


def without_moved(different: Sequence[DifferentRows]) -> list[DifferentRows]:
    """Removes rows that both sides have, in neighbouring chunks: an irregular date is NULL in the lake, so the two
    sides may order it differently."""
    lake: _Hashes = sum((each.lake for each in different), Counter())
    source: _Hashes = sum((each.source for each in different), Counter())
    moved = lake & source
    cleaned = (DifferentRows(chunk=e.chunk, lake=e.lake - moved, source=e.source - moved) for e in different)
    return [each for each in cleaned if each.lake or each.source]
