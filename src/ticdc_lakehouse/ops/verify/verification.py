"""A feed's live tables compared with TiDB, each at the TSO up to which it is applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError, LakehouseError, listed
from ticdc_codec.local_time import is_ambiguous
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.error_text import cause
from ticdc_lakehouse.gold.ambiguous_keys import KEPT_APART
from ticdc_lakehouse.gold.live_table import id_of
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.log import log
from ticdc_lakehouse.ops.verify import results
from ticdc_lakehouse.ops.verify.compared_table import ComparedTable, compared_table
from ticdc_lakehouse.ops.verify.comparison import CHUNK_ROWS, Comparison, compare
from ticdc_lakehouse.ops.verify.differences import Differences, column_differences, differences
from ticdc_lakehouse.ops.verify.repair import Repair, repair
from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.ops.verify.row_differences import Difference, DifferenceKind
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName, by_text, table_named
from ticdc_lakehouse.tidb.columns import source_columns
from ticdc_lakehouse.tidb.session import SnapshotAt, SnapshotReader

MOST_DIFFERENCES = 1_000
"""Differences of a table that are written down."""
_FAILURES = (LakehouseError, PySparkException, Py4JError)
"""Failures of one table: TiDB's, and Spark's where it cannot read the live table, or a worker of it TiDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """Settings of one verification."""

    tables: tuple[str, ...] = ()
    """``database.table`` each; none means all."""
    threads: int = 4
    """Queries that TiDB answers at the same time."""
    sleep: float = 0.0
    """Seconds that each thread rests after a query."""
    repair: bool = False
    chunk_rows: int = CHUNK_ROWS


def verify(lake: Lake, config: GoldConfig, snapshot_at: SnapshotAt, settings: VerifySettings) -> Verified:
    """Compares, writes what differs into ``ops.differences``, and repairs it on request (``settings.repair``). A table
    that cannot be compared has the result ``failed``, and the others are compared.

    Raises ConfigError for a feed or table that has no TSO to compare at, and where TiDB cannot be read at all.
    """
    before = published(lake, config.feed)
    chosen = chosen_tables(before, config, settings.tables)
    snapshot_at(before.tso).connect().close()
    results.create_tables(lake)
    run, began = str(uuid4()), datetime.now(UTC)
    tables, repairs = [], []
    for name, state in chosen.items():
        snapshot = snapshot_at(state.applied_tso)
        source = SnapshotReader(connect=snapshot.connect, threads=settings.threads, sleep=settings.sleep)
        try:
            with closing(source):
                result, work = _verify_table(lake, config, source, before, name, settings)
        except _FAILURES as error:
            work, result = None, _result(name, state, Result.FAILED, _text(error))
        tables.append(result)
        if work is not None:
            repairs.append(work)
        fields = {"tso": state.applied_tso, "result": result.result, "detail": result.detail}
        log("ops", "verified", feed=config.feed, table=str(name), **fields)
    if repairs:
        tables = _repaired(lake, config, before, snapshot_at, tables, repairs)
    results.record(lake, config.feed, run, began, tables)
    return Verified(feed=config.feed, tso=before.tso, tables=tuple(tables))


def _repaired(
    lake: Lake,
    config: GoldConfig,
    before: Published,
    snapshot_at: SnapshotAt,
    tables: Sequence[TableResult],
    repairs: Sequence[Repair],
) -> list[TableResult]:
    """Returns the results once the repairs are done: all of them, or none."""
    try:
        repair(lake, config, before, snapshot_at, repairs)
        done = {r.name: (Result.REPAIRED, f"{r.rows} rows read again") for r in repairs}
    except _FAILURES as error:
        done = {r.name: (Result.DIFFERENT, f"not repaired: {_text(error)}") for r in repairs}
    outcomes = ((table, done.get(table.name, (table.result, table.detail))) for table in tables)
    return [replace(table, result=result, detail=detail) for table, (result, detail) in outcomes]


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, LakehouseError) else cause(error)


def chosen_tables(before: Published, config: GoldConfig, wanted: Sequence[str]) -> dict[TableName, TableState]:
    """Returns the tables to compare; ``wanted`` as `VerifySettings.tables`. Raises ConfigError as `verify`."""
    if Mode.EVENTUAL in (config.mode, before.mode):
        raise ConfigError(f"feed {config.feed}: in gold mode eventual no table is at one TSO, to compare it at")
    if not before.tso:
        raise ConfigError(f"feed {config.feed}: gold has published nothing yet")
    names = sorted(before.tables)
    chosen = [_table_named(text, names) for text in wanted] if wanted else names
    return {name: before.tables[name] for name in chosen}


def _table_named(text: str, names: Sequence[TableName]) -> TableName:
    """Returns the table that ``text`` names. Raises ConfigError."""
    name = table_named(text, names)
    if name is None:
        raise ConfigError(f"table {text}: expected one of {listed(by_text(names))}")
    return name


