"""Gold against TiDB's answers, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR

Lost = Callable[[MysqlType, str, str | None], bool]
"""True if a protocol's wire, whoever reads it, makes a column's value (of this type, not NULL) into the other one."""


def _by_debezium(kind: MysqlType, wanted: str, found: str | None) -> bool:
    """True for the losses of docs/protocols/debezium.md, What this wire cannot carry."""
    match kind.family:
        case Family.DECIMAL if found is not None:
            return float(wanted) == float(found)
        case Family.DECIMAL:  # rounded to what the column cannot hold
            whole_digits = kind.digits - sum(kind.size[1:])
            return abs(float(wanted)) >= 10.0**whole_digits
        case Family.DATE | Family.DATETIME:
            return wanted < "0100" or not _is_day(wanted[:10])
        case _:
            return False


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


LOST: Mapping[str, Lost] = MappingProxyType({"debezium": _by_debezium})
"""By protocol; the others carry every value."""

Cell = str | None

_IRREGULAR = (Family.DATE, Family.DATETIME, Family.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which gold is not what TiDB held."""

    table: str
    row: str
    """The row's key, or the whole row where the table has none."""
    column: str | None
    """None if the whole row is missing or too much."""
    expected: str
    found: str
    lost: bool = False
    """True if the protocol cannot carry the value."""

    def __str__(self) -> str:
        place = f"{self.table} {self.row}" + ("" if self.column is None else f" {self.column}")
        return f"{place}: expected {self.expected}, found {self.found}"


def gold_rows(table: DataFrame, columns: Sequence[Mapping[str, Any]], time_zone: str) -> list[tuple[Cell, ...]]:
    """Returns the rows of a gold table as MySQL's texts, in the order of ``columns`` (name and MySQL type of each)."""
    texts = [f"{_text_sql(c['name'], parse_type(c['type']), time_zone)} AS {quoted(c['name'])}" for c in columns]
    return [tuple(row) for row in table.selectExpr(*texts).collect()]


def _text_sql(name: str, kind: MysqlType, time_zone: str) -> str:
    """Returns the SQL of a column's text. Only dates may be in the map of irregular values: any other value has a
    column to be in."""
    column = quoted(name)
    match kind.family:
        case Family.TIMESTAMP:
            text = f"convert_timezone('UTC', {literal(time_zone)}, CAST({column} AS TIMESTAMP_NTZ))"
        case Family.BINARY:
            text = f"lower(hex({column}))"
        case _:
            text = column
    text = f"CAST({text} AS STRING)"
    return f"coalesce({IRREGULAR}[{literal(name)}], {text})" if kind.family in _IRREGULAR else text


def differences(
    name: str,
    columns: Sequence[Mapping[str, Any]],
    expected: Sequence[Sequence[Any]],
    found: Sequence[tuple[Cell, ...]],
    lost: Lost | None = None,
) -> Iterator[Difference]:
    """Yields each cell in which the found rows differ from the expected ones; ``lost`` says what the wire cannot
    carry."""
    kinds = [parse_type(column["type"]) for column in columns]
    key = [i for i, column in enumerate(columns) if column["key"] == "PRI"] or list(range(len(columns)))
    wanted = {_key(kinds, key, row): row for row in expected}
    given = {_key(kinds, key, row): row for row in found}
    if len(given) != len(found):
        yield Difference(table=name, row="*", column=None, expected="distinct keys", found="a key twice")
    for place in sorted({*wanted, *given}, key=str):
        if place not in given:
            yield Difference(table=name, row=str(place), column=None, expected="a row", found="none")
        elif place not in wanted:
            yield Difference(table=name, row=str(place), column=None, expected="no row", found=str(given[place]))
        else:
            yield from _cells(name, place, columns, kinds, wanted[place], given[place], lost)


def _key(kinds: Sequence[MysqlType], key: Sequence[int], row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(comparable(kinds[i], row[i]) for i in key)


def _cells(
    name: str,
    place: tuple[Any, ...],
    columns: Sequence[Mapping[str, Any]],
    kinds: Sequence[MysqlType],
    wanted: Sequence[Any],
    given: Sequence[Cell],
    lost: Lost | None,
) -> Iterator[Difference]:
    for column, kind, want, have in zip(columns, kinds, wanted, given, strict=True):
        if comparable(kind, want) != comparable(kind, have):
            yield Difference(
                table=name,
                row=str(place),
                column=column["name"],
                expected=repr(want),
                found=repr(have),
                lost=lost is not None and want is not None and lost(kind, want, have),
            )


def comparable(kind: MysqlType, value: Any) -> Any:
    """Returns a value such that equal means equal in MySQL: numbers as numbers, JSON as JSON, the rest as text."""
    if value is None:
        return None
    match kind.family:
        case Family.INTEGER | Family.BIT | Family.YEAR:
            return int(value)
        case Family.DECIMAL:
            return Decimal(value).as_tuple()
        case Family.FLOAT:
            return float(np.float32(value))
        case Family.DOUBLE:
            return float(value)
        case Family.DATETIME | Family.TIMESTAMP:
            return _padded(value, kind.digits)
        case Family.BINARY | Family.ENUM | Family.SET:
            return _plain(value)
        case Family.JSON:
            return _frozen(_exact_json(value))
        case _:
            return value


def _plain(value: Any) -> str:
    """Returns the text that a table has: answers hold ``{"hex"}``, ``{"index", "name"}`` and ``{"mask", "names"}`` in
    its place."""
    if isinstance(value, dict):
        return str(next(value[name] for name in ("hex", "name", "names") if name in value))
    return str(value)


def _padded(text: str, digits: int) -> str:
    """Returns a time's text with all the fraction digits of its type (Spark leaves trailing zeros out)."""
    whole, _, fraction = text.partition(".")
    return whole if digits == 0 and not fraction else f"{whole}.{fraction.ljust(digits, '0')}"


def _exact_json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _frozen(value: Any) -> Any:
    """Returns JSON values made comparable and hashable; a member's place does not matter."""
    if isinstance(value, dict):
        return frozenset((name, _frozen(member)) for name, member in value.items())
    return tuple(_frozen(member) for member in value) if isinstance(value, list) else value
