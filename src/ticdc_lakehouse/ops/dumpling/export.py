"""What Dumpling exported of TiDB: tables as of one TSO, with the files that hold their rows.

    metadata                                  Pos: the TSO of the snapshot
    <database>.<table>-schema.sql             CREATE TABLE
    <database>.<table>.<number>.sql or .csv   rows

each of them also compressed: .gz, .zst, .snappy. Names of files have % and two hexadecimal digits for what a file's
name should not hold. Source: tidb ``dumpling/export``, writer.go, writer_util.go, metadata.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import unquote

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.contents import COPY_AGAIN, HOLDS_NOTHING, content
from ticdc_lakehouse.ops.dumpling.dialect import GIVE_OPTIONS, Dialect, DumplingOptions
from ticdc_lakehouse.ops.dumpling.folder import Folder
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.names import TableName, by_text
from ticdc_lakehouse.schema.script import tables_from_sql

_COMPRESSED = r"(\.(gz|zst|snappy))?"
_SCHEMA = re.compile(rf"(?P<database>[^.]+)\.(?P<table>[^.]+)-schema\.sql{_COMPRESSED}", re.DOTALL)
_VIEW = re.compile(rf"(?P<database>[^.]+)\.(?P<table>[^.]+)-schema-view\.sql{_COMPRESSED}", re.DOTALL)
_DATA = re.compile(rf".+\.(?P<format>csv|sql){_COMPRESSED}", re.DOTALL)
_OF_SCHEMA = re.compile(rf".+-(schema(-[a-z-]+)?|placement-policy-create)\.sql{_COMPRESSED}", re.DOTALL)
_TEMPORARY = re.compile(r"(/\*!.*?\*/;\s*)*CREATE GLOBAL TEMPORARY TABLE ", re.DOTALL)
_PLACE = re.compile(r"\{\{\s*(?:fn\s+)?\.(\w+)\s*\}\}")
_PLACES = {"DB": r"(?P<database>[^.]+)", "Table": r"(?P<table>[^.]+)", "Index": r"(?P<index>[0-9]+)"}
_POSITION = re.compile(r"^\s*Log: tidb-binlog\s+Pos: ([0-9]+)\s*$", re.MULTILINE)
_CHUNK_DIGITS = 9
_FINISHED = "Finished dump at:"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_SCHEMA = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """One table of an export."""

    definition: Table
    columns: tuple[ColumnDefinition, ...]
    """The columns that its files have: all but the generated ones, whether virtual or stored."""
    files: tuple[str, ...] = ()
    """Its data files, named as in ``folder.FILE``; none for a table without rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """An export that is complete."""

    folder: str
    tso: int
    """Every change with commit_ts at or below it is in, no later one."""
    tables: Mapping[TableName, ExportedTable]
    unreadable: Mapping[TableName, str]
    """What is wrong with each table that cannot be read."""
    dialect: Dialect
    sizes: Mapping[str, int]
    """Bytes of each file."""


def read_export(folder: Folder, options: DumplingOptions) -> Export:
    """Returns the export in a folder. Raises ConfigError if it cannot be read, or holds no finished export of TiDB
    whose rows can be read; single tables that cannot be read are in `Export.unreadable`."""
    sizes = folder.sizes()
    if "metadata" not in sizes:
        raise ConfigError(f"{folder.path}: expected an export of Dumpling's, found no file metadata")
    metadata = folder.contents(["metadata"], _MAX_SCHEMA)["metadata"]
    tso = _tso(folder.path, _decoded(metadata, f"{folder.path}/metadata"))
    _check_flat(folder)
    template = options.output_filename_template
    pattern = _file_name(template)
    files, format_ = _data_files(folder.path, sizes, pattern, _owners(template, sizes))
    tables, unreadable = _tables(folder, _schemas(folder.path, sizes, files), files)
    unreadable |= _damaged(folder.path, sizes, files, pattern)
    if format_ == "sql":
        dialect = options.sql()
        unreadable |= _odd_names(folder.path, tables, dialect)
    else:
        dialect = _csv_dialect(folder, sizes, tables, options)
    return Export(folder=folder.path, tso=tso, tables=tables, unreadable=unreadable, dialect=dialect, sizes=sizes)


def _tso(folder: str, metadata: str) -> int:
    if _FINISHED not in metadata:
        raise ConfigError(f"{folder}/metadata: the export has not finished (no line `{_FINISHED}`)")
    position = _POSITION.search(metadata)
    if position is None:
        raise ConfigError(f"{folder}/metadata: expected `Log: tidb-binlog` and `Pos:` with a TSO, found {metadata!r}")
    return int(position[1])


def _check_flat(folder: Folder) -> None:
    """Raises ConfigError for files of an export in subfolders: a table whose files are there has no rows otherwise."""
    nested = [path for path in folder.nested() if _DATA.fullmatch(path)]
    if nested:
        raise ConfigError(
            f"{folder.path}: subfolders are not read, and {nested[0]} is in one: export without a / in "
            "--output-filename-template, and keep other exports elsewhere"
        )


