"""The tables and transactions of sysbench's ``oltp_write_only``, over few rows, so that rows change again and again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ticdc_testkit.workload.database import Database, Rows

TABLES = 4
_ROWS = 1000
"""Rows that each table begins with."""
_LOADED_AT_ONCE = 100
_TABLE = """
CREATE TABLE `sbtest{number}` (
  `id` int(11) NOT NULL,
  `k` int(11) NOT NULL,
  `c` char(120) NOT NULL,
  `pad` char(60) NOT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */,
  KEY `k_{number}` (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
"""
SCHEMA = "USE `sbtest`;\n" + "".join(_TABLE.format(number=number) for number in range(1, TABLES + 1))


def transactions(database: Database, random: Random) -> Iterator[None]:
    """Runs ``prepare``, then ``run``: an index update, another update, and a row that is deleted and inserted again,
    which TiCDC sends as an update (wire.md 8.11)."""
    for rows in database.tables.values():
        for first in range(1, _ROWS + 1, _LOADED_AT_ONCE):
            for number in range(first, first + _LOADED_AT_ONCE):
                _insert(rows, str(number), random)
            yield
    tables = [*database.tables.values()]
    while True:
        rows = random.choice(tables)
        rows.update(key := rows.any_key(random), k=str(int(rows[key]["k"] or 0) + 1))
        rows.update(rows.any_key(random), c=_digits(random, 10))
        (freed,) = key = rows.any_key(random)
        rows.delete(key)
        _insert(rows, str(freed), random)
        yield


def _insert(rows: Rows, number: str, random: Random) -> None:
    rows.insert(id=number, k=str(random.randrange(1, _ROWS)), c=_digits(random, 10), pad=_digits(random, 5))


def _digits(random: Random, groups: int) -> str:
    """Returns groups of eleven digits, as sysbench fills its texts."""
    return "-".join(f"{random.randrange(10**11):011}" for _ in range(groups))
