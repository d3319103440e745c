"""Which tables of a feed become tables of the lake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


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


def is_pattern(text: str) -> bool:
    """Whether the text names a database and a table."""
    database, dot, table = text.partition(".")
    return bool(database and dot and table)


def _any(patterns: tuple[str, ...], database: str, table: str) -> bool:
    return any(_compiled(pattern).fullmatch(f"{database}\0{table}") is not None for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # NUL, which no name holds, keeps a star from reaching over from the database into the table.
    database, _, table = pattern.partition(".")
    return re.compile(f"{_part(database)}\0{_part(table)}", re.IGNORECASE | re.DOTALL)


def _part(text: str) -> str:
    return "".join({"*": "[^\0]*", "?": "[^\0]"}.get(character, re.escape(character)) for character in text)
