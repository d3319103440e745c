"""Which tables of a feed become tables of the lake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_OTHER_SYNTAX = re.compile(r"""[`"\[\]/\\]""")
"""Of TiCDC's filter rules: quotes, sets of characters, regular expressions. Here they would match nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """Patterns ``database.table`` with ``*`` (any text) and ``?`` (one character).

    As in TiDB, letter case does not matter.
    """

    include: tuple[str, ...] = ("*.*",)
    exclude: tuple[str, ...] = ()
    """Wins over ``include``."""

    def matches(self, database: str, table: str) -> bool:
        """Whether the table belongs to the feed."""
        return _any(self.include, database, table) and not _any(self.exclude, database, table)


def pattern_mistake(text: str) -> str | None:
    """What is wrong with a pattern; None if it is right."""
    database, dot, table = text.partition(".")
    if text.startswith("!"):
        return "expected a pattern without !: tables.exclude says what is left out"
    if _OTHER_SYNTAX.search(text):
        return "expected no quotes, brackets or slashes, but * and ?, such as shop.order_* (? is any character)"
    if not (database and dot and table):
        return "expected database.table, each with * and ? as you like"
    if (database, table) != (database.strip(), table.strip()):
        return "expected no spaces around the names, such as shop.order_*"
    return None


def _any(patterns: tuple[str, ...], database: str, table: str) -> bool:
    return any(_compiled(pattern).fullmatch(f"{database}\0{table}") is not None for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # NUL, which no name holds, keeps a star from reaching over from the database into the table.
    database, _, table = pattern.partition(".")
    return re.compile(f"{_part(database)}\0{_part(table)}", re.IGNORECASE | re.DOTALL)


def _part(text: str) -> str:
    return "".join({"*": "[^\0]*", "?": "[^\0]"}.get(character, re.escape(character)) for character in text)
