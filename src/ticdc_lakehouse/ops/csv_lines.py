"""Lines of Dumpling's CSV files as columns. Runs in a Python worker.

Dumpling quotes what is no number and no NULL (``\\N``), and writes a backslash before a quote and before itself, and
``\\0``, ``\\n``, ``\\r``. So a line is a row, and no line has a NUL byte: that marks here what was escaped, while
pyarrow's reader, which knows no such escapes, parts the columns. Source: tidb ``dumpling/export``, sql_type.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ticdc_codec.errors import ConfigError

_ESCAPED = {"\\\\": "b", '\\"': "q", "\\n": "n", "\\r": "r", "\\0": "z"}
"""The letter after the mark for each. A backslash of a value first: then each one left begins an escape."""
_CHARACTERS = {"b": "\\", "q": '"', "n": "\n", "r": "\r", "z": "\0"}
"""NUL last: it is the mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvLines:
    """Reads the lines of one table's files."""

    names: tuple[str, ...]
    raw: tuple[bool, ...]
    """Which columns hold bytes, not UTF-8."""

    @property
    def header(self) -> bytes:
        """The first line of each file."""
        return b",".join(b'"' + _escaped(name) + b'"' for name in self.names)

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Columns of batches of (line, file, start): lines of splits, each of which begins at byte ``start`` of a file.

        Raises ConfigError, with the file, for a header or a line that this table's files cannot have.
        """
        before = None
        for batch in batches:
            first = _first_lines(batch, before)
            before = (batch["file"][-1].as_py(), batch["start"][-1].as_py()) if batch.num_rows else before
            header = first & (batch["start"].to_numpy() == 0)
            self._check_headers(batch.filter(pa.array(header)))
            lines = batch.filter(pa.array(~header))
            if lines.num_rows:
                yield self._columns(lines)

    def _check_headers(self, headers: pa.RecordBatch) -> None:
        for line, file in zip(headers["line"].to_pylist(), headers["file"], strict=True):
            if line != self.header:
                found = line[:1000].decode(errors="replace")
                raise ConfigError(
                    f"{file}: expected the header {self.header.decode()}, found {found}: export with Dumpling's own "
                    "CSV settings; it leaves out generated columns, also those that are stored"
                )

    def _columns(self, lines: pa.RecordBatch) -> pa.RecordBatch:
        text = _joined(lines["line"])
        if b"\0" in text:
            raise ConfigError(
                f"{lines['file'][0]}: a NUL byte: export with --escape-backslash, which is Dumpling's default"
            )
        escaped = b"\\" in text
        for written, letter in _ESCAPED.items() if escaped else ():
            text = text.replace(written.encode(), b"\0" + letter.encode())
        try:
            columns = self._parted(text)
        except pa.ArrowInvalid as error:
            # pyarrow numbers the rows of this batch, not of the file.
            raise ConfigError(f"{lines['file'][0]}: {re.sub(r'Row #[0-9]+: ', '', str(error))}") from None
        if columns.num_rows != lines.num_rows:
            raise ConfigError(
                f"{lines['file'][0]}: expected a row a line, found {columns.num_rows} in {lines.num_rows} lines"
            )
        return pa.record_batch([_unescaped(column) if escaped else column for column in columns.columns], self.names)

    def _parted(self, text: bytes) -> pa.RecordBatch:
        types = {name: pa.binary() if raw else pa.string() for name, raw in zip(self.names, self.raw, strict=True)}
        table = csv.read_csv(
            pa.BufferReader(text),
            # One block: else a row must not be larger than a block.
            read_options=csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(text) + 1),
            parse_options=csv.ParseOptions(double_quote=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=["\\N"], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
        return table.combine_chunks().to_batches()[0]


def _first_lines(batch: pa.RecordBatch, before: tuple[str, int] | None) -> npt.NDArray[np.bool_]:
    """Which lines are the first of a split, given the split of the line before the batch."""
    files = pc.dictionary_encode(batch["file"]).indices.to_numpy()
    starts = batch["start"].to_numpy()
    first = np.ones(batch.num_rows, np.bool_)
    first[1:] = (files[1:] != files[:-1]) | (starts[1:] != starts[:-1])
    if batch.num_rows:
        first[0] = (batch["file"][0].as_py(), batch["start"][0].as_py()) != before
    return first


def _joined(lines: pa.BinaryArray) -> bytes:
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    return bytes(pc.binary_join(whole, b"\n")[0].as_py()) + b"\n"


def _escaped(name: str) -> bytes:
    for written, letter in _ESCAPED.items():
        name = name.replace(_CHARACTERS[letter], written)
    return name.encode()


def _unescaped(column: pa.Array) -> pa.Array:
    for letter, character in _CHARACTERS.items():
        column = pc.replace_substring(column, "\0" + letter, character)
    return column
