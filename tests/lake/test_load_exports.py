"""Every export that the real Dumpling made is read cell by cell, or refused by its settings' names. Without Spark."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from recorded_exports import NAMES, OPTIONS, answered, unpacked

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.dialect import BinaryForm, DumplingOptions
from ticdc_lakehouse.ops.dumpling.export import Export, ExportedTable, read_export
from ticdc_lakehouse.ops.dumpling.folder import LocalFolder
from ticdc_lakehouse.ops.dumpling.rows import RowReader

UNREADABLE = "csv_no_backslash_no_delimiter"
DIGITS: Mapping[BinaryForm, Callable[[bytes], str]] = {
    BinaryForm.RAW: bytes.hex,
    BinaryForm.HEX: bytes.decode,
    BinaryForm.BASE64: lambda text: base64.b64decode(text, validate=True).hex(),
}


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("exports"))


def batches(export: Export, table: ExportedTable) -> Iterator[pa.RecordBatch]:
    """What the executors make of a table's files: of two splits of each, where Spark splits it."""
    reader = RowReader(dialect=export.dialect, table=table)
    for file in table.files:
        content = (Path(export.folder) / unquote(file)).read_bytes()
        if reader.whole or file.endswith(".gz"):
            yield from reader.read_file(content, file)
        else:
            lines = content.removesuffix(b"\n").split(b"\n")
            half = len(lines) // 2
            starts = [0] * half + [len(b"\n".join(lines[:half])) + 1 if half else 0] * (len(lines) - half)
            columns = {"line": pa.array(lines, pa.binary()), "file": [file] * len(lines), "start": starts}
            yield from reader.read_lines(pa.table(columns).to_batches(max_chunksize=1000))


def cells(export: Export, table: ExportedTable) -> Counter[tuple[str | None, ...]]:
    digits = DIGITS[export.dialect.binary]
    rows = (row.values() for batch in batches(export, table) for row in batch.to_pylist())
    return Counter(tuple(digits(v) if isinstance(v, bytes) else v for v in row) for row in rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name != UNREADABLE])
def test_every_cell_is_what_tidb_held(exports: Path, name: str) -> None:
    folder = exports / name / "export"
    export = read_export(LocalFolder(path=str(folder)), OPTIONS.get(name, DumplingOptions()))
    tables = answered(folder)
    assert export.tables.keys() == tables.keys()
    for table, held in tables.items():
        assert [c.name for c in export.tables[table].columns] == [
            c["name"] for c in held.columns if not c["generation"]
        ]
        if export.tables[table].columns:
            assert cells(export, export.tables[table]) == Counter(held.exported), table


def test_an_export_in_which_nothing_tells_values_apart_is_refused(exports: Path) -> None:
    folder = LocalFolder(path=str(exports / UNREADABLE / "export"))
    with pytest.raises(ConfigError, match="--escape-backslash=false without --csv-delimiter"):
        read_export(folder, OPTIONS[UNREADABLE])


MISSING = {
    "csv_no_header": ("fixtures.texts", "--no-header"),
    "csv_no_backslash": ("fixtures.texts", "--escape-backslash=false"),
    UNREADABLE: ("fixtures.texts", "--escape-backslash=false"),
    "csv_null_word": ("fixtures.ints", "found 'NULL' without quotes.*--csv-null-value"),
    "csv_null_empty": ("fixtures.texts", "found '' without quotes.*--csv-null-value"),
    "csv_snowflake": ("fixtures.binaries", r"a value of 10 bytes in binary\(5\).*--csv-output-dialect"),
    "csv_redshift": ("fixtures.bits", r"a value of 8 bytes in bit\(32\).*--csv-output-dialect"),
    "csv_bigquery": ("fixtures.bits", "--csv-output-dialect"),
    "csv_template": ("fixtures.texts", "--output-filename-template"),
    "sql_no_backslash": ("fixtures.texts", "--escape-backslash=false"),
}
"""Of each export that needs options: a table that shows it without them, and the error that names the option."""


@pytest.mark.parametrize("name", MISSING)
def test_without_an_option_that_is_needed_the_error_names_it(exports: Path, name: str) -> None:
    table, message = MISSING[name]
    with pytest.raises(ConfigError, match=message):
        read_without_options(exports / name / "export", table)


def read_without_options(folder: Path, table: str) -> None:
    export = read_export(LocalFolder(path=str(folder)), DumplingOptions())
    cells(export, next(found for known, found in export.tables.items() if str(known) == table))


def test_every_export_that_needs_options_is_tried_without_them() -> None:
    assert MISSING.keys() == OPTIONS.keys()
