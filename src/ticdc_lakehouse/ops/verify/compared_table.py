"""One table on both sides: the queries whose answers must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.ops.verify.chunk import Chunk, has_common_order, prefix_sql
from ticdc_lakehouse.ops.verify.row_checksum import lake_checksum_sql, source_checksum_sql
from ticdc_lakehouse.ops.verify.value_text import ComparedColumn, lake_hash_sql, source_hash_sql
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import typed_columns
from ticdc_lakehouse.tidb.columns import SourceColumn

HASH_BITS = 64
_HASH_DIGITS = HASH_BITS // 4


@dataclass(frozen=True, slots=True)
class Checksum:
    """Checksum of a chunk's rows. A value that differs is overlooked with a probability of 2**-32, and never where the
    two texts are of one length and differ only in up to four neighbouring bytes (`row_checksum`: it is CRC32's)."""

    rows: int = 0
    hash: int = 0

    @classmethod
    def of(cls, rows: int, aggregate: object) -> Checksum:
        """Makes a checksum from a query's row: Spark's hashes are signed, TiDB's are not, and without rows the hash is
        NULL."""
        return cls(rows, int(str(aggregate or 0)) % 2**HASH_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A table that is in the lake and in TiDB, with the columns that both have."""

    name: TableName
    rows: str
    """Spark SQL of the live table at the version to compare, for a FROM."""
    source: str
    """TiDB's name of the table."""
    columns: tuple[ComparedColumn, ...]
    key: tuple[ComparedColumn, ...]
    """Empty for a table without a handle key."""

    @property
    def has_key_order(self) -> bool:
        """True if chunks can be ranges of the key."""
        return bool(self.key) and all(map(has_common_order, self.key))

    @property
    def lake_key_hash(self) -> str:
        """Spark SQL: MD5 of the key, of the whole row where there is no key."""
        return lake_hash_sql(self.key or self.columns)

    @property
    def source_key_hash(self) -> str:
        """TiDB's SQL: MD5 of the key, of the whole row where there is no key."""
        return source_hash_sql(self.key or self.columns)

    def lake_checksums_sql(self, number: str, within: Chunk) -> str:
        """Returns Spark SQL of (number, rows, hash) of each chunk that has rows; ``number`` is SQL of a row's chunk."""
        rows = f"SELECT {number} AS number, {self._lake_checksum} AS hash FROM {self.rows} WHERE {within.lake}"
        return f"SELECT number, count(*) AS rows, {self._lake_aggregate} AS hash FROM ({rows}) GROUP BY number"

    @property
    def _lake_checksum(self) -> str:
        if self.key:
            return lake_checksum_sql(self.columns, self.key)
        return f"CAST(conv({prefix_sql(self.lake_key_hash, _HASH_DIGITS)}, 16, -10) AS BIGINT)"

    @property
    def _lake_aggregate(self) -> str:
        """Spark SQL of a chunk's hash. Rows that are equal cancel each other out in a XOR, and without a key there may
        be such rows: then it is a sum."""
        return "bit_xor(hash)" if self.key else "sum(CAST(hash AS DECIMAL(20,0)))"

    def source_checksum_sql(self, chunk: Chunk) -> str:
        """Returns TiDB's SQL of (rows, hash) of a chunk."""
        return f"SELECT COUNT(*), {self._source_aggregate} FROM {self.source} WHERE {chunk.source}"

    def source_checksums_sql(self, digits: int) -> str:
        """Returns TiDB's SQL of (prefix, rows, hash) of all rows, by the first digits of their hash."""
        prefix = prefix_sql(self.source_key_hash, digits)
        return f"SELECT {prefix}, COUNT(*), {self._source_aggregate} FROM {self.source} GROUP BY {prefix}"

    @property
    def _source_aggregate(self) -> str:
        if self.key:
            return f"BIT_XOR({source_checksum_sql(self.columns, self.key)})"
        return f"SUM(CAST(CONV({prefix_sql(self.source_key_hash, _HASH_DIGITS)}, 16, 10) AS UNSIGNED))"

    def lake_hashes_sql(self, chunk: Chunk) -> str:
        """Returns Spark SQL of (key_hash, row_hash) of each row of a chunk."""
        hashes = f"{self.lake_key_hash} AS key_hash, {lake_hash_sql(self.columns)} AS row_hash"
        return f"SELECT {hashes} FROM {self.rows} WHERE {chunk.lake}"

    def source_hashes_sql(self, chunk: Chunk) -> str:
        """Returns TiDB's SQL of (key_hash, row_hash) of each row of a chunk."""
        return f"SELECT {self.source_key_hash}, {source_hash_sql(self.columns)} FROM {self.source} WHERE {chunk.source}"

    def lake_texts_sql(self, chunk: Chunk, hashes: Sequence[str]) -> str:
        """Returns Spark SQL of the key hash and the texts of all columns of the rows with these key hashes, then gold's
        key."""
        texts = ", ".join(f"{column.lake_text} AS t{i}" for i, column in enumerate(self.columns))
        where = f"{chunk.lake} AND {self.lake_key_hash} IN ({_listed(hashes)})"
        return f"SELECT {self.lake_key_hash} AS key_hash, {texts}, {KEY} FROM {self.rows} WHERE {where}"

    def source_texts_sql(self, chunk: Chunk, hashes: Sequence[str]) -> str:
        """Returns TiDB's SQL of the key hash and the texts of all columns of the rows with these key hashes."""
        texts = ", ".join(column.source_text for column in self.columns)
        where = f"{chunk.source} AND {self.source_key_hash} IN ({_listed(hashes)})"
        return f"SELECT {self.source_key_hash}, {texts} FROM {self.source} WHERE {where}"

    def key_of(self, texts: Sequence[str | None]) -> tuple[str | None, ...]:
        """Returns the key's texts out of those of a row; the whole row where there is no key."""
        return tuple(text for column, text in zip(self.columns, texts, strict=True) if column in (self.key or [column]))

    @property
    def instants_in_key(self) -> list[int]:
        """Where the TIMESTAMPs are in what `key_of` returns."""
        key = [column for column in self.columns if column in self.key]
        return [at for at, column in enumerate(key) if column.typed.definition.type.family is Family.TIMESTAMP]


def _listed(hashes: Sequence[str]) -> str:
    return ", ".join(f"'{each}'" for each in hashes)


def compared_table(
    table: Table, rows: str, columns: Sequence[SourceColumn]
) -> tuple[ComparedTable, list[str], list[str]]:
    """Returns the table with the columns that both sides have, those that only the lake has, and those that only TiDB
    has; ``columns`` are TiDB's, without the virtual ones."""
    source_columns = {fold(column.name): column for column in columns}
    typed = typed_columns(table)
    common = tuple(
        ComparedColumn(typed=c, source=source_columns[fold(c.name)]) for c in typed if fold(c.name) in source_columns
    )
    by_name = {fold(column.name): column for column in common}
    names = [fold(name) for name in table.key]
    compared = ComparedTable(
        name=table.name,
        rows=rows,
        source=f"{quoted(table.database)}.{quoted(table.table)}",
        columns=common,
        key=tuple(by_name[name] for name in names) if by_name.keys() >= set(names) else (),
    )
    only_source = [column.name for column in columns if fold(column.name) not in by_name]
    return compared, [c.name for c in typed if fold(c.name) not in source_columns], only_source
