"""Reading the lake as the database was at a TSO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.lake.maintenance import kept_since
from ticdc_lakehouse.lake.merge import COMMIT_TS, GONE, KEY
from ticdc_lakehouse.lake.place import Lake, Layer, session_lake
from ticdc_lakehouse.lake.state import WINDOWS, published
from ticdc_lakehouse.tso import time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A feed's tables at one published watermark."""

    feed: str
    tso: int
    """The watermark: the newest published one at or below the TSO asked for."""
    time: datetime
    """Its physical part, UTC."""
    tables: Mapping[str, DataFrame]
    """``database.table`` to its rows; columns as in the gold view, with ``_ticdc_irregular``."""
    behind: Mapping[str, int]
    """Tables that stood still at this watermark: ``database.table`` to the TSO that their rows are of."""

    names: Mapping[str, str]
    """``database.table`` to the name of its gold view."""

    def __getitem__(self, table: str) -> DataFrame:
        return self.tables[table]

    def create_views(self) -> list[str]:
        """Make temporary views of the tables, named as their gold views without the schema: SQL that names no schema
        reads the lake as of this watermark. Gives the names."""
        for table, name in self.names.items():
            self.tables[table].createOrReplaceTempView(name)
        return sorted(self.names.values())


def as_of(spark: SparkSession, feed: str, tso: int | None = None, *, lake: Lake | None = None) -> AsOf:
    """The tables of ``feed``, all at one published watermark: the newest ≤ ``tso``, or the newest of all.

    ``lake`` says where they lie if the schemas are not named bronze, silver, gold and ops in the session's catalog.
    Raises ConfigError if nothing was published at or before ``tso``, or if its retention is over.
    """
    lake = lake or session_lake(spark)
    now = published(lake, feed, at=tso)
    if now.tso == 0:
        asked = "" if tso is None else f" at or before TSO {tso} ({time_of(tso)})"
        raise ConfigError(f"as_of: feed {feed} published no watermark{asked}")
    _check_kept(lake, feed, now.tso)
    readable = {name: state for name, state in now.tables.items() if state.version >= 0}
    return AsOf(
        feed=feed,
        tso=now.tso,
        time=time_of(now.tso),
        tables={".".join(name): _rows(lake, s.data, s.version) for name, s in readable.items()},
        names={".".join(name): s.name for name, s in readable.items()},
        behind={".".join(name): s.applied_tso for name, s in readable.items() if s.applied_tso < now.tso},
    )


def _check_kept(lake: Lake, feed: str, tso: int) -> None:
    """A state is kept for the retention time after another one took its place."""
    since = kept_since(lake, feed)
    if since is None:
        return
    windows = lake.spark.table(lake.table(Layer.OPS, WINDOWS)).where((F.col("feed") == feed) & (F.col("tso") > tso))
    line = windows.agg(F.min("published_at")).first()
    replaced = None if line is None or line[0] is None else line[0].astimezone(UTC)
    if replaced is not None and replaced < since:
        raise ConfigError(
            f"as_of: feed {feed}: the state at watermark {tso} ({time_of(tso)}) was replaced at {replaced}, and only "
            f"what was shown since {since} is kept (gold.retention_days of the feed)"
        )


def _rows(lake: Lake, data: str, version: int) -> DataFrame:
    table = lake.table(Layer.GOLD, data)
    rows = lake.spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}").drop(KEY, COMMIT_TS)
    return rows.where(~F.col(GONE)).drop(GONE) if GONE in rows.columns else rows
