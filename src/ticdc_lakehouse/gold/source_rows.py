"""Rows that were too large for a message, read whole from TiDB (``gold.on_handle_key_only: source``).

Such a message holds only the row's handle key. TiDB has the row as it was at the message's commit_ts for as long as its
garbage collection lets it (``tidb_gc_life_time``); Spark's workers read it there, one session for each commit_ts. A row
that TiDB cannot return blocks its table before it: the next run asks again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import orjson
import pyarrow as pa

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.name_case import fold
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, KEY
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.gold.step_files import WHOLE_COLUMNS, files_shown, whole_rows_view
from ticdc_lakehouse.gold.temporary_files import Purpose, new_folder, remove
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import WayOut, incompatible
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.policy import OnHandleKeyOnly
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.tidb.columns import SourceColumn, source_columns, source_literal, source_text_sql
from ticdc_lakehouse.tidb.session import SnapshotAt, SnapshotReader, text_of

_READ = pa.schema({KEY: pa.string(), "commit_ts": pa.int64(), "image": pa.string(), "error": pa.string()})
"""`WHOLE_COLUMNS` as an Arrow schema."""
_READERS = 4
"""Workers that ask TiDB at the same time."""
_Cut = tuple[str, int, str]
"""A row's key, its commit_ts, and its image with only the handle key."""


def needs_source(config: GoldConfig, rows: MergeRows) -> bool:
    """True if rows of the step are to be read from TiDB."""
    policy = config.policy(rows.table.database, rows.table.table)
    return rows.has_cut_rows and policy.on_handle_key_only is OnHandleKeyOnly.SOURCE


@contextmanager
def read_whole(
    lake: Lake, config: GoldConfig, snapshot_at: SnapshotAt, rows: MergeRows, *, again: bool
) -> Iterator[tuple[MergeRows, BlockingPoint | None]]:
    """Yields the step with its cut rows whole, and the point before the first row that TiDB could not return. The rows
    can be read only within the context.

    Of each key only the latest change is read: no older one is merged. ``again``: the step is what is left below a
    point. The next point then is before the first cut change that was not read, also if it is not its key's latest: a
    TiDB that lacks a row would be asked for each of its versions in turn.
    """
    folder = new_folder(lake, config.feed, Purpose.SOURCE)
    whole = replace(rows, whole_rows=folder)
    try:
        _read(lake, config, snapshot_at, rows, folder)
        with files_shown(lake, whole):
            yield whole, _unread(_changes(lake, config, whole), whole_rows_view(folder), again=again)
    finally:
        remove(folder)


def _changes(lake: Lake, config: GoldConfig, rows: MergeRows) -> StepChanges:
    return StepChanges(lake=lake, feed=config.feed, rows=rows, time_zone=config.time_zone)


def _is_cut_sql(table: Table) -> str:
    """Returns the SQL condition that an image has only the handle key."""
    return f"image IS NOT NULL AND size(json_object_keys(image)) < {len(table.sent)}"


def _read(lake: Lake, config: GoldConfig, snapshot_at: SnapshotAt, rows: MergeRows, folder: str) -> None:
    latest, is_cut = _changes(lake, config, rows).latest_sql(), _is_cut_sql(rows.table)
    cut = lake.spark.sql(f"SELECT {KEY}, {COMMIT_TS} AS commit_ts, image FROM ({latest}) WHERE {is_cut}")
    ordered = cut.repartitionByRange(_READERS, "commit_ts").sortWithinPartitions("commit_ts")
    ordered.mapInArrow(_reader(snapshot_at, rows.table), WHOLE_COLUMNS).write.parquet(folder)


def _unread(changes: StepChanges, view: str, *, again: bool) -> BlockingPoint | None:
    spark = changes.lake.spark
    first = spark.sql(f"SELECT min(struct(commit_ts, error)) AS first FROM {view} WHERE error IS NOT NULL").first()
    if first is None or first["first"] is None:
        return None
    commit_ts, error = first["first"]
    detail = (
        f"a row at {commit_ts} was too large for a message, which has only its handle key columns, and could not be "
        f"read from TiDB: {error}"
    )
    missing = _first_cut(changes) if again and commit_ts > changes.rows.after else commit_ts
    return BlockingPoint(tso=missing - 1, stop=incompatible(detail, WayOut.ASK_TIDB_AGAIN, WayOut.LOAD_EXPORT))


