"""Values out of lines of rows, for all dialects, column by column in numpy and Arrow. Runs in a Python worker.

Every escape is two bytes; it becomes a NUL byte, which these files contain nowhere else, and a letter. The quotes and
separators that remain delimit the values, and positions stay those of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.ops.dumpling.dialect import BinaryForm, Dialect
from ticdc_lakehouse.schema.definition import ColumnDefinition

RAW = (Family.BINARY, Family.BIT)
"""Types whose values are bytes."""
_NUMBERS = (Family.INTEGER, Family.FLOAT, Family.DOUBLE, Family.DECIMAL, Family.YEAR)
_TIMES = (Family.DATE, Family.DATETIME, Family.TIMESTAMP, Family.TIME)
_TEXTS = (Family.TEXT, Family.ENUM, Family.SET)
_NUMBER = r"^[-+.eE0-9]+$"
_TIME = r"""^[-:. 0-9"']+$"""
_ESCAPED_JSON = r'^[\[{ ]*\\"'
_OF_NUMBERS = np.isin(np.arange(256), np.frombuffer(b"-+.eE0123456789", np.uint8))
_OF_TIMES = np.isin(np.arange(256), np.frombuffer(b"-:. 0123456789\"'", np.uint8))
"""By byte: true if numbers have it; if times have it, or quotes, which may be the values' own."""
_LETTERS = b"abcdefgh"
"""After the NUL byte: one for each escape of a dialect. ``P`` and ``Q`` stand for separators and quotes of several
bytes."""
_SEPARATOR, _QUOTE = b"P", b"Q"
_LF, _CR, _BACKSLASH = b"\n\r\\"

_Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowLines:
    """Reads lines that are rows of one table."""

    dialect: Dialect
    columns: tuple[ColumnDefinition, ...]
    """The columns that the files have."""

    def read(self, lines: pa.Array) -> pa.RecordBatch:
        """Returns a column for each of the table's: STRING, or BINARY with the value's bytes as they are written.

        ``lines`` are binary, without LF. Raises ConfigError, without the file's name, for a line that is no row.
        """
        text = joined(lines)
        if self.dialect.backslash and b"\0" in text:
            raise ConfigError("a NUL byte: were these files written with --escape-backslash=false?")
        marked = self._marked(text)
        if self.dialect.backslash:
            self._check_escaped(marked)
        return _Rows(self.dialect, self.columns, marked, len(lines)).batch()

    def _check_escaped(self, marked: bytes) -> None:
        """Raises ConfigError for a character that is there as it is, though files with escapes have an escape of it: a
        CR that ends no line, and in statements a double quote."""
        found = "a double quote" if self.dialect.statements and b'"' in marked else None
        if marked.count(b"\r") > marked.count(b"\r\n"):
            found = "a CR within a line"
        if found:
            raise ConfigError(f"{found} without an escape: were these files written with --escape-backslash=false?")

    def _marked(self, text: bytes) -> bytes:
        for letter, written in zip(_LETTERS, self.dialect.escapes, strict=False):
            text = text.replace(written, bytes((0, letter)))
        for token, mark in ((self.dialect.quote, _QUOTE), (self.dialect.separator, _SEPARATOR)):
            if len(token) > 1:
                text = text.replace(token, b"\0" + mark * (len(token) - 1))
        return text


# Without slots: cached_property keeps its value in the instance's __dict__.
@dataclass(frozen=True)
class _Rows:
    dialect: Dialect
    columns: tuple[ColumnDefinition, ...]
    text: bytes
    """Rows, each with its LF."""
    count: int

    @cached_property
    def data(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.text, np.uint8)

    @cached_property
    def bounds(self) -> tuple[_Positions, _Positions]:
        """Where each row's first value begins and its last one ends."""
        # A line end within a value is within quotes.
        ends = outside(positions(self.data, b"\n"), self.quotes)
        if len(ends) != self.count:
            raise ConfigError(f"expected {self.count} rows, found {len(ends)}: a value is not closed")
        starts = np.concatenate(([0], ends[:-1] + 1))
        ends = ends - ((ends > starts) & (self.data[ends - 1] == _CR))
        return (starts + 1, ends - 2) if self.dialect.statements else (starts, ends)

    @cached_property
    def quotes(self) -> _Positions:
        return self._tokens(self.dialect.quote, _QUOTE)

    def _tokens(self, token: bytes, letter: bytes) -> _Positions:
        return positions(self.data, token if len(token) == 1 else b"\0" + letter) if token else np.empty(0, np.int64)

    @cached_property
    def fields(self) -> tuple[_Positions, _Positions]:
        """Where each value begins and ends, quotes included: an array of rows of columns each."""
        starts, ends = self.bounds
        between = outside(self._tokens(self.dialect.separator, _SEPARATOR), self.quotes)
        if self.dialect.statements:  # a comma also follows each row
            between = between[between < ends[np.searchsorted(starts, between, side="right") - 1]]
        counts = np.searchsorted(between, ends) - np.searchsorted(between, starts)
        wrong = np.flatnonzero(counts != len(self.columns) - 1)
        if len(wrong):
            raise self._error(int(wrong[0]), f"expected {len(self.columns)} values, found {counts[wrong[0]] + 1}")
        separators = between.reshape(self.count, len(self.columns) - 1)
        size = len(self.dialect.separator)
        return np.column_stack((starts, separators + size)), np.column_stack((separators, ends))

    def batch(self) -> pa.RecordBatch:
        if not self.columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self.count, pa.struct([])))
        values = [self._column(at, column) for at, column in enumerate(self.columns)]
        if self.dialect.backslash:
            self._check_backslashes(sum(value.null_count for value in values))
        return pa.record_batch(values, [column.name for column in self.columns])

    @cached_property
    def quotes_before(self) -> _Positions:
        """How many quotes there are before each value, in the shape of ``fields``; between values there are none."""
        starts, _ = self.fields
        return np.searchsorted(self.quotes, starts.ravel()).reshape(starts.shape)

    @cached_property
    def quotes_through(self) -> _Positions:
        """How many quotes there are before each value's end."""
        return np.append(self.quotes_before.ravel()[1:], len(self.quotes)).reshape(self.quotes_before.shape)

    def _column(self, at: int, column: ColumnDefinition) -> pa.Array:
        starts, ends, quoted = self._inside(at, column)
        values = slices(self.text, starts, ends)
        if not quoted.all():
            is_null = pc.equal(values, pa.scalar(self.dialect.null, values.type))
            null = is_null.to_numpy(zero_copy_only=False) & ~quoted
            values = pc.replace_with_mask(values, pa.array(null), pa.scalar(None, values.type))
            self._check_unquoted(column, values.filter(pa.array(~quoted)) if quoted.any() else values)
        unescaped = self._unescaped(values)
        if column.type.family is Family.JSON and not self.dialect.backslash:
            _check_json(column, unescaped)
        return _typed(unescaped, column, self.dialect)

    def _inside(self, at: int, column: ColumnDefinition) -> tuple[_Positions, _Positions, _Flags]:
        """Returns where the values of a column begin and end within their quotes, and which have quotes."""
        size, prefix = len(self.dialect.quote), int(self.dialect.statements and column.type.family in RAW)
        starts, ends = (each[:, at] for each in self.fields)
        # A value's quotes are number first to last.
        first, last = self.quotes_before[:, at], self.quotes_through[:, at] - 1
        quoted = last >= first
        if not quoted.any():
            return starts, ends, quoted
        opening, closing = self.quotes[np.minimum(first, len(self.quotes) - 1)], self.quotes[last]
        closed = (opening == starts + prefix) & (closing == ends - size) & (last > first)
        closed &= (last == first + 1) if self.dialect.backslash else self._doubled(first, last)
        if prefix:
            closed &= self.data[starts] == ord("x")
        wrong = np.flatnonzero(quoted & ~closed)
        if len(wrong):
            raise self._error(int(wrong[0]), f"column {column.name}: the value's quotes are not as dumpling sets them")
        return np.where(quoted, opening + size, starts), np.where(quoted, closing, ends), quoted

    def _doubled(self, first: _Positions, last: _Positions) -> _Flags:
        """Returns for each value whether the quotes between its first and last one are pairs of neighbours."""
        # Outside values all quotes are paired: a value's quotes 1, 3, … are the odd ones of all.
        alone = np.append(np.diff(self.quotes) != 1, True) & (np.arange(len(self.quotes)) % 2 == 1)
        before = np.concatenate(([0], np.cumsum(alone)))
        are_pairs: _Flags = before[np.maximum(last, first)] == before[first]
        return are_pairs

    def _check_unquoted(self, column: ColumnDefinition, values: pa.Array) -> None:
        """Raises ConfigError for a text among values without quotes: another NULL than this dialect's."""
        family = column.type.family
        if family in _NUMBERS:
            self._check_characters(column, values, _OF_NUMBERS, _NUMBER)
        elif self.dialect.quote:
            if values.null_count < len(values):
                self._refuse_unquoted(column, values.drop_null())
        else:
            if not self.dialect.header and family in (*_TIMES, *_TEXTS):
                _refuse_quoted(column, values.drop_null())
            if family in _TIMES:
                self._check_characters(column, values, _OF_TIMES, _TIME)

    def _check_characters(self, column: ColumnDefinition, values: pa.Array, of_type: _Flags, pattern: str) -> None:
        """Raises ConfigError for a value that is empty, or has other characters than those of its type have."""
        shortest = pc.min(pc.binary_length(values)).as_py()
        if shortest == 0 or not of_type[_content(values)].all():
            self._refuse_unquoted(column, values.filter(pc.invert(pc.match_substring_regex(values, pattern))))

    def _refuse_unquoted(self, column: ColumnDefinition, values: pa.Array) -> None:
        text = values[0].as_py()[:100].decode(errors="replace")
        raise ConfigError(
            f"column {column.name}: found {text!r} without quotes: if it stands for NULL, give load dumpling's "
            "--csv-null-value"
        )

    def _unescaped(self, values: pa.Array) -> pa.Array:
        if not self.dialect.backslash:
            return pc.replace_substring(values, self.dialect.quote * 2, self.dialect.quote)
        if (_content(values) != 0).all():
            return values
        if len(self.dialect.separator) > 1:
            mark = b"\0" + _SEPARATOR * (len(self.dialect.separator) - 1)
            values = pc.replace_substring(values, mark, self.dialect.separator)
        # NUL last: it is the mark.
        for letter, character in zip(_LETTERS, self.dialect.escapes.values(), strict=False):
            values = pc.replace_substring(values, bytes((0, letter)), character)
        return values

    def _check_backslashes(self, nulls: int) -> None:
        backslashes = positions(self.data, b"\\")
        if len(backslashes) > nulls * self.dialect.null.count(b"\\"):
            begins = np.searchsorted(self.bounds[0], backslashes, side="right") - 1
            raise self._error(int(begins[0]), "a backslash that escapes nothing: was it --escape-backslash=false?")

    def _error(self, row: int, message: str) -> ConfigError:
        start, end = (int(each[row]) for each in self.bounds)
        shown = self.text[start : min(end, start + 200)].decode(errors="replace")
        return ConfigError(f"{message}, in {shown!r}")


