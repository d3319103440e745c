"""Which tables of a feed become tables of the lake."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from ticdc_codec.name_case import fold

_OTHER_SYNTAX = re.compile(r"""[`"\[\]/\\]""")
"""Syntax of TiCDC's filter rules: quotes, sets of characters, regular expressions. Here it would match nothing."""


class TablePattern(str):
    """``database.table`` with ``*`` (any text) and ``?`` (one character)."""

    __slots__ = ()

    expected: ClassVar[str] = "database.table, each with * and ? as you like"
    json_schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "pattern": r"""^[^!\s.`"\[\]/\\][^.`"\[\]/\\]*\.[^`"\[\]/\\]*[^\s`"\[\]/\\]$""",
    }

    @classmethod
    def parse(cls, value: object) -> TablePattern:
        """Returns the pattern. Raises ValueError that says what is expected."""
        mistake = _mistake(value) if isinstance(value, str) else cls.expected
        if mistake is not None:
            raise ValueError(mistake)
        return cls(value)


class TableFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tables become tables of the lake. As in TiDB, letter case does not matter. A table that is left out
    later goes out of gold with the next run, as by a DROP: its views go, and `as_of` reads it at earlier TSOs for
    `gold.retention_days`. One that is included later, or again, starts empty: load it from an export. Leave out what
    the changefeed's own filter leaves out, too: of a table that a RENAME moves there TiCDC sends the RENAME and no row
    after it, and the lake would show it unchanged for ever."""

    include: Annotated[tuple[TablePattern, ...], Meta(min_length=1, description="The tables of these patterns.")] = (
        field(default_factory=lambda: (TablePattern("*.*"),))
    )
    exclude: Annotated[
        tuple[TablePattern, ...], Meta(description="All but the tables of these patterns; wins over `include`.")
    ] = ()

    def matches(self, database: str, table: str) -> bool:
        """True if the table belongs to the feed."""
        return _any(self.include, database, table) and not _any(self.exclude, database, table)

    @property
    def leaves_nothing(self) -> bool:
        """True if each included pattern is inside one that is excluded. Several that exclude it only together are not
        found."""
        # A star of the outer pattern also takes the stars of the inner one; a ? would take a star for one character.
        outer = tuple(pattern for pattern in self.exclude if "?" not in pattern)
        return all(_any(outer, *pattern.split(".", 1)) for pattern in self.include)


def fits(pattern: str, database: str, table: str) -> bool:
    """True if a table's name is one of a pattern, compared as TiDB compares names."""
    # NUL, which no name holds, keeps a star from matching from the database into the table.
    return _compiled(pattern).fullmatch(fold(f"{database}\0{table}")) is not None


def _mistake(text: str) -> str | None:
    """Returns what is expected in place of a pattern; None if it is right."""
    database, dot, table = text.partition(".")
    if text.startswith("!"):
        return "a pattern without !: tables.exclude says what is left out"
    if _OTHER_SYNTAX.search(text):
        return "no quotes, brackets or slashes, but * and ?, such as shop.order_* (? is any character)"
    if not (database and dot and table):
        return TablePattern.expected
    if (database, table) != (database.strip(), table.strip()):
        return "no spaces around the names, such as shop.order_*"
    return None


def _any(patterns: tuple[str, ...], database: str, table: str) -> bool:
    return any(fits(pattern, database, table) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    database, _, table = fold(pattern).partition(".")
    return re.compile(f"{_part(database)}\0{_part(table)}", re.DOTALL)


def _part(text: str) -> str:
    return "".join({"*": "[^\0]*", "?": "[^\0]"}.get(character, re.escape(character)) for character in text)