def _first_cut(changes: StepChanges) -> int:
    """Returns the commit_ts of the step's first change that is cut still, which there is. Late rows do not count: a
    step is merged in part only above its start."""
    rows = changes.rows
    is_cut = f"commit_ts > {rows.after} AND {_is_cut_sql(rows.table)}"
    [[first]] = changes.lake.spark.sql(f"SELECT min(commit_ts) FROM ({changes.all_sql()}) WHERE {is_cut}").collect()
    return int(first)


def _reader(snapshot_at: SnapshotAt, table: Table) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Returns a function that reads rows in the order of their commit_ts. After one that TiDB could not return, no
    other is asked for: the table is blocked before it, and the time-out of a TiDB that answers nothing is waited for
    once."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cut = (row for batch in batches for row in zip(*map(pa.Array.to_pylist, batch.columns), strict=True))
        error: str | None = None
        for commit_ts, some in groupby(cut, key=lambda row: row[1]):
            for row in _rows_at(snapshot_at, table, commit_ts, some, error):
                error = row["error"]
                yield pa.RecordBatch.from_pylist([row], _READ)  # a batch for each, since they are large

    return read


def _rows_at(
    snapshot_at: SnapshotAt, table: Table, commit_ts: int, cut: Iterable[_Cut], error: str | None
) -> Iterator[dict[str, Any]]:
    """Yields the rows of one commit_ts, with the ``error`` of an earlier row if there is one."""
    source = SnapshotReader(connect=snapshot_at(commit_ts).connect, threads=1)
    with closing(source):
        reader = None
        for key, _, image in cut:
            whole = None
            try:
                if error is None:
                    reader = reader or _TableReader.at(source, table)
                    whole = reader.image(orjson.loads(image))
            except (ConfigError, ApplyError) as found:
                error = str(found)
            yield {KEY: key, "commit_ts": commit_ts, "image": whole, "error": error}


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableReader:
    """A table at a TSO."""

    source: SnapshotReader
    table: Table
    columns: Sequence[SourceColumn]
    """The columns of the definition, in its order."""

    @classmethod
    def at(cls, source: SnapshotReader, table: Table) -> _TableReader:
        """Returns the reader of a table. Raises ApplyError if TiDB lacks a column of the definition."""
        there = {fold(column.name): column for column in source_columns(source, table.name) or ()}
        missing = [column.name for column in table.sent if fold(column.name) not in there]
        if missing:
            raise ApplyError(f"TiDB has no column {missing[0]} of {'.'.join(table.name)} at that time")
        return cls(source=source, table=table, columns=[there[fold(column.name)] for column in table.sent])

    def image(self, key: dict[str, str | None]) -> str:
        """Returns the image of the row with this key, as messages have it. Raises ApplyError if there is not exactly
        one."""
        texts, conditions = [], []
        for column, defined in zip(self.columns, self.table.sent, strict=True):
            by_name = defined.by == "name"
            texts.append(source_text_sql(column, by_name=by_name))
            value = key.get(defined.name)
            if value is not None:
                conditions.append(f"{quoted(column.name)} = {source_literal(column, value, by_name=by_name)}")
        found = self.source.query(
            f"SELECT {', '.join(texts)} FROM {quoted(self.table.database)}.{quoted(self.table.table)} "
            f"WHERE {' AND '.join(conditions)}"
        )
        if len(found) != 1:
            raise ApplyError(f"TiDB has {len(found)} rows with the key {json.dumps(key, ensure_ascii=False)}")
        names = (column.name for column in self.table.sent)
        return orjson.dumps(dict(zip(names, map(text_of, found[0]), strict=True))).decode()
