"""Rows' images as JSON objects, a column of a table at a time: the texts of ``event`` as values of this wire.

The values are those that TiCDC writes (wire.md 1.5.2): what it loses is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
from msgspec import Raw

from ticdc_codec.debezium.column import CONNECT_TYPE, UNKNOWN_TYPE
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Image, RowChange
from ticdc_codec.json_images import ImageTypes
from ticdc_codec.local_time import instant_of
from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_codec.number_text import float_text

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False)
class ImageGroup:
    """Images with the same names in one order, of rows whose columns are one object."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    images: list[Image] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Twice the index of each image's row, and 1 more for ``after``."""

    def texts(self, name: str) -> list[str | None]:
        """Returns the values of a column, in the order of ``images``."""
        return [image[name] for image in self.images]


def image_pairs(
    rows: Sequence[RowChange], write: Callable[[ImageGroup], Iterable[Value]]
) -> dict[int, tuple[Value | None, Value | None]]:
    """Returns before and after of each row, by the row's identity, as ``write`` makes them of a group's images."""
    images: list[Value | None] = [None] * (2 * len(rows))
    for group in _groups(rows):
        for position, value in zip(group.positions, write(group), strict=True):
            images[position] = value
    return dict(zip(map(id, rows), zip(images[::2], images[1::2], strict=True), strict=True))


def _groups(rows: Sequence[RowChange]) -> Iterable[ImageGroup]:
    groups: dict[tuple[int, tuple[str, ...]], ImageGroup] = {}
    for number, row in enumerate(rows):
        for position, image in enumerate((row.before, row.after), 2 * number):
            if image is not None:
                names = tuple(image)
                # By identity, which rows of a table share: hashing the columns of each would cost more than writing it.
                group = groups.get((id(row.columns), names))
                if group is None:
                    group = groups[id(row.columns), names] = ImageGroup(row.columns, names)
                group.images.append(image)
                group.positions.append(position)
    return groups.values()


def _with_nulls(texts: list[str | None], write: Write) -> list[Any]:
    """Returns the values of a column, None for NULL. ``write`` takes neither NULL nor an empty list."""
    non_null = [text for text in texts if text is not None]
    if len(non_null) == len(texts):
        return write(non_null)
    following = iter(write(non_null) if non_null else ())
    return [None if text is None else next(following) for text in texts]


Write = Callable[[list[str]], list[Any]]
"""A column's texts, none of them NULL, to its JSON values."""

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_EXACT = 16
"""Characters of a DECIMAL with a point that has digits for a float64."""


def image_texts(group: ImageGroup, zone: ZoneInfo) -> Iterable[tuple[bytes, bytes]]:
    """Returns the object of the handle key and that of all columns, for each image."""
    columns = {column.name: column for column in group.columns}
    values = {name: _values(columns[name], group.texts(name), zone) for name in group.names}
    keys = {column.name: values[column.name] for column in group.columns if column.key}
    return zip(_objects(keys, len(group.images)), _objects(values, len(group.images)), strict=True)


def _values(column: Column, texts: list[str | None], zone: ZoneInfo) -> list[Any]:
    write = _writer(parse_type(column.type), column.by, zone)
    if write is None:
        return texts
    # No event says of other columns whether they are NOT NULL.
    return _with_nulls(texts, _never_null(write) if column.key else write)


def _objects(columns: Mapping[str, list[Any]], count: int) -> Iterable[bytes]:
    """Returns JSON objects with a value of each column."""
    if not columns:
        return repeat(b"{}", count)
    # JSON has no line feed but between such lines.
    return _image_types(tuple(columns)).lines_of_columns([*columns.values()], count).splitlines()


_image_types = lru_cache(maxsize=1024)(ImageTypes)


def _writer(kind: MysqlType, by: str | None, zone: ZoneInfo) -> Write | None:
    """Returns the function from texts to JSON values, None where they are equal. Raises ConfigError if the type does
    not determine it."""
    match kind.family:
        case Family.INTEGER if kind.name == "bigint" and kind.unsigned:
            return _int64s
        case Family.INTEGER | Family.YEAR:
            return _each(int)
        case Family.FLOAT | Family.DOUBLE:
            return _numbers
        case Family.DECIMAL:
            return _decimals
        case Family.BIT:
            return _each(_bits(kind.size[0] if kind.size else 1))
        case Family.BINARY:
            return _each(bytes.fromhex)
        case Family.ENUM | Family.SET:
            return None if by == "name" else _each(_names(kind))
        case Family.OTHER:
            return _other(kind)
        case _:
            return _time_writer(kind, zone)


def _time_writer(kind: MysqlType, zone: ZoneInfo) -> Write | None:
    match kind.family:
        case Family.DATE:
            return _each(_days)
        case Family.DATETIME:
            return _datetimes(1 if kind.size and kind.size[0] > 3 else 1000)
        case Family.TIMESTAMP:
            return _each(lambda text: _zoned(text, zone))
        case Family.TIME:
            return _each(_clock)
        case _:
            return None


