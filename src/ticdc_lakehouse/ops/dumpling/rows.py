"""A table's rows out of its files, on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.ops.dumpling.contents import CUT_OFF, UNKNOWN_TO_SPARK, lines
from ticdc_lakehouse.ops.dumpling.dialect import BinaryForm, Dialect
from ticdc_lakehouse.ops.dumpling.export import Export, ExportedTable, wrong_header
from ticdc_lakehouse.ops.dumpling.fields import RAW, RowLines
from ticdc_lakehouse.ops.dumpling.folder import BLOCK_START, FILE
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.sql.text import quoted

LAST_ROW = b");"
"""What the last row of an INSERT statement ends with."""
MAX_WHOLE_FILE = 1024 * 1024 * 1024
"""Bytes of a file that is read whole; Spark reads none of 2 GiB."""


def rows(spark: SparkSession, export: Export, table: ExportedTable) -> DataFrame:
    """Returns a table's rows: a column for each that its files have, STRING with MySQL's text of it
    (`ticdc_codec.event`), NULL for NULL.

    Raises ConfigError for a file that is too large to be read whole. A line that cannot be read fails the query: a
    ConfigError in the Python worker, which names the file.
    """
    reader = RowReader(dialect=export.dialect, table=table)
    shown = _whole_files(spark, export, table, reader) if reader.whole else _split_files(spark, export, table, reader)
    return shown.select(*(_mysql_text(column, export.dialect.binary) for column in table.columns))


def _split_files(spark: SparkSession, export: Export, table: ExportedTable, reader: RowReader) -> DataFrame:
    text = spark.read.format("text").option("lineSep", "\n").load(export.folder)
    lines_of_table = text.where(F.col(FILE).isin([*table.files])).select(
        F.col("value").cast("binary").alias("line"), F.col(FILE).alias("file"), F.col(BLOCK_START).alias("start")
    )
    return lines_of_table.mapInArrow(reader.read_lines, reader.schema)


def _whole_files(spark: SparkSession, export: Export, table: ExportedTable, reader: RowReader) -> DataFrame:
    large = [file for file in table.files if export.sizes[file] > MAX_WHOLE_FILE]
    if large:
        raise ConfigError(
            f"{export.folder}/{unquote(large[0])}: {export.sizes[large[0]]} bytes: such a file is read whole, "
            f"{MAX_WHOLE_FILE} at most: export with -F 256MiB"
        )
    files = spark.read.format("binaryFile").load(export.folder).where(F.col(FILE).isin([*table.files]))
    contents = files.select("content", F.col(FILE).alias("file"))
    return contents.mapInArrow(reader.read_files, reader.schema)


def _mysql_text(column: ColumnDefinition, form: BinaryForm) -> Column:
    value = F.col(quoted(column.name))
    if column.type.family not in RAW:
        return value
    match form:
        case BinaryForm.RAW:
            digits = F.lower(F.hex(value))
        case BinaryForm.HEX:
            digits = F.lower(value.cast("string"))
        case BinaryForm.BASE64:
            digits = F.lower(F.hex(F.unbase64(value.cast("string"))))
    number = F.conv(digits, 16, 10) if column.type.family is Family.BIT else digits
    return number.alias(column.name)


# Without slots: cached_property keeps its value in the instance's __dict__.
@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Reads the files of one table, in a Python worker."""

    dialect: Dialect
    table: ExportedTable

    @property
    def whole(self) -> bool:
        """True if files are read whole: Spark cannot split them into rows."""
        return not self.dialect.backslash or any(file.endswith(UNKNOWN_TO_SPARK) for file in self.table.files)

    @property
    def schema(self) -> str:
        """The columns of what is read."""
        types = ((c.name, "BINARY" if c.type.family in RAW else "STRING") for c in self.table.columns)
        return ", ".join(f"{quoted(name)} {kind}" for name, kind in types)

    @cached_property
    def _rows(self) -> RowLines:
        return RowLines(self.dialect, self.table.columns)

    def read_lines(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the columns of batches of (line, file, start): lines of splits, each of which begins at byte ``start``
        of a file.

        Raises ConfigError, with the file, for a header or a line that this table's files cannot have.
        """
        before = None
        for batch in batches:
            first = _first_lines(batch, before)
            before = (batch["file"][-1].as_py(), batch["start"][-1].as_py()) if batch.num_rows else before
            first &= batch["start"].to_numpy() == 0
            for line, file in zip(*(batch[name].filter(pa.array(first)) for name in ("line", "file")), strict=True):
                self._check_header(line.as_py(), file.as_py())
            data = batch.filter(pa.array(~first)) if self._has_header else batch
            if data.num_rows:
                yield from self._read(data["line"], data["file"][0].as_py())

    def read_files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the columns of batches of (content, file). Raises ConfigError as `read_lines`."""
        for batch in batches:
            for content, file in zip(batch["content"], batch["file"], strict=True):
                yield from self.read_file(content.as_py(), file.as_py())

    def read_file(self, content: bytes, file: str) -> Iterator[pa.RecordBatch]:
        """Yields the columns of a whole file. Raises ConfigError as `read_lines`."""
        last = b""
        for number, batch in enumerate(lines(content, file, self.dialect)):
            if number == 0:
                self._check_header(batch[0].as_py(), file)
            yield from self._read(batch[1:] if number == 0 and self._has_header else batch, file)
            last = batch[-1].as_py()
        if self.dialect.statements and not last.endswith(LAST_ROW):
            raise ConfigError(f"{unquote(file)} {CUT_OFF}")

    @property
    def _has_header(self) -> bool:
        return self.dialect.header and bool(self.table.columns)

    def _check_header(self, line: bytes, file: str) -> None:
        if self.dialect.statements or not self.table.columns:
            return
        names = [column.name for column in self.table.columns]
        line = line.removesuffix(b"\r")
        is_header = line == self.dialect.header_line(names)
        if self.dialect.header and not is_header:
            raise ConfigError(f"{unquote(file)}: {wrong_header(line, self.dialect, names)}")
        if is_header and not self.dialect.header:
            raise ConfigError(f"{unquote(file)}: begins with a header: load it without --no-header")

    def _read(self, data: pa.Array, file: str) -> Iterator[pa.RecordBatch]:
        try:
            values = self._values(data) if self.dialect.statements else data
            if len(values):
                yield self._rows.read(values)
        except ConfigError as error:
            raise ConfigError(f"{unquote(file)}: {error}") from None

    def _values(self, data: pa.Array) -> pa.Array:
        """Returns the lines of SQL that are rows. Raises ConfigError for other lines than those that Dumpling writes
        around them."""
        is_row = pc.starts_with(data, b"(")
        others = data.filter(pc.invert(is_row))
        ignored = pc.or_(pc.starts_with(others, b"/*!"), pc.equal(pc.binary_length(others), 0))
        known = set(map(fold, self._inserts))
        for line in others.filter(pc.invert(ignored)).unique().to_pylist():
            text = line.decode(errors="replace")
            if fold(text) not in known:
                expected = " or ".join(self._inserts)
                raise ConfigError(f"expected {expected}, found {text[:1000]}: was it --escape-backslash=false?")
        data = data.filter(is_row)
        closed = pc.or_(pc.ends_with(data, b"),"), pc.ends_with(data, LAST_ROW))
        if not pc.all(closed, min_count=0).as_py():
            raise ConfigError(f"a row that does not end: {data.filter(pc.invert(closed))[0].as_py()[:200]!r}")
        return data

    @cached_property
    def _inserts(self) -> tuple[str, ...]:
        """The lines before rows: without the columns, where no generated column is left out, and with them.

        Dumpling spells the table as its ``-T`` does.
        """
        columns = ",".join(quoted(column.name) for column in self.table.columns)
        into = f"INSERT INTO {quoted(self.table.definition.table)}"
        listed = f"{into} ({columns}) VALUES"
        return (f"{into} VALUES", listed) if self._is_complete else (listed,)

    @property
    def _is_complete(self) -> bool:
        return len(self.table.columns) in (0, len(self.table.definition.columns))


def _first_lines(batch: pa.RecordBatch, before: tuple[str, int] | None) -> npt.NDArray[np.bool_]:
    """Returns which lines are the first of a split, given the split of the line before the batch."""
    files = pc.dictionary_encode(batch["file"]).indices.to_numpy()
    starts = batch["start"].to_numpy()
    first = np.ones(batch.num_rows, np.bool_)
    first[1:] = (files[1:] != files[:-1]) | (starts[1:] != starts[:-1])
    if batch.num_rows:
        first[0] = (batch["file"][0].as_py(), batch["start"][0].as_py()) != before
    return first