def _verify_table(
    lake: Lake,
    config: GoldConfig,
    source: SnapshotReader,
    before: Published,
    name: TableName,
    settings: VerifySettings,
) -> tuple[TableResult, Repair | None]:
    """Returns the result of comparing a table, and its repair if one is wanted and possible."""
    state = before.tables[name]
    if not state.has_live_table or state.dropped:
        reason = "TiDB dropped it" if state.dropped else "its columns are not known yet"
        return _result(name, state, Result.SKIPPED, reason), None
    if state.stop is not None and state.stop.kind in (StopKind.LATE_ROWS, StopKind.LATE_DDL):
        # Its TSO is where the late change belongs, and its rows are from beyond it: those of no TSO.
        return _result(name, state, Result.FAILED, f"late changes: {state.stop}"), None
    table = before.definitions[state.stable_id].table
    columns = source_columns(source, table.name)  # the name at its TSO, if it was renamed while it was blocked
    if columns is None:
        missing = Difference(table=name, kind=DifferenceKind.TABLE, lake="a table")
        result = _result(name, state, Result.DIFFERENT, "TiDB has no such table")
        return replace(result, differences=(missing,)), None
    if not (columns or table.sent):
        return _result(name, state, Result.SKIPPED, "all its columns are virtual: no message has their values"), None
    compared, only_lake, only_source = compared_table(table, _rows(lake, name, state), columns)
    equal = _result(name, state, Result.EQUAL)
    one_sided = column_differences(name, only_lake, only_source)
    result, rows = _compared(lake, source, compared, equal, one_sided, settings.chunk_rows)
    if not (settings.repair and result.differences):
        return result, None
    if (unrepairable := _unrepairable(config, compared, rows, only_lake or only_source)) is not None:
        return replace(result, detail=f"not repaired: {unrepairable}; load an export"), None
    return result, Repair(name=name, table=table, state=state, compared=compared, keys=rows.keys)


def _compared(
    lake: Lake,
    source: SnapshotReader,
    table: ComparedTable,
    result: TableResult,
    columns: Iterable[Difference],
    chunk_rows: int,
) -> tuple[TableResult, Differences]:
    """Returns the result with what rows differ in, after the differences of ``columns``."""
    # Without a column in common there is nothing in rows to compare.
    comparison = compare(lake.spark, source, table, chunk_rows=chunk_rows) if table.columns else Comparison()
    rows = differences(lake.spark, source, table, comparison, MOST_DIFFERENCES)
    all_of_it = (*columns, *rows.first)
    compared = replace(
        result,
        result=Result.DIFFERENT if all_of_it else result.result,
        rows=comparison.rows,
        chunks=comparison.chunks,
        different_rows=rows.rows,
        differences=all_of_it,
    )
    return compared, rows


def _result(name: TableName, state: TableState, result: Result, detail: str | None = None) -> TableResult:
    return TableResult(name=name, tso=state.applied_tso, version=state.version, result=result, detail=detail)


def _unrepairable(config: GoldConfig, table: ComparedTable, rows: Differences, columns: Sequence[str]) -> str | None:
    if columns:
        return f"column {columns[0]} is not on both sides"
    if not table.key:
        return "it has no handle key"
    for column in (each.typed.definition for each in table.key):
        rewritten = config.rewrites_key(column.type)
        if rewritten or column.has_unknown_digits or (column.type.elements and column.by is None):
            return f"how the feed writes keys of {column.type.text} is not known"
    if (instant := _ambiguous(rows.instants, config.time_zone)) is not None:
        return (
            f"a row's key has the TIMESTAMP {instant} UTC, whose time in {config.time_zone}, where clocks were set "
            f"back, is that of another instant, too: it may be the key of two rows ({KEPT_APART})"
        )
    return "more rows differ than are listed" if rows.unlisted else None


def _ambiguous(instants: Iterable[str], zone: str) -> str | None:
    """Returns the first of the instants (texts in UTC) whose local time in a zone is that of another one, too: gold
    writes keys with that time. None if there is none."""
    return next((text for text in sorted(instants) if _is_ambiguous(text, ZoneInfo(zone))), None)


def _is_ambiguous(text: str, zone: ZoneInfo) -> bool:
    try:
        return is_ambiguous(datetime.fromisoformat(text).replace(tzinfo=UTC), zone)
    except ValueError:  # a zero date
        return False


def _rows(lake: Lake, name: TableName, state: TableState) -> str:
    """Returns the live table at its published version, for a FROM."""
    if id_of(lake, state.lake_name) != state.stable_id:
        raise ConfigError(f"{name}: its live table has not got its published name yet: run gold of the feed")
    return f"{lake.table(Layer.LIVE, state.lake_name)} VERSION AS OF {state.version}"
