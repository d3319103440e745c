"""Reading the lake as the database was at a TSO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError, listed
from ticdc_codec.name_case import fold
from ticdc_codec.tso import time_of, with_time
from ticdc_lakehouse.catalog import Lake, Layer, deployed_lake
from ticdc_lakehouse.gold.live_table import id_of, live_name, live_names
from ticdc_lakehouse.gold.maintenance import readable_since
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, DELETED, KEY
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.state_tables import WINDOWS
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.schema.names import by_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A feed's tables at one published watermark."""

    feed: str
    tso: int
    """The watermark: the newest published one at or below the requested TSO."""
    time: datetime
    """Its physical part, UTC."""
    tables: Mapping[str, DataFrame]
    """``database.table`` (`by_text`) to its rows; columns as in the gold view, then ``_ticdc_irregular``."""
    behind: Mapping[str, int]
    """Tables that were blocked at this watermark: ``database.table`` to the TSO up to which their rows are correct."""

    names: Mapping[str, str]
    """``database.table`` to the name of its gold view, with ``_`` after the part of a schema (``gold.schema``), or
    ``__`` where two would be equal."""

    @property
    def behind_text(self) -> str:
        """``behind`` for people; empty if no table is."""
        return ", ".join(f"{name} (as of TSO {with_time(tso)})" for name, tso in sorted(self.behind.items()))

    def __str__(self) -> str:
        """Returns the watermark and what is behind it, for people."""
        behind = f"; behind it: {self.behind_text}" if self.behind else ""
        return f"watermark {self.tso}, {self.time}{behind}"

    def __getitem__(self, table: str) -> DataFrame:
        spelled = {fold(name): name for name in self.tables}.get(fold(table))
        if spelled is None:
            there = listed(sorted(self.tables))
            raise KeyError(f"no table {table!r} as of {with_time(self.tso)}; there are: {there}")
        return self.tables[spelled]

    def create_views(self) -> list[str]:
        """Makes temporary views of the tables, named as their gold views without the schema: SQL that names no schema
        reads the lake as of this watermark. Returns the names. Raises ConfigError if two tables would have the same
        one."""
        for name, count in Counter(self.names.values()).items():
            if count > 1:
                raise ConfigError(f"as_of: {count} tables would be called {name}: read them as snapshot['db.table']")
        for table, name in self.names.items():
            self.tables[table].createOrReplaceTempView(name)
        return sorted(self.names.values())


def as_of(spark: SparkSession, feed: str, tso: int | None = None, *, lake: Lake | None = None) -> AsOf:
    """Returns the tables of ``feed``, all at one published watermark: the newest ≤ ``tso``, or the newest of all.

    ``lake`` names their place if the schemas are not named live and ops in the session's catalog.
    Raises ConfigError if there is no such lake or feed, and if nothing that was published at or before ``tso`` is kept.
    """
    lake = lake or deployed_lake(spark, spark.catalog.currentCatalog())
    if not lake.exists(Layer.OPS, WINDOWS):
        raise ConfigError(
            f"as_of: no lake in {lake.catalog}.{lake.schemas[Layer.OPS]}: nothing was published there yet; "
            "in target dev pass lake=deployed_lake(spark, catalog, prefix)"
        )
    now, names = _state_and_names(lake, feed, tso)
    readable = {text: now.tables[key] for text, key in by_text(now.tables).items() if now.tables[key].has_live_table}
    with ThreadPoolExecutor() as pool:  # the catalog's answers, two or three a table, are waited for
        rows = pool.map(lambda state: _rows(lake, feed, live_name(names, state.stable_id), state), readable.values())
        tables = dict(zip(readable, rows, strict=True))
    return AsOf(
        feed=feed,
        tso=now.tso,
        time=time_of(now.tso),
        tables=tables,
        names=view_names({name: s.lake_name for name, s in readable.items()}),
        behind={name: s.applied_tso for name, s in readable.items() if s.applied_tso < now.tso},
    )


def view_names(lake_names: Mapping[str, str]) -> dict[str, str]:
    """Returns by table the name of its view, given its name in the lake: with ``_`` after the part of a schema, or
    ``__`` where two would be equal.

    >>> view_names({"a.b": "a.b", "a.b_c": "a.b_c", "a_b.c": "a_b.c"})
    {'a.b': 'a_b', 'a.b_c': 'a__b_c', 'a_b.c': 'a_b__c'}
    """
    plain = {table: name.replace(".", "_") for table, name in lake_names.items()}
    times = Counter(plain.values())
    return {
        table: plain[table] if times[plain[table]] == 1 else name.replace(".", "__")
        for table, name in lake_names.items()
    }


def _state_and_names(lake: Lake, feed: str, tso: int | None) -> tuple[Published, Mapping[str, str]]:
    """Returns what the feed had published at the TSO, and today's names of its live tables. Raises ConfigError as
    `as_of`."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(published, lake, feed, tso)
        of_newest = asked if tso is None else pool.submit(published, lake, feed)
        earliest, now = _earliest_kept(lake, feed), asked.result()
        if now.tso < earliest:
            raise ConfigError(
                f"as_of: feed {feed} keeps no state at or before TSO {with_time(tso or 0)}; the earliest kept is "
                f"{with_time(earliest)} (gold.retention_days of the feed)"
            )
        return now, live_names(of_newest.result().tables.values())


def _earliest_kept(lake: Lake, feed: str) -> int:
    """Returns the earliest watermark of a feed whose state is kept: the retention time begins when another one takes
    its place. Raises ConfigError for a feed that has published none."""
    windows = lake.spark.table(lake.table(Layer.OPS, WINDOWS)).where(F.col("tso") > 0)
    replacing = F.col("published_at") < F.lit(
        readable_since(lake, feed)
    )  # the last of them took the place of all before
    kept = F.coalesce(F.max(F.when(replacing, F.col("tso"))), F.min("tso"))
    row = windows.where(F.col("feed") == feed).agg(kept).first()
    if row is None or row[0] is None:
        there = sorted(found["feed"] for found in windows.select("feed").distinct().collect())
        raise ConfigError(f"as_of: no feed {feed!r} has published; there are: {listed(there)}")
    return int(row[0])


def _rows(lake: Lake, feed: str, live: str, state: TableState) -> DataFrame:
    """Returns the rows of a table in the live table of that name. A run that died between publishing a RENAME and
    renaming its live table leaves another table under the name: that is not read."""
    if id_of(lake, live) != state.stable_id:
        raise ConfigError(
            f"as_of: feed {feed}: live table {live} has not got its published name yet: run gold of the feed, "
            "which finishes what an interrupted run began"
        )
    rows = lake.spark.sql(f"SELECT * FROM {lake.table(Layer.LIVE, live)} VERSION AS OF {state.version}")
    rows = rows.drop(KEY, COMMIT_TS)
    return rows.where(~F.col(DELETED)).drop(DELETED) if DELETED in rows.columns else rows
