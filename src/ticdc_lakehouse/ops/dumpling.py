"""What Dumpling exported of TiDB as CSV: tables as of one TSO, each row's values as MySQL's texts.

    metadata                            Pos: the TSO of the snapshot
    <database>.<table>-schema.sql       CREATE TABLE
    <database>.<table>.<number>.csv     a header line, then one line a row; also .csv.gz

Names of files have % and two hexadecimal digits for what a file's name should not hold. Source: tidb
``dumpling/export``, writer.go, writer_util.go and metadata.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.ops.csv_lines import CsvLines
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.text import quoted

_SCHEMA = re.compile(r"(?P<database>[^.]+)\.(?P<table>[^.]+)-schema\.sql")
_DATA = re.compile(r"(?P<database>[^.]+)\.(?P<table>[^.]+)\.[0-9]+\.csv(\.gz)?")
_POSITION = re.compile(r"^\s*Log: tidb-binlog\s+Pos: ([0-9]+)\s*$", re.MULTILINE)
_FINISHED = "Finished dump at:"
_RAW = (Family.BINARY, Family.BIT)
"""Types whose values are exported as their bytes."""
_FILE, _START = "_metadata.file_name", "_metadata.file_block_start"
"""The name as part of a URI: with % for what Dumpling's % stands for, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """One table of an export."""

    definition: Table
    files: tuple[str, ...]
    """Its data files, named as in ``_FILE``; none of a table without rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export that is complete."""

    folder: str
    tso: int
    """Every change with commit_ts at or below it is in, no later one."""
    tables: Mapping[TableName, ExportedTable]


def read_export(spark: SparkSession, folder: str) -> Export:
    """What lies in a folder that Spark can read: a path, ``/Volumes/…`` or a URI.

    Raises ConfigError if the folder cannot be read or holds no finished export of TiDB in CSV.
    """
    names = _file_names(spark, folder)
    texts = _texts(spark, folder, [name for name in names if name == "metadata" or _SCHEMA.fullmatch(unquote(name))])
    if "metadata" not in texts:
        raise ConfigError(f"{folder}: expected an export of Dumpling's, found no file metadata")
    files = _by_table(_DATA, names)
    tables = {}
    for name, schemas in _by_table(_SCHEMA, texts).items():
        definition = _definition(name, texts[schemas[0]], f"{folder}/{schemas[0]}")
        tables[name] = ExportedTable(definition=definition, files=files.pop(name, ()))
    if files:
        unknown = ".".join(next(iter(files)))
        raise ConfigError(f"{folder}: rows of {unknown} without its CREATE TABLE: export without --no-schemas")
    if not tables:
        raise ConfigError(f"{folder}: expected tables (<database>.<table>-schema.sql), found none")
    return Export(folder=folder, tso=_tso(folder, texts["metadata"]), tables=tables)


def rows(spark: SparkSession, export: Export, table: ExportedTable) -> DataFrame:
    """A table's rows: a column for each that row images hold, STRING with MySQL's text, BINARY with the value's bytes
    for types of bytes and bits; NULL for NULL.

    A line that cannot be read fails the query: a ConfigError in the Python worker, which names the file.
    """
    columns = table.definition.sent
    raw = [column.type.family in _RAW for column in columns]
    types = (f"{quoted(c.name)} {'BINARY' if bytes_ else 'STRING'}" for c, bytes_ in zip(columns, raw, strict=True))
    reader = CsvLines(names=tuple(column.name for column in columns), raw=tuple(raw))
    lines = spark.read.format("text").load(export.folder).where(F.col(_FILE).isin([*table.files]))
    shown = lines.select(
        F.col("value").cast("binary").alias("line"), F.col(_FILE).alias("file"), F.col(_START).alias("start")
    )
    return shown.mapInArrow(reader.read, ", ".join(types))


def _file_names(spark: SparkSession, folder: str) -> list[str]:
    try:
        lines = spark.read.format("binaryFile").load(folder).select(_FILE).collect()
    except AnalysisException as error:
        raise ConfigError(f"{folder}: cannot be read: {str(error).splitlines()[0]}") from None
    return sorted(line[0] for line in lines)


def _texts(spark: SparkSession, folder: str, names: list[str]) -> dict[str, str]:
    """The texts of small files."""
    lines = spark.read.format("binaryFile").load(folder).where(F.col(_FILE).isin(names)).select(_FILE, "content")
    return {name: _decoded(bytes(content), f"{folder}/{name}") for name, content in lines.collect()}


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: expected UTF-8: {error}") from None


def _definition(name: TableName, text: str, file: str) -> Table:
    tables = {table.name: table for table in tables_from_sql(text, name[0], file)}
    if tables.keys() != {name}:
        found = ", ".join(map(".".join, tables)) or "none"
        raise ConfigError(f"{file}: expected CREATE TABLE of {'.'.join(name)} alone, found {found}")
    return tables[name]


def _by_table(pattern: re.Pattern[str], names: Iterable[str]) -> dict[TableName, tuple[str, ...]]:
    found: dict[TableName, list[str]] = {}
    for name in names:
        if match := pattern.fullmatch(unquote(name)):
            found.setdefault(TableName(unquote(match["database"]), unquote(match["table"])), []).append(name)
    return {name: tuple(files) for name, files in found.items()}


def _tso(folder: str, metadata: str) -> int:
    if _FINISHED not in metadata:
        raise ConfigError(f"{folder}/metadata: the export has not finished (no line `{_FINISHED}`)")
    position = _POSITION.search(metadata)
    if position is None:
        raise ConfigError(f"{folder}/metadata: expected `Log: tidb-binlog` and `Pos:` with a TSO, found {metadata!r}")
    return int(position[1])
