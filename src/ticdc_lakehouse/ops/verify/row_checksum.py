"""A row's checksum, the same number in Spark's SQL and in TiDB's: two that differ show in the XOR over a chunk's rows.

It is the sum over the columns of the CRC32 of the value's text times an odd number of the column's own, times a number
made of the key. CRC32 by itself would not do, since it is linear under XOR: values that two columns swapped, or two
rows, would cancel out. An MD5 of the row's text costs either side twice the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ticdc_lakehouse.ops.verify.value_text import ComparedColumn

_CRC_BITS = 32
_SUM_BITS = 63
"""Bits of the product: neither side's BIGINT overflows."""


def lake_checksum_sql(columns: Sequence[ComparedColumn], key: Sequence[ComparedColumn]) -> str:
    """Returns Spark SQL of a row's checksum, a BIGINT from 0 on."""
    return _checksum_sql([_lake_crc_sql(c) for c in columns], [_lake_crc_sql(c) for c in key])


def source_checksum_sql(columns: Sequence[ComparedColumn], key: Sequence[ComparedColumn]) -> str:
    """Returns TiDB's SQL of a row's checksum, a BIGINT from 0 on."""
    return _checksum_sql([_source_crc_sql(c) for c in columns], [_source_crc_sql(c) for c in key])


def _lake_crc_sql(column: ComparedColumn) -> str:
    """Returns Spark SQL of a value's CRC32; NULL's is a number that no CRC32 is."""
    return f"coalesce(crc32(CAST({column.lake_text} AS BINARY)), {2**_CRC_BITS})"


def _source_crc_sql(column: ComparedColumn) -> str:
    """Returns TiDB's SQL of a value's CRC32. Without the CAST, TiDB would compute a DECIMAL, since CRC32 has no sign
    and a literal has: twice the time."""
    return f"COALESCE(CRC32({column.source_text}), CAST({2**_CRC_BITS} AS UNSIGNED))"


def _checksum_sql(columns: Sequence[str], key: Sequence[str]) -> str:
    key_bits = _SUM_BITS - _CRC_BITS - (len(columns) ** 2).bit_length()
    return f"(({_weighted_sql(key)} & {2**key_bits - 1}) + 1) * {_weighted_sql(columns)}"


def _weighted_sql(values: Sequence[str]) -> str:
    """Returns the sum of the values times 1, 3, 5, …, which add up to the square of their number."""
    return _sum_sql([f"{value} * {2 * place + 1}" for place, value in enumerate(values)])


def _sum_sql(terms: Sequence[str]) -> str:
    """Returns a sum as a balanced tree, since a parser goes one level deeper for each term of a chain."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({_sum_sql(terms[:middle])} + {_sum_sql(terms[middle:])})"
