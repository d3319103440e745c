"""What every decoder promises of what it gives: texts that their MySQL types have, and errors that say why and where.

Written apart from the decoders, from what ``event`` says and what MySQL prints. Values that are MySQL's own text on a
wire (``verbatim``) may be any text: gold types them, and keeps as ``_ticdc_irregular`` what their types cannot hold.
Whole numbers are those of 64 bits: gold finds out what a TINYINT cannot hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

import orjson

from ticdc_codec.event import (
    Bootstrap,
    Column,
    Ddl,
    Event,
    Failure,
    Image,
    Op,
    Resolved,
    RowChange,
    columns_from,
    columns_text,
)
from ticdc_codec.mysql_type import Family, MysqlType, parse_type

MAX_TSO = (1 << 63) - 1
_INTEGER = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_EXPONENT = re.compile(r"-?[1-9](?:\.\d*[1-9])?e[+-]\d{2,3}", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_DAY = r"\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])"
_CLOCK = r"[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
_DATE = re.compile(_DAY, re.ASCII)
_DATETIME = re.compile(rf"{_DAY} (?:[01]\d|2[0-3]):{_CLOCK}", re.ASCII)
_TIME = re.compile(rf"-?(?:\d\d|[1-7]\d\d|8[0-2]\d|83[0-8]):{_CLOCK}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)
_DIGITS = 20
"""Of the longest number, or a sign and 19."""
NOTHING: frozenset[Family] = frozenset()


def handle_key_text(values: Mapping[str, str | None]) -> str:
    """The one JSON array text of a handle key, given as the values of its columns."""
    return orjson.dumps([values[name] for name in sorted(values, key=str.lower)]).decode()


def well_typed(event: Event, size: int, verbatim: frozenset[Family] = NOTHING) -> None:
    """Assert that an event of a message of ``size`` bytes is what its type says, but for families that are verbatim."""
    match event:
        case RowChange():
            _row(event, verbatim)
        case Ddl():
            assert isinstance(event.query, str)
            assert event.commit_ts is None or 0 <= event.commit_ts <= MAX_TSO
            _columns(event.columns)
        case Resolved(commit_ts=commit_ts):
            assert 0 <= commit_ts < 1 << 64
        case Bootstrap():
            assert event.schema_version is None or 0 <= event.schema_version <= MAX_TSO
            _columns(event.columns)
        case Failure():
            assert re.fullmatch("[a-z0-9_]+", event.reason), event
            assert 10 < len(event.detail) < 100_000, event
            assert event.offset is None or 0 <= event.offset <= size, event


def _row(row: RowChange, verbatim: frozenset[Family]) -> None:
    wanted = {Op.INSERT: (False, True), Op.DELETE: (True, False)}.get(row.op, (row.before is not None, True))
    assert (row.before is not None, row.after is not None) == wanted, row
    assert row.commit_ts is None or 0 <= row.commit_ts <= MAX_TSO
    _columns(row.columns)
    columns = {column.name: column for column in row.columns}
    for image in (row.before, row.after):
        _image(image or {}, columns, verbatim)
    whole = row.before if row.after is None else row.after
    assert whole is not None
    assert whole.keys() == columns.keys(), row
    keys = [column.name for column in row.columns if column.key]
    assert row.handle_key == (handle_key_text({name: whole[name] for name in keys}) if keys else None), row
    if row.old_handle_key is not None:
        assert row.op is Op.UPDATE
        assert row.old_handle_key != row.handle_key


def _columns(columns: tuple[Column, ...]) -> None:
    assert columns_from(columns_text(columns)) == columns
    assert len({column.name for column in columns}) == len(columns), columns
    for column in columns:
        named = parse_type(column.type).family in (Family.ENUM, Family.SET)
        assert column.by in (("index", "name") if named else (None,)), column


def _image(image: Image, columns: dict[str, Column], verbatim: frozenset[Family]) -> None:
    assert image.keys() <= columns.keys()
    for name, text in image.items():
        if text is not None:
            text.encode()  # no lone surrogates
            column = columns[name]
            assert parse_type(column.type).family in verbatim or fits(text, column), f"{text!r} is no {column}"


def fits(text: str, column: Column) -> bool:
    """Whether a text is the one text of a value that the column's type has, as far as the type is known."""
    kind = parse_type(column.type)
    if kind.family in (Family.ENUM, Family.SET) and column.by == "name":
        return True
    return _FITS.get(kind.family, lambda _text, _kind: True)(text, kind)


def _integer(text: str, kind: MysqlType) -> bool:
    low, high = (0, 1 << 64) if kind.unsigned else (-(1 << 63), 1 << 63)
    return _INTEGER.fullmatch(text) is not None and len(text) <= _DIGITS and low <= int(text) < high


def _bits(text: str, _kind: MysqlType) -> bool:
    return _INTEGER.fullmatch(text) is not None and len(text) <= _DIGITS and 0 <= int(text) < 1 << 64


def _float(text: str, _kind: MysqlType) -> bool:
    number = float(text) if _DECIMAL.fullmatch(text) or _EXPONENT.fullmatch(text) else math.inf
    plain = number == 0 or 1e-6 <= abs(number) < 1e21
    return math.isfinite(number) and plain == (_DECIMAL.fullmatch(text) is not None)


def _single(text: str, kind: MysqlType) -> bool:
    return _float(text, kind) and abs(float(text)) < 2.0**128 - 2.0**103


def _json(text: str, _kind: MysqlType) -> bool:
    try:
        json.loads(text, parse_int=str, parse_constant=_no_constant)
    except ValueError:
        return False
    return True


def _no_constant(text: str) -> None:
    raise ValueError(text)


def _pattern(pattern: re.Pattern[str]) -> Callable[[str, MysqlType], bool]:
    return lambda text, _kind: pattern.fullmatch(text) is not None


_FITS: dict[Family, Callable[[str, MysqlType], bool]] = {
    Family.INTEGER: _integer,
    Family.BIT: _bits,
    Family.ENUM: _bits,
    Family.SET: _bits,
    Family.FLOAT: _single,
    Family.DOUBLE: _float,
    Family.DECIMAL: _pattern(_DECIMAL),
    Family.YEAR: _pattern(_YEAR),
    Family.DATE: _pattern(_DATE),
    Family.DATETIME: _pattern(_DATETIME),
    Family.TIMESTAMP: _pattern(_DATETIME),
    Family.TIME: _pattern(_TIME),
    Family.BINARY: _pattern(_HEX),
    Family.JSON: _json,
    Family.VECTOR: _json,
}
