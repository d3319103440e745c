"""Exports that the real Dumpling v8.5.6 made of a real TiDB, with TiDB's own answers at each export's TSO.

``tests/data/dumpling.tar.xz`` holds the exports of ``../shared/dumpling``, of most without their one large table. They
are read whole where that folder is there.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ticdc_lakehouse.ops.dumpling.dialect import DumplingOptions
from ticdc_lakehouse.schema.names import TableName

TESTS = Path(__file__).parents[1]
SHARED = TESTS.parents[1] / "shared" / "dumpling"
ARCHIVE = TESTS / "data" / "dumpling.tar.xz"
OPTIONS: Mapping[str, DumplingOptions] = {
    "csv_no_header": DumplingOptions(no_header=True),
    "csv_no_backslash": DumplingOptions(escape_backslash=False),
    "csv_no_backslash_no_delimiter": DumplingOptions(escape_backslash=False),
    "csv_null_word": DumplingOptions(csv_null_value="NULL"),
    "csv_null_empty": DumplingOptions(csv_null_value=""),
    "csv_snowflake": DumplingOptions(csv_output_dialect="snowflake"),
    "csv_redshift": DumplingOptions(csv_output_dialect="redshift"),
    "csv_bigquery": DumplingOptions(csv_output_dialect="bigquery"),
    "csv_template": DumplingOptions(output_filename_template="{{fn .Table}}.{{fn .DB}}.{{.Index}}"),
    "sql_no_backslash": DumplingOptions(escape_backslash=False),
}
"""What of the settings the files do not show."""
NAMES = (
    *("csv_default", "csv_utc", "csv_new_york", "csv_server_tokyo", "csv_separator", "csv_tab", "csv_no_delimiter"),
    *("csv_no_delimiter_tab", "csv_single_quote", "csv_long_delimiter", "csv_no_header", "csv_no_backslash"),
    *("csv_no_backslash_no_delimiter", "csv_null_word", "csv_null_empty", "csv_lf", "csv_snowflake", "csv_redshift"),
    *(
        "csv_bigquery",
        "csv_template",
        "sql_default",
        "sql_complete_insert",
        "sql_no_backslash",
        "sql_split",
        "csv_split",
    ),
    *("csv_split_size", "csv_split_busy", "csv_gzip", "csv_zstd", "csv_snappy", "sql_gzip", "csv_views_sequences"),
    "csv_where",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTable:
    """A table as TiDB answered for it."""

    columns: list[dict[str, Any]]
    rows: list[tuple[str | None, ...]]
    """As text; hexadecimal digits of bytes and bits. TIMESTAMPs in UTC."""
    exported: list[tuple[str | None, ...]]
    """The same as the export should have them: without generated columns, TIMESTAMPs in its session's zone."""


def unpacked(folder: Path) -> Path:
    """The folder of the exports; ``folder`` is where they are put if they are packed."""
    if SHARED.is_dir():
        return SHARED
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def answered(export: Path) -> dict[TableName, AnsweredTable]:
    """TiDB's answers beside an export's folder."""
    found: dict[int, AnsweredTable] = {}
    names = []
    for line in _lines(export.parent / "answers.jsonl"):
        if line["kind"] == "table":
            names.append(TableName(line["db"], line["table"]))
            found[line["t"]] = AnsweredTable(columns=line["columns"], rows=[], exported=[])
        elif line["kind"] == "row" and (export.parent.name != "csv_where" or int(line["v"][0]) > 10):
            table = found[line["t"]]
            table.rows.append(tuple(line["v"]))
            table.exported.append(tuple(_exported(table.columns, line["v"], line.get("z", ()))))
    return dict(zip(names, found.values(), strict=True))


def _exported(columns: list[dict[str, Any]], values: list[Any], in_zone: list[Any]) -> Iterator[str | None]:
    moments = iter(in_zone)
    for column, value in zip(columns, values, strict=True):
        shown = next(moments, value) if column["data_type"] == "timestamp" else value
        if not column["generation"]:
            yield shown


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    packed = file.with_name(file.name + ".gz")
    with gzip.open(packed) if packed.is_file() else file.open("rb") as lines:
        yield from map(json.loads, lines)
