"""Rows that differ, read again from TiDB at the table's TSO and merged into the live table in one commit.

The repaired versions are published as a window of their own, at the same watermark, with an override for each table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.live_commits import Commits, commits_since, own_version, restore
from ticdc_lakehouse.gold.live_table import is_abandoned, temporary_view
from ticdc_lakehouse.gold.overrides import REPAIR, override_row
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.gold.publication import publish_versions
from ticdc_lakehouse.gold.state_tables import OVERRIDES, Identity, append
from ticdc_lakehouse.gold.typed_rows import typed_rows
from ticdc_lakehouse.ops.verify.compared_table import ComparedTable
from ticdc_lakehouse.ops.verify.differences import DifferentKeys
from ticdc_lakehouse.ops.verify.row_differences import parts
from ticdc_lakehouse.ops.verify.value_text import ZONE
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.key_text import stored_key_sql
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import IRREGULAR, by_name, typed_column
from ticdc_lakehouse.tidb.session import Snapshot, SnapshotAt, SnapshotReader, text_of

_KEY_HASH, _STORED_KEY = "_ticdc_key_hash", "_ticdc_stored_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The rows of a table to read again."""

    name: TableName
    """The name as it is published. A table that was renamed while it was blocked has its earlier name in ``table``."""
    table: Table
    state: TableState
    compared: ComparedTable
    keys: tuple[DifferentKeys, ...]

    @property
    def rows(self) -> int:
        """Number of rows to read again."""
        return sum(len(each.keys) for each in self.keys)


def repair(
    lake: Lake, config: GoldConfig, before: Published, snapshot_at: SnapshotAt, repairs: Sequence[Repair]
) -> None:
    """Merges the rows and publishes; ``before`` is the newest published state. Nothing else may write to the feed's
    live tables meanwhile. Puts tables back first that a run which died left ahead of their published versions. Raises
    ConfigError if that run may still be at work."""
    commits = Commits(lake=lake, feed=config.feed, run=str(uuid4()))
    with closing(commits):
        begun = [(each, _begin(commits, each)) for each in repairs]
        versions = {
            each.state.stable_id: _merge(commits, config, snapshot_at(each.state.applied_tso), each, version)
            for each, version in begun
        }
    _publish(lake, config, before, commits.run, repairs, versions)


def _begin(commits: Commits, work: Repair) -> int:
    """Returns the newest version of the live table, which has the rows of the published one then."""
    lake, state = commits.lake, work.state
    newest, unpublished = commits_since(lake, state.lake_name, state.version)
    if not unpublished or unpublished[-1].puts_back(commits.feed, state.version):
        return newest
    if not is_abandoned(lake, unpublished[-1].timestamp):
        raise ConfigError(
            f"{work.name}: the live table is at version {newest}, published is {state.version}: a run is at work, or "
            "has died. Run gold, then repair; if the table gets no change, repair it a day later"
        )
    restore(commits.at(state.applied_tso), state.lake_name, state.version)
    return own_version(lake, state.lake_name, newest, commits.run)


def _merge(commits: Commits, config: GoldConfig, snapshot: Snapshot, work: Repair, version: int) -> int:
    """Replaces the rows of the live table, which is at ``version``, by TiDB's; returns the table's new version."""
    lake, name = commits.at(work.state.applied_tso), work.state.lake_name
    rows = _source_rows(lake, config, snapshot, work).join(_lake_keys(lake, work), _KEY_HASH, "full")
    stored = [COMMIT_TS, IRREGULAR, *(quoted(column.name) for column in work.table.sent)]
    merged = rows.selectExpr(f"coalesce({_STORED_KEY}, {KEY}) AS {KEY}", f"{KEY} IS NULL AS {DELETED}", *stored)
    assigned = ", ".join(f"{column} = s.{column}" for column in stored)
    columns = [KEY, *stored]
    with temporary_view(lake, merged) as view:
        lake.spark.sql(f"""
            MERGE INTO {lake.table(Layer.LIVE, name)} t USING {view} s ON t.{KEY} = s.{KEY}
            WHEN MATCHED AND s.{DELETED} THEN DELETE
            WHEN MATCHED THEN UPDATE SET {assigned}
            WHEN NOT MATCHED AND NOT s.{DELETED} THEN
                INSERT ({", ".join(columns)}) VALUES ({", ".join(f"s.{column}" for column in columns)})""")
    return own_version(lake, name, version, commits.run)


def _lake_keys(lake: Lake, work: Repair) -> DataFrame:
    """Returns hash and text of the keys of the rows in the live table that differ."""
    hashes = pa.table({"wanted": [key for each in work.keys for key in each.keys]})
    lake_keys = lake.spark.sql(
        f"SELECT {work.compared.lake_key_hash} AS {_KEY_HASH}, {KEY} AS {_STORED_KEY} FROM {work.compared.rows}"
    )
    return lake_keys.join(lake.spark.createDataFrame(hashes), F.col(_KEY_HASH) == F.col("wanted"), "left_semi")


def _source_rows(lake: Lake, config: GoldConfig, snapshot: Snapshot, work: Repair) -> DataFrame:
    """Returns hash of the key, then the columns of a live table, of the rows as TiDB has them; read by Spark's
    workers."""
    queries = [
        work.compared.source_texts_sql(each.rows.chunk, hashes) for each in work.keys for hashes in parts(each.keys)
    ]
    columns = work.compared.columns
    texts = [f"t{i}" for i in range(len(columns))]
    query_rows = lake.spark.createDataFrame(pa.table({"query": queries}))
    answered = query_rows.repartition(min(len(queries), 4)).mapInArrow(
        _reader(snapshot, [_KEY_HASH, *texts]), ", ".join(f"{name} STRING" for name in [_KEY_HASH, *texts])
    )
    typed = [typed_column(by_name(column.typed.definition)) for column in columns]
    return _keyed(typed_rows(answered, typed, ZONE, _KEY_HASH), config, work)


def _reader(snapshot: Snapshot, names: list[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = SnapshotReader(connect=snapshot.connect, threads=1)
        with closing(source):
            for query in (query for batch in batches for query in batch.column(0).to_pylist()):
                rows = source.query(query)
                columns = ([text_of(row[at]) for row in rows] for at in range(len(names)))
                yield pa.record_batch([pa.array(column, pa.string()) for column in columns], names)

    return read


def _keyed(rows: DataFrame, config: GoldConfig, work: Repair) -> DataFrame:
    key = stored_key_sql(work.table, config.time_zone)
    return rows.selectExpr("*", f"{key} AS {KEY}", f"{work.state.applied_tso}L AS {COMMIT_TS}")


def _publish(
    lake: Lake,
    config: GoldConfig,
    before: Published,
    run: str,
    repairs: Sequence[Repair],
    versions: dict[str, int],
) -> None:
    identity, now = Identity(config.feed, before.number + 1, run), datetime.now(UTC)
    append(
        lake,
        OVERRIDES,
        [
            override_row(
                identity,
                w.name,
                w.state.stable_id,
                REPAIR,
                w.state.applied_tso,
                f"{w.rows} rows as TiDB has them",
                now,
            )
            for w in repairs
        ],
    )
    publish_versions(lake, config, before, versions, run=run)