def _check_json(column: ColumnDefinition, values: pa.Array) -> None:
    """Raises ConfigError for a JSON value that begins with an escaped quote, which no JSON does."""
    if pc.any(pc.match_substring_regex(values, _ESCAPED_JSON)).as_py():
        raise ConfigError(
            f"column {column.name}: JSON with escaped quotes: was this export made without --escape-backslash=false?"
        )


def _refuse_quoted(column: ColumnDefinition, values: pa.Array) -> None:
    """Raises ConfigError where all values have quotes around them that no header declares: one time, or two texts."""
    for quote in (b'"', b"'"):
        quoted = pc.and_(pc.starts_with(values, quote), pc.ends_with(values, quote))
        enough = len(values) > (column.type.family in _TEXTS)
        if enough and pc.all(quoted).as_py():
            text = values[0].as_py()[:100].decode(errors="replace")
            raise ConfigError(
                f"column {column.name}: found {text!r}, every value in quotes: give load dumpling's --csv-delimiter; "
                "where the quotes are the values' own, export with a header"
            )


def joined(lines: pa.Array) -> bytes:
    """Returns lines as one text, each with LF."""
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines.cast(pa.large_binary()))
    return bytes(pc.binary_join(whole, pa.scalar(b"\n", pa.large_binary()))[0].as_py()) + b"\n" * (len(lines) > 0)