def _data_files(
    folder: str, names: Iterable[str], pattern: re.Pattern[str], owners: Mapping[str, Sequence[TableName]]
) -> tuple[dict[TableName, tuple[str, ...]], str]:
    """Returns each table's data files, and their format: ``csv`` or ``sql``. ``owners``: as from `_owners`."""
    data = {name: match for name in names if (match := _DATA.fullmatch(unquote(name))) and not _is_schema(name)}
    formats = {match["format"] for match in data.values()}
    if len(formats) > 1:
        raise ConfigError(f"{folder}: files in CSV and in SQL: expected one export")
    files: dict[TableName, list[str]] = {}
    for name in data:
        files.setdefault(_owner(folder, name, pattern, owners), []).append(name)
    return {table: tuple(of_table) for table, of_table in files.items()}, "".join(formats)


def _owners(template: str, names: Iterable[str]) -> dict[str, list[TableName]]:
    """Returns the tables that the export has a CREATE TABLE of, by the names of their data files without number and
    format: a template may write those of two tables alike."""
    owners: dict[str, list[TableName]] = {}
    for match in filter(None, (_SCHEMA.fullmatch(unquote(name)) for name in names)):
        texts = {"DB": match["database"], "Table": match["table"], "Index": ""}
        stem = _PLACE.sub(lambda place, texts=texts: texts[place[1]], template)  # type: ignore[misc]
        owners.setdefault(stem, []).append(_table_name(match))
    return owners


def _owner(folder: str, name: str, pattern: re.Pattern[str], owners: Mapping[str, Sequence[TableName]]) -> TableName:
    """Returns the table of a data file. Raises ConfigError if it may be that of several."""
    match = pattern.fullmatch(unquote(name))
    if match is None:
        raise ConfigError(f"{folder}: {unquote(name)}: {_OTHER_TEMPLATE}")
    stem = match.string[: match.start("index")] + match.string[match.end("index") : match.end("stem")]
    tables = owners.get(stem, [_table_name(match)])
    if len(tables) > 1:
        raise ConfigError(
            f"{folder}: {unquote(name)}: files of {' and '.join(map(str, tables))} have this name: export with another "
            "--output-filename-template"
        )
    return tables[0]


def _table_name(match: re.Match[str]) -> TableName:
    return TableName(unquote(match["database"]), unquote(match["table"]))


_OTHER_TEMPLATE = "the name of no exported table's file: give load dumpling's --output-filename-template"


def _is_schema(name: str) -> bool:
    return _OF_SCHEMA.fullmatch(unquote(name)) is not None


def _file_name(template: str) -> re.Pattern[str]:
    """Returns the pattern of the data files' names that a template of Dumpling's makes.

    Raises ConfigError for one that is not understood, or that puts files in subfolders.
    """
    if "/" in template:
        raise ConfigError(f"--output-filename-template {template}: subfolders are not read: export without a / in it")
    texts, places = _PLACE.split(template)[::2], _PLACE.findall(template)
    if sorted(places) != sorted(_PLACES) or any("{{" in text for text in texts):
        raise ConfigError(
            f"--output-filename-template {template}: expected {{{{fn .DB}}}}, {{{{fn .Table}}}} and "
            "{{.Index}} once each"
        )
    parts = (_PLACES[place] + re.escape(text) for place, text in zip(places, texts[1:], strict=True))
    return re.compile(rf"(?P<stem>{re.escape(texts[0])}{''.join(parts)})\.(csv|sql){_COMPRESSED}", re.DOTALL)


def _by_table(pattern: re.Pattern[str], names: Iterable[str]) -> dict[TableName, tuple[str, ...]]:
    files_of: dict[TableName, list[str]] = {}
    for name in names:
        if match := pattern.fullmatch(unquote(name)):
            files_of.setdefault(_table_name(match), []).append(name)
    return {name: tuple(files) for name, files in files_of.items()}


def _schemas(folder: str, names: Iterable[str], files: Mapping[TableName, tuple[str, ...]]) -> dict[TableName, str]:
    """Returns the file of each table's CREATE TABLE. Raises ConfigError for rows without one."""
    names = tuple(names)
    views = _by_table(_VIEW, names)  # whose -schema.sql is a table that stands in for the view
    schemas = {table: found[0] for table, found in _by_table(_SCHEMA, names).items() if table not in views}
    unknown = [name for name in files if name not in schemas]
    if unknown and any(TableName(name.table, name.database) in schemas for name in unknown):
        raise ConfigError(f"{folder}: {unquote(files[unknown[0]][0])}: {_OTHER_TEMPLATE}")
    if unknown:
        raise ConfigError(f"{folder}: rows of {unknown[0]} without its CREATE TABLE: export without --no-schemas")
    if not schemas:
        raise ConfigError(f"{folder}: expected tables (<database>.<table>-schema.sql), found none")
    return schemas


