"""Names of databases, tables and columns, compared as TiDB compares them: without case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

FOLDED_APART = str.maketrans("İΣ", "iσ")  # noqa: RUF001
"""Capitals whose small letter is TiDB's only without their context and without full case mapping: Python and Java make
``i̇`` of the first, and of the second, at the end of a word, a final sigma."""


@lru_cache(maxsize=100_000)
def fold(text: str) -> str:
    """The text under which TiDB finds a name, each code point lowered by itself.

    Source: NewCIStr of TiDB's parser, Go's strings.ToLower; wire.md 8.14.

    >>> fold("Straße"), fold("İstanbul"), fold("ΟΔΟΣ")
    ('straße', 'istanbul', 'οδοσ')
    """
    return text.translate(FOLDED_APART).lower()


def spark_names(text: str) -> tuple[str, str]:
    """The texts under which Spark finds a column: names of which either one is equal are one name there.

    Java's ``equalsIgnoreCase`` compares capitals, of which several small letters have the same, and ``toLowerCase``
    makes two letters of İ and a final sigma of Σ. TiDB does neither.
    """
    capitals = (c if len(c.upper()) > 1 else c.upper() for c in text)
    return fold("".join(capitals)), text.lower()


class TableName(NamedTuple):
    """The name of a table: shown as it is spelled, equal, hashed and sorted as TiDB compares names.

    >>> TableName("Shop", "Orders") == TableName("shop", "ORDERS")
    True
    """

    database: str
    table: str

    @property
    def folded(self) -> tuple[str, str]:
        """Both parts as TiDB compares them."""
        return fold(self.database), fold(self.table)

    def __eq__(self, other: object) -> bool:
        match other:
            case (str(database), str(table)):
                return self.folded == (fold(database), fold(table))
            case _:
                return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.folded)

    def __lt__(self, other: tuple[str, ...]) -> bool:
        return self.folded < tuple(map(fold, other))

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


def by_text(names: Iterable[TableName]) -> dict[str, TableName]:
    """The tables by ``database.table``. Either part may have dots: those that would have one text, as TiDB compares
    it, stand in backquotes.

    >>> [*by_text([TableName("a", "b"), TableName("a.b", "c"), TableName("a", "b.c")])]
    ['a.b', '`a.b`.`c`', '`a`.`b.c`']
    """
    names = tuple(names)
    tables = Counter(fold(str(name)) for name in names)
    return {str(name) if tables[fold(str(name))] == 1 else _in_backquotes(name): name for name in names}


def _in_backquotes(name: TableName) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)