def slices(text: bytes, starts: _Positions, ends: _Positions) -> pa.Array:
    """Returns parts of a text, in rising order: BINARY, or LARGE_BINARY for a text of 2 GiB and more."""
    kind, width = (pa.binary(), np.int32) if len(text) < 2**31 else (pa.large_binary(), np.int64)
    offsets = np.empty(2 * len(starts) + 1, width)
    # Every other element is a part; those between are what lies between parts.
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, len(text)
    every = pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return every.take(pa.array(np.arange(len(starts)) * 2))


def _content(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Returns the bytes of all values that ``take``, ``filter`` or ``replace_with_mask`` made, one after the other."""
    offsets = np.frombuffer(values.buffers()[1], np.int32 if values.type == pa.binary() else np.int64)
    data = values.buffers()[2]
    first, last = offsets[values.offset], offsets[values.offset + len(values)]
    return np.frombuffer(data, np.uint8)[first:last] if data is not None else np.empty(0, np.uint8)


def positions(data: npt.NDArray[np.uint8], token: bytes) -> _Positions:
    """Returns where one or two bytes are."""
    if len(token) == 1:
        return np.flatnonzero(data == token[0])
    return np.flatnonzero((data[:-1] == token[0]) & (data[1:] == token[1]))


def outside(tokens: _Positions, quotes: _Positions) -> _Positions:
    """Returns those of the tokens that are not within quotes."""
    return tokens[np.searchsorted(quotes, tokens) % 2 == 0] if len(quotes) else tokens


def _typed(values: pa.Array, column: ColumnDefinition, dialect: Dialect) -> pa.Array:
    if column.type.family in RAW:
        _check_form(values, column, dialect)
        _check_size(values, column, dialect)
        return values.cast(pa.binary())
    try:
        return (
            values.cast(pa.string()) if values.type == pa.binary() else values.cast(pa.large_string()).cast(pa.string())
        )
    except pa.ArrowInvalid as error:
        raise ConfigError(f"column {column.name}: expected UTF-8: {error}") from None


_WRITTEN = {
    BinaryForm.HEX: (2, b"0123456789ABCDEFabcdef"),
    BinaryForm.BASE64: (4, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
}
"""The number of characters in a unit, and the characters that it may have."""


def _check_form(values: pa.Array, column: ColumnDefinition, dialect: Dialect) -> None:
    """Raises ConfigError for a value that is not written as the dialect writes bytes."""
    if dialect.binary not in _WRITTEN:
        return
    together, characters = _WRITTEN[dialect.binary]
    incomplete = pc.any(pc.not_equal(pc.bit_wise_and(pc.binary_length(values), together - 1), 0)).as_py()
    if incomplete or not np.isin(_content(values), np.frombuffer(characters, np.uint8)).all():
        raise ConfigError(
            f"column {column.name}: expected values of {column.type.text} in {dialect.binary}, found another: give "
            "load the --csv-output-dialect that dumpling had, if any"
        )


def _check_size(values: pa.Array, column: ColumnDefinition, dialect: Dialect) -> None:
    """Raises ConfigError for a value that is longer than its type: it is written in another way."""
    limit = -(-column.type.digits // 8) if column.type.family is Family.BIT else column.type.digits
    longest = pc.max(pc.binary_length(values)).as_py() or 0
    # Up to two of base64's characters are padding.
    least = {BinaryForm.RAW: longest, BinaryForm.HEX: longest // 2, BinaryForm.BASE64: longest // 4 * 3 - 2}
    if limit and least[dialect.binary] > limit:
        raise ConfigError(
            f"column {column.name}: a value of {longest} bytes in {column.type.text}: give load dumpling's "
            "--csv-output-dialect"
        )
