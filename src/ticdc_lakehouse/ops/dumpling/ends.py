"""Checks that files which Spark splits into lines end as Dumpling ends them: lines do not show it.

Files that are read whole are checked where they are read (`rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import unquote

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.contents import CUT_OFF, HOLDS_NOTHING
from ticdc_lakehouse.ops.dumpling.export import Export, ExportedTable
from ticdc_lakehouse.ops.dumpling.folder import FILE, damage_named
from ticdc_lakehouse.ops.dumpling.rows import LAST_ROW, RowReader


def check_ends(spark: SparkSession, export: Export, tables: Iterable[ExportedTable]) -> None:
    """Raises ConfigError for a file of these tables that is cut off, cannot be decompressed or holds nothing.

    Reads them once, only in Spark. The bytes of a compressed CSV file are not known: that it was cut off before it was
    compressed shows only where lines end with CR LF.
    """
    split = [table for table in tables if not RowReader(dialect=export.dialect, table=table).whole]
    files = [file for table in split for file in table.files]
    counts = {row["file"]: row for row in _counts(spark, export.folder, files)} if files else {}
    for file in files:
        if file not in counts:
            raise ConfigError(f"{export.folder}/{unquote(file)} {HOLDS_NOTHING}")
        if fault := _fault(counts[file], export, file):
            raise ConfigError(f"{export.folder}/{unquote(file)} {fault}")


def _counts(spark: SparkSession, folder: str, files: Collection[str]) -> list[Row]:
    """Returns by ``file`` its bytes if each line ends with LF, its lines, those that end with CR LF, and how many
    INSERT statements begin and end."""
    text = spark.read.format("text").option("lineSep", "\n").load(folder).where(F.col(FILE).isin([*files]))
    line = F.col("value")
    is_last_row = line.startswith("(") & line.endswith(LAST_ROW.decode())
    by_file = text.groupBy(F.col(FILE).alias("file")).agg(
        F.sum(F.octet_length(line) + 1).alias("bytes"),
        F.count("*").alias("lines"),
        F.count_if(line.endswith("\r")).alias("with_cr"),
        F.count_if(line.startswith("INSERT INTO ")).alias("begun"),
        F.count_if(is_last_row).alias("ended"),
    )
    with damage_named(folder, files):
        return by_file.collect()


def _fault(counts: Row, export: Export, file: str) -> str | None:
    """Returns what is wrong with a file; None if nothing is. Where values have line ends, lines that are parts of rows
    look like damage, too."""
    is_compressed = file.endswith(".gz")
    if not is_compressed and counts["bytes"] > export.sizes[file]:
        return CUT_OFF
    has_open_line = is_compressed and 0 < counts["with_cr"] < counts["lines"]
    has_open_statement = export.dialect.statements and counts["begun"] != counts["ended"]
    return f"{CUT_OFF}; or was it --escape-backslash=false?" if has_open_line or has_open_statement else None
