"""What was verified, and with what result.

    ops.verifications   a row is a table of one verification
    ops.differences     a row is one difference of a table

Both are append-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from ticdc_codec.errors import ApplyError, listed
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Lake, Layer, Reader, Values
from ticdc_lakehouse.gold.state_tables import append
from ticdc_lakehouse.ops.verify.row_differences import Difference
from ticdc_lakehouse.schema.names import TableName, texts_of
from ticdc_lakehouse.sql.text import literal

VERIFICATIONS = "verifications"
DIFFERENCES = "differences"
_LONGEST = 2_000
"""Characters of a value that are kept."""

_IDENTITY = """
    feed STRING NOT NULL COMMENT 'feed of the live table',
    run STRING NOT NULL COMMENT 'UUID of the verification',
    verified_at TIMESTAMP NOT NULL COMMENT 'when it began',
    tso BIGINT NOT NULL COMMENT 'TSO at which both sides were read: the watermark, unless the table is blocked',
    database STRING NOT NULL COMMENT 'database in TiDB',
    table STRING NOT NULL COMMENT 'table in TiDB',
"""
_VERIFICATION_COLUMNS = f"""{_IDENTITY}
    version BIGINT NOT NULL COMMENT 'Delta version of the live table that was compared',
    result STRING NOT NULL COMMENT 'equal, different, repaired; skipped, failed: it was not compared, see detail',
    rows BIGINT NOT NULL COMMENT 'rows in TiDB',
    chunks BIGINT NOT NULL COMMENT 'chunks of rows whose checksums were compared',
    different_rows BIGINT NOT NULL COMMENT 'rows that differ, are missing in the lake, or are not in TiDB',
    detail STRING COMMENT 'why it was not compared or repaired, or what was repaired'
"""
_DIFFERENCE_COLUMNS = f"""{_IDENTITY}
    kind STRING NOT NULL COMMENT 'changed (a cell), missing (in the lake), extra, column, table, or many: only counted',
    key STRING COMMENT 'JSON array of the handle key as MySQL texts; of the whole row where there is no key',
    column STRING COMMENT 'column of the cell; NULL of whole rows',
    source_value STRING COMMENT 'MySQL text in TiDB, its first {_LONGEST} characters; NULL is NULL',
    lake_value STRING COMMENT 'MySQL text of what the live table holds; NULL is NULL'
"""
_TABLES = {
    VERIFICATIONS: (_VERIFICATION_COLUMNS, "Comparisons of live tables with TiDB, a row a table and comparison"),
    DIFFERENCES: (_DIFFERENCE_COLUMNS, "In what live tables differed from TiDB when they were compared"),
}
_PROPERTIES = "PARTITIONED BY (feed) TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"


class Result(StrEnum):
    """The result of comparing a table."""

    EQUAL = "equal"
    DIFFERENT = "different"
    REPAIRED = "repaired"
    SKIPPED = "skipped"
    """There is nothing to compare."""
    FAILED = "failed"
    """It could not be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """The result of comparing a table, and what differs."""

    name: TableName
    tso: int
    version: int
    result: Result
    rows: int = 0
    chunks: int = 0
    different_rows: int = 0
    detail: str | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The results of verifying a feed."""

    feed: str
    tso: int
    """The published watermark."""
    tables: tuple[TableResult, ...]

    @property
    def different(self) -> list[str]:
        """The tables that differ and were not repaired, or could not be compared."""
        texts = self.texts
        return [texts[t.name] for t in self.tables if t.result in (Result.DIFFERENT, Result.FAILED)]

    @property
    def texts(self) -> dict[TableName, str]:
        """Each compared table as ``database.table``."""
        return texts_of(table.name for table in self.tables)

    def raise_if_different(self) -> None:
        """Raises ApplyError if there are `different` tables, so that a job fails."""
        if self.different:
            raise ApplyError(
                f"feed {self.feed} at {with_time(self.tso)}: not as in TiDB, or not compared, see ops.verifications "
                f"and ops.differences: {listed(self.different)}"
            )


def create_tables(lake: Lake) -> None:
    """Creates the tables that are missing."""
    for name, (columns, comment) in _TABLES.items():
        if not lake.exists(Layer.OPS, name):
            lake.create(Layer.OPS, name, columns, comment=comment, properties=_PROPERTIES)


def record(lake: Lake, feed: str, run: str, began: datetime, tables: Sequence[TableResult]) -> None:
    """Appends what a verification has found."""
    identity = {"feed": feed, "run": run, "verified_at": began.astimezone(UTC)}
    difference_rows = [_difference_row(table, each) | identity for table in tables for each in table.differences]
    if difference_rows:
        append(lake, DIFFERENCES, difference_rows)
    append(lake, VERIFICATIONS, [_table_row(table) | identity for table in tables])


def _table_row(table: TableResult) -> dict[str, object]:
    return {
        "tso": table.tso,
        "database": table.name.database,
        "table": table.name.table,
        "version": table.version,
        "result": table.result.value,
        "rows": table.rows,
        "chunks": table.chunks,
        "different_rows": table.different_rows,
        "detail": table.detail,
    }


def _difference_row(table: TableResult, difference: Difference) -> dict[str, object]:
    return {
        "tso": table.tso,
        "database": table.name.database,
        "table": table.name.table,
        "kind": difference.kind.value,
        "key": difference.key,
        "column": difference.column,
        "source_value": _cut(difference.source),
        "lake_value": _cut(difference.lake),
    }


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST]


def last_verification(lake: Reader, feed: str) -> list[Values]:
    """Returns the rows of a feed's newest verification (verified_at, tso, result, different_rows), none if there was
    none. Creates nothing."""
    if not lake.exists(Layer.OPS, VERIFICATIONS):
        return []
    of_feed = f"FROM {lake.table(Layer.OPS, VERIFICATIONS)} WHERE feed = {literal(feed)}"
    newest = f"(SELECT max(verified_at) {of_feed})"  # of all rows of one verification the same
    return lake.rows(f"SELECT verified_at, tso, result, different_rows {of_feed} AND verified_at = {newest}")


def verification_object(rows: Sequence[Values]) -> dict[str, object] | None:
    """Returns what `last_verification` returned as a JSON object, None without rows; ``tables`` counts the tables of
    each result."""
    if not rows:
        return None
    counts = {result.value: count for result, count in _counts(rows).items()}
    return {"time": rows[0]["verified_at"].isoformat(), "tso": max(row["tso"] for row in rows), "tables": counts}


def _counts(rows: Sequence[Values]) -> dict[Result, int]:
    counts = {result: sum(row["result"] == result for row in rows) for result in Result}
    return {result: count for result, count in counts.items() if count}


def verification_text(rows: Sequence[Values]) -> str:
    """Returns what `last_verification` returned, at least one row, in words."""
    parts = ", ".join(f"{count} {result}" for result, count in _counts(rows).items())
    return (
        f"{rows[0]['verified_at']:%Y-%m-%d %H:%M:%S}, at {with_time(max(row['tso'] for row in rows))}: tables {parts}"
    )
