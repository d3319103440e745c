"""Where tables lie: Unity Catalog's own storage on Databricks, a folder of Delta tables on a laptop."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from ticdc_lakehouse.sql.text import literal, quoted

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""Session setting: what commits of the session carry as ``userMetadata``."""

_FREE_SESSIONS: WeakKeyDictionary[SparkSession, list[SparkSession]] = WeakKeyDictionary()
"""A session to those made from it that nothing commits in."""
_LOCK = Lock()


class Layer(StrEnum):
    """The schemas of the lake."""

    BRONZE = "bronze"
    SILVER = "silver"
    LIVE = "live"
    GOLD = "gold"
    OPS = "ops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The places of one lake."""

    spark: SparkSession
    catalog: str
    schemas: dict[Layer, str]
    """Each layer's schema name; a bundle in development mode prefixes them."""
    checkpoints: str
    """Folder of the streams' checkpoints (a volume on Databricks)."""
    root: Path | None = None
    """Folder of the tables on a laptop, as ``<root>/<layer>/<table>``; None where the catalog stores them."""

    def table(self, layer: Layer, name: str) -> str:
        """The quoted three-part name of a table or view."""
        return ".".join(quoted(part) for part in (self.catalog, self.schemas[layer], name))

    def location(self, layer: Layer, name: str) -> str:
        """The LOCATION clause that a new table needs, empty where the catalog stores it."""
        return "" if self.root is None else f"LOCATION {literal(str(self.root / layer / name))}"

    def checkpoint(self, stream: str) -> str:
        """The checkpoint folder of a stream."""
        return f"{self.checkpoints.rstrip('/')}/{stream}"

    def exists(self, layer: Layer, name: str) -> bool:
        """Whether the table or view is there."""
        return self.spark.catalog.tableExists(self.table(layer, name))

    def create(self, layer: Layer, name: str, columns: str, *, comment: str, properties: str = "") -> str:
        """Create a Delta table if it is not there (or register the one in its folder); gives its quoted name.

        ``columns`` is the SQL column list; ``properties`` more clauses such as CLUSTER BY and TBLPROPERTIES.
        """
        name_sql = self.table(layer, name)
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name_sql} ({columns}) USING delta COMMENT {literal(comment)} "
            f"{properties} {self.location(layer, name)}"
        )
        return name_sql

    def drop(self, layer: Layer, name: str) -> None:
        """Drop a Delta table with its files, also where they lie in a folder."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(layer, name)}")
        if self.root is not None:
            shutil.rmtree(self.root / layer / name, ignore_errors=True)

    def history(self, table: str, limit: int | None = None) -> DataFrame:
        """The Delta versions of a table, named as ``table`` gives it, the newest first."""
        return DeltaTable.forName(self.spark, table).history(limit)

    def version(self, table: str) -> int:
        """The newest Delta version of a table."""
        newest = self.history(table, 1).first()
        assert newest is not None
        return int(newest["version"])

    def commits(self, table: str, since: int) -> list[Row]:
        """The lines of a table's history after the version ``since``, the newest first."""
        newest = self.history(table, 1).collect()
        later = newest[0]["version"] - since
        return newest[:later] if later < 2 else self.history(table, later).collect()

    def committing(self, metadata: str) -> Lake:
        """This lake in a session of its own, whose commits carry ``metadata`` as ``userMetadata`` in the tables'
        histories: threads that commit different metadata share no setting. ``release`` gives the session back."""
        with _LOCK:
            free = _FREE_SESSIONS.setdefault(self.spark, [])
            session = free.pop() if free else self.spark.newSession()
        inherited = session.conf.getAll
        for name, value in self.spark.conf.getAll.items():
            if inherited.get(name) != value and session.conf.isModifiable(name):
                session.conf.set(name, value)
        session.conf.set(USER_METADATA, metadata)
        return replace(self, spark=session)

    def release(self, committing: Lake) -> None:
        """Take back the session of a lake that ``committing`` gave and that nothing uses any more. Delta remembers
        tables with the sessions that read them, so a session for each window would fill the heap."""
        with _LOCK:
            _FREE_SESSIONS.setdefault(self.spark, []).append(committing.spark)

    def property(self, table: str, name: str) -> str | None:
        """A table's property, None if it has none of that name."""
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
        return next((row["value"] for row in rows if row["key"] == name), None)

    def tables(self, layer: Layer) -> list[str]:
        """The names of the tables and views of a layer."""
        shown = self.spark.sql(f"SHOW TABLES IN {quoted(self.catalog)}.{quoted(self.schemas[layer])}").collect()
        return sorted(row["tableName"] for row in shown if not row["isTemporary"])

    def rename(self, layer: Layer, renames: Mapping[str, str]) -> None:
        """Rename Delta tables, old name to new one. Names may change places: no table takes a name before all have left
        theirs. On a laptop a table's folder bears its name."""
        leaving = {old: f"{old}__renaming" if new in renames else new for old, new in renames.items()}
        arriving = {between: renames[old] for old, between in leaving.items() if between != renames[old]}
        for old, new in (*leaving.items(), *arriving.items()):
            self._rename_one(layer, old, new)

    def _rename_one(self, layer: Layer, old: str, new: str) -> None:
        if self.root is None:
            self.spark.sql(f"ALTER TABLE {self.table(layer, old)} RENAME TO {self.table(layer, new)}")
            return
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(layer, old)}")  # of the catalog alone: the folder stays
        (self.root / layer / old).rename(self.root / layer / new)
        self._forget_folders()
        self._register_table(layer, new)

    def _forget_folders(self) -> None:
        """Delta remembers what it read by folder, and another table may soon lie in one of them."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def view(self, layer: Layer, name: str, query: str, *, comment: str, columns: str = "") -> None:
        """Create or replace a view."""
        self.spark.sql(
            f"CREATE OR REPLACE VIEW {self.table(layer, name)} {columns} COMMENT {literal(comment)} AS {query}"
        )

    def keep_view(self, layer: Layer, name: str, query: str, *, comment: str, same_comment: bool = False) -> None:
        """Let a view show what ``query`` gives. One that exists is altered, so that it keeps its privileges; columns
        take their comments from the query's. ``same_comment``: it has this comment already."""
        view = self.table(layer, name)
        if not self.exists(layer, name):
            self.spark.sql(f"CREATE VIEW IF NOT EXISTS {view} COMMENT {literal(comment)} AS {query}")
            return
        self.spark.sql(f"ALTER VIEW {view} AS {query}")
        if not same_comment:
            self.spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('comment' = {literal(comment)})")

    def register(self) -> None:
        """Make the session fit. On a laptop: make the schemas and register every Delta table found under ``root`` with
        the session's catalog."""
        # Else Spark puts settings and environment variables in place of ${…}, also within the quotes of a name.
        self.spark.conf.set("spark.sql.variable.substitute", "false")
        # Else TIMESTAMP may mean a time without zone, in tables that others have made with one.
        self.spark.conf.set("spark.sql.timestampType", "TIMESTAMP_LTZ")
        if self.root is None:
            return
        for layer, schema in self.schemas.items():
            self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.catalog)}.{quoted(schema)}")
            for log in sorted((self.root / layer).glob("*/_delta_log")):
                self._register_table(layer, log.parent.name)

    def _register_table(self, layer: Layer, name: str) -> None:
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.table(layer, name)} USING delta {self.location(layer, name)}")


def session_lake(spark: SparkSession) -> Lake:
    """The lake of the session's current catalog, with the layers' plain names: enough to read."""
    return Lake(
        spark=spark,
        catalog=spark.catalog.currentCatalog(),
        schemas={layer: layer.value for layer in Layer},
        checkpoints="",
    )
