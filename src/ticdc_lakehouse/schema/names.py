"""Names of databases, tables and columns, compared as TiDB compares them: without case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ticdc_codec.name_case import fold


def spark_names(text: str) -> tuple[str, str]:
    """Returns the texts under which Spark finds a column: names of which either one is equal are one name there.

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
    """Returns the tables by ``database.table``, in the order of ``names``. Either part may have dots: those that would
    have one text, as TiDB compares it, stand in backquotes. So does a name that begins with a backquote.

    >>> [*by_text([TableName("a", "b"), TableName("a.b", "c"), TableName("a", "b.c")])]
    ['a.b', '`a.b`.`c`', '`a`.`b.c`']
    """
    names = tuple(dict.fromkeys(names))
    tables = Counter(fold(str(name)) for name in names)
    # Else the text of a table in database `a.b could be that of another one in backquotes.
    plain = {name for name in names if tables[fold(str(name))] == 1 and not str(name).startswith("`")}
    return {str(name) if name in plain else _in_backquotes(name): name for name in names}


def texts_of(names: Iterable[TableName]) -> dict[TableName, str]:
    """Returns the text of each table among these, as `by_text` has it."""
    return {name: text for text, name in by_text(names).items()}


def table_named(text: str, names: Iterable[TableName]) -> TableName | None:
    """Returns the table among these that ``text`` names as `by_text` does, compared without case; None if there is
    none.

    >>> table_named("SHOP.orders", [TableName("shop", "orders")])
    TableName(database='shop', table='orders')
    """
    return {fold(known): name for known, name in by_text(names).items()}.get(fold(text))


def _in_backquotes(name: TableName) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)