def _never_null(write: Write) -> Write:
    """Returns the writer for a column that is NOT NULL: 0 for an invalid day (wire.md 1.5.2)."""
    return lambda texts: [0 if value is None else value for value in write(texts)]


def _each(write: Callable[[str], Any]) -> Write:
    return lambda texts: [*map(write, texts)]


def _other(kind: MysqlType) -> Write | None:
    if kind.text == UNKNOWN_TYPE:
        raise ConfigError("debezium: a column of unknown type cannot be encoded")
    integers = _each(int)
    writers: dict[str, Write] = {"int16": integers, "int32": integers, "int64": integers, "double": _numbers}
    return writers.get(kind.text.removeprefix(CONNECT_TYPE))


def _numbers(texts: list[str]) -> list[Any]:
    """Returns the texts themselves, as numbers."""
    return [*map(Raw, map(str.encode, texts))]


def _decimals(texts: list[str]) -> list[Any]:
    """Returns the texts that Go prints of the nearest float64s."""
    return _numbers(
        [
            text.rstrip("0").rstrip(".")
            if len(text) <= _EXACT and "." in text and "0.00000" not in text
            else float_text(repr(float(text)).removesuffix(".0"))
            for text in texts
        ]
    )


def _datetimes(unit: int) -> Write:
    """Returns a writer of units of ``unit`` microseconds. The writer raises ValueError for a text with more digits."""

    def units(microseconds: int) -> int:
        whole, rest = divmod(microseconds, unit)
        return _all_of(whole, rest)

    def one_by_one(texts: list[str]) -> list[Any]:
        return [None if (microseconds := _microseconds(text)) is None else units(microseconds) for text in texts]

    def write(texts: list[str]) -> list[Any]:
        if min(texts) < "0100":  # no year, or one that TiCDC gives a century
            return one_by_one(texts)
        try:
            microseconds = pa.array(texts, pa.string()).cast(pa.timestamp("us"), safe=True).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:  # an invalid day, such as 2024-02-30
            return one_by_one(texts)
        values: list[Any] = (microseconds // unit).tolist()
        return _all_of(values, (microseconds % unit).any())

    return write


def _all_of(value: Value, rest: object) -> Value:
    """Returns the value in the coarser unit. Raises ValueError if something is left: the type is another one."""
    if rest:
        raise ValueError("a DATETIME of 4 to 6 digits needs a type that says so, such as datetime(6)")
    return value


def _int64s(texts: list[str]) -> list[Any]:
    """Returns the numbers of texts; a number from 2^63 on becomes a negative one."""
    numbers = [*map(int, texts)]
    return [number - (1 << 64) if number >> 63 else number for number in numbers] if max(numbers) >> 63 else numbers


def _bits(size: int) -> Callable[[str], Any]:
    # BIT(1) is a boolean, other sizes are bytes with the least significant first (wire.md 1.5.2).
    if size == 1:
        return _bit
    return lambda text: int(text).to_bytes((size + 7) // 8, "little")


def _bit(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"a BIT of more than one bit needs a type that says how many, such as bit(8): found {text}")
    return text == "1"


def _names(kind: MysqlType) -> Callable[[str], str]:
    """Returns the function from an index or a mask to the names. Raises ConfigError if the type does not list them."""
    names = kind.elements
    if not names:
        raise ConfigError(f"debezium writes names of ENUM and SET, and {kind.text!r} does not list them")
    if kind.family is Family.ENUM:
        return lambda index: ("", *names)[int(index)]
    return lambda mask: ",".join(name for at, name in enumerate(names) if int(mask) >> at & 1)


def _days(text: str) -> int | None:
    whole = _whole_year(text)
    return None if whole is None else (date.fromisoformat(whole) - _EPOCH.date()).days


def _microseconds(text: str) -> int | None:
    whole = _whole_year(text)
    return None if whole is None else (datetime.fromisoformat(whole) - _EPOCH) // _MICROSECOND


def _whole_year(text: str) -> str | None:
    """Returns the text with a year below 100 as TiCDC takes it, with a century (wire.md 1.5.2); None for an invalid
    day."""
    year = int(text[:4])
    century = 2000 if year < 70 else 1900 if year < 100 else 0
    whole = f"{year + century:04}{text[4:]}"
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return None
    return whole


def _zoned(text: str, zone: ZoneInfo) -> str:
    if text.endswith("Z"):  # as this wire has it: one of two times with one text (``value.instants``)
        return text
    seconds, point, fraction = text.partition(".")
    try:
        instant = instant_of(datetime.fromisoformat(seconds), zone)
    except ValueError:  # 0000-00-00: the writers send the minimum (wire.md 1.5.2)
        return "1970-01-01T00:00:00Z"
    return f"{instant:%Y-%m-%dT%H:%M:%S}{point}{fraction}Z"


def _clock(text: str) -> int:
    """Returns the microseconds of a TIME."""
    hours, minutes, rest = text.removeprefix("-").split(":")
    seconds, _, fraction = rest.partition(".")
    size = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)
    return -size if text.startswith("-") else size