def _tables(
    folder: Folder, schemas: Mapping[TableName, str], files: Mapping[TableName, tuple[str, ...]]
) -> tuple[dict[TableName, ExportedTable], dict[TableName, str]]:
    """Returns the tables that can be read, and what is wrong with the others. Temporary tables have no rows to load."""
    contents = folder.contents([*schemas.values()], _MAX_SCHEMA)
    tables, unreadable = {}, {}
    for name, schema in schemas.items():
        file = f"{folder.path}/{unquote(schema)}"
        try:
            text = _decoded(content(contents[schema], schema), file)
            if not _TEMPORARY.match(text):
                tables[name] = _table(name, text, file, files.get(name, ()))
        except ConfigError as error:
            unreadable[name] = str(error)
    return tables, unreadable


def _damaged(
    folder: str, sizes: Mapping[str, int], files: Mapping[TableName, tuple[str, ...]], pattern: re.Pattern[str]
) -> dict[TableName, str]:
    """Returns what is wrong with tables that have a file of zero bytes, or lack one."""
    problems = {}
    for name, of_table in files.items():
        empty = [unquote(file) for file in of_table if not sizes[file]]
        matches = (pattern.fullmatch(unquote(file)) for file in of_table)
        if empty:
            problems[name] = f"{folder}/{empty[0]} {HOLDS_NOTHING}"
        elif missing := _missing(match["index"] for match in matches if match):
            problems[name] = f"{folder}: table {name} has no file numbered {missing}: {COPY_AGAIN}"
    return problems


def _missing(numbers: Iterable[str]) -> str | None:
    """Returns the first number that is missing between those of a table's files.

    With ``-r`` and ``-F`` a number is that of a chunk and, from 0, of a file of it. With only one of them it does not
    show whether a file is missing, since a chunk without rows has none.
    """
    in_chunks = sorted(number for number in numbers if len(number) > _CHUNK_DIGITS)
    for chunk, of_chunk in groupby(in_chunks, key=lambda number: number[:_CHUNK_DIGITS]):
        found = {int(number[_CHUNK_DIGITS:]) for number in of_chunk}
        for gap in sorted({*range(max(found))} - found):
            return f"{chunk}{gap:04}"
    return None


def _decoded(text: bytes, file: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: expected UTF-8: {error}") from None


def _table(name: TableName, text: str, file: str, files: tuple[str, ...]) -> ExportedTable:
    definition = _definition(name, text, file)
    # A stored generated column is not in the files either. No definition shows which column is one.
    virtual = _definition(name, text.replace(") STORED", ") VIRTUAL"), file)
    pairs = zip(definition.columns, virtual.columns, strict=True)
    return ExportedTable(
        definition=definition, columns=tuple(column for column, flag in pairs if not flag.virtual), files=files
    )


def _definition(name: TableName, text: str, file: str) -> Table:
    tables = {table.name: table for table in tables_from_sql(text, name[0], file)}
    if tables.keys() != {name}:
        found = ", ".join(by_text(tables)) or "none"
        raise ConfigError(f"{file}: expected CREATE TABLE of {name} alone, found {found}")
    return tables[name]


def _csv_dialect(
    folder: Folder, sizes: Mapping[str, int], tables: Mapping[TableName, ExportedTable], options: DumplingOptions
) -> Dialect:
    """Returns the dialect that the header of one file shows: the smallest whose table's first two columns have plain
    names."""
    if options.no_header:
        return options.csv(None, ())
    shown = [t for t in tables.values() if len(t.columns) > 1 and _have_plain_names(t.columns[:2])]
    files = {file: table for table in shown for file in table.files if sizes[file]}
    if not files:
        return options.csv(None, ())
    file = min(files, key=sizes.__getitem__)
    names = [column.name for column in files[file].columns]
    line = folder.first_line(file).removesuffix(b"\r")
    if not line:
        raise ConfigError(f"{folder.path}/{unquote(file)} {HOLDS_NOTHING}")
    dialect = options.csv(line, names)
    if line != dialect.header_line(names):
        raise ConfigError(f"{folder.path}/{unquote(file)}: {wrong_header(line, dialect, names)}")
    return dialect


def wrong_header(line: bytes, dialect: Dialect, names: list[str]) -> str:
    """Returns what is wrong with a header."""
    found, wanted = (text[:1000].decode(errors="replace") for text in (line, dialect.header_line(names)))
    return f"expected the header {wanted}, found {found}: {GIVE_OPTIONS}"


def _have_plain_names(columns: Iterable[ColumnDefinition]) -> bool:
    return all(_PLAIN.fullmatch(column.name) for column in columns)


def _odd_names(folder: str, tables: Mapping[TableName, ExportedTable], dialect: Dialect) -> dict[TableName, str]:
    """Returns what is wrong with tables that have a quote in a name, where an INSERT does not distinguish it from a
    value's."""
    problems = {}
    for name, table in () if dialect.backslash else tables.items():
        odd = [text for text in (name.table, *(column.name for column in table.columns)) if "'" in text]
        if odd and table.files:
            problems[name] = (
                f"{folder}: table {name}: the name {odd[0]} has a quote: export without --escape-backslash=false"
            )
    return problems
