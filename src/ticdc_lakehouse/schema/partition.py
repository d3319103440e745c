"""PARTITION BY, and lists of partitions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # from its compiled half, not re-exported

from ticdc_lakehouse.schema.definition import Partition, Partitioning, PartitionMethod
from ticdc_lakehouse.schema.literal import read_literal
from ticdc_lakehouse.schema.tokens import Tokens, UnreadableError

_FUNCTIONS = ("YEAR", "MONTH", "QUARTER", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "TO_DAYS")
"""Functions of a column that show a row's partition. The others make an expression that is not understood."""


_OF_DATE: dict[str, Callable[[date], int]] = {
    "TO_DAYS": lambda day: day.toordinal() + 365,
    "YEAR": lambda day: day.year,
}
"""Functions of a date that bounds are written with."""


_METHODS: dict[str, PartitionMethod] = {"RANGE": "range", "LIST": "list", "HASH": "hash", "KEY": "key"}


def read_partitioning(tokens: Tokens) -> Partitioning:
    """Passes ``PARTITION BY …`` to the end. KEY comes without column and partitions: nothing shows a row's."""
    tokens.expect("PARTITION", "BY")
    tokens.take("LINEAR")
    method = _METHODS.get(tokens.take_any(*_METHODS))
    if method is None:
        raise tokens.unreadable("RANGE, LIST, HASH or KEY")
    tokens.skip_until("(")
    column, function = _read_expression(tokens.brackets())
    if method == "hash":
        return Partitioning(method=method, column=column, function=function, partitions=_read_hash(tokens))
    tokens.skip_until("INTERVAL", "SUBPARTITION", "(")
    if tokens.take("SUBPARTITION", "BY"):  # which TiDB ignores
        tokens.skip_until("(")
        tokens.brackets()
        tokens.skip_until("(")
    if method == "key" or tokens.word() != "(":
        tokens.skip_until()
        return Partitioning(method=method, column=None, function=None, partitions=())
    partitions = read_partitions(tokens)
    tokens.skip_until()
    return Partitioning(method=method, column=column, function=function, partitions=partitions)


def _read_hash(tokens: Tokens) -> tuple[Partition, ...]:
    count = read_count(tokens) if tokens.take("PARTITIONS") else 1
    partitions = read_partitions(tokens) if tokens.word() == "(" else hash_partitions(0, count)
    tokens.skip_until()
    return partitions


def hash_partitions(start: int, end: int) -> tuple[Partition, ...]:
    """Returns HASH partitions under the names that TiDB generates, by their number from 0 on."""
    return tuple(Partition(name=f"p{number}") for number in range(start, end))


def read_count(tokens: Tokens) -> int:
    """Passes a number of partitions."""
    digits = tokens.number(TokenType.NUMBER)
    if digits is None or not digits.isdecimal() or len(digits) > 5:  # TiDB has no more than 8192
        raise tokens.unreadable("a number of partitions")
    return int(digits)


def read_partitions(tokens: Tokens) -> tuple[Partition, ...]:
    """Passes ``(PARTITION name VALUES …, …)``."""
    return tuple(_read_partition(part) for part in tokens.brackets().parts())


def _read_expression(tokens: Tokens) -> tuple[str | None, str | None]:
    """Returns the column and the function around it; no column if it is anything else."""
    function = tokens.take_any(*_FUNCTIONS) if tokens.word(1) == "(" else ""
    inside = tokens.brackets() if tokens.word() == "(" else tokens
    try:
        column = inside.column_name()
        inside.expect_end()
        tokens.expect_end()
    except UnreadableError:
        return None, None
    return column, function.lower() or None


def _read_partition(tokens: Tokens) -> Partition:
    tokens.expect("PARTITION")
    name = tokens.name()
    if tokens.take("DEFAULT"):
        return Partition(name=name, default=True)
    if not tokens.take("VALUES"):
        return Partition(name=name)
    if tokens.take("LESS", "THAN"):
        return Partition(name=name, bounds=() if tokens.take("MAXVALUE") else _read_range(tokens.brackets()))
    tokens.expect("IN")
    return _read_list(name, tokens.brackets())


def _read_range(tokens: Tokens) -> tuple[str | None, ...]:
    """Passes one bound. More (RANGE COLUMNS of several columns) are kept as they are, and never used."""
    if tokens.word() == "MAXVALUE":
        return ()
    return tuple(_read_bound(part) for part in tokens.parts())


def _read_list(name: str, tokens: Tokens) -> Partition:
    parts = tokens.parts()
    values = tuple(_read_bound(part) for part in parts if part.word() != "DEFAULT")
    return Partition(name=name, bounds=values, default=len(values) < len(parts))


def _read_bound(tokens: Tokens) -> str | None:
    """Returns the text of a literal, or of what a function returns for a date; any other expression stays as it is
    written, and no value will match it."""
    start = tokens.at
    if tokens.ended:
        raise tokens.unreadable("a bound")
    try:
        literal = _read_of_date(tokens) if tokens.word() in _OF_DATE else read_literal(tokens)
        tokens.expect_end()
    except (UnreadableError, ValueError):
        tokens.skip_until()
        return tokens.text_from(start)
    if isinstance(literal, bytes):
        return tokens.text_from(start)
    return None if literal is None else str(literal)


def _read_of_date(tokens: Tokens) -> str:
    """Passes ``TO_DAYS('2024-01-01')`` and returns its number. Raises ValueError if its argument is no date."""
    function = _OF_DATE[tokens.take_any(*_OF_DATE)]
    argument = tokens.brackets()
    day = read_literal(argument)
    argument.expect_end()
    if not isinstance(day, str):
        raise argument.unreadable("a date")
    return str(function(date.fromisoformat(day.removesuffix(" 00:00:00"))))
