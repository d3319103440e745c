"""Where tables lie: Unity Catalog's own storage on Databricks, a folder of Delta tables on a laptop."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.planning.naming import renaming_name
from ticdc_lakehouse.session_settings import set_if_allowed, setting_of
from ticdc_lakehouse.sql.text import literal, quoted

VERSION = version("ticdc-lakehouse")
"""The version of this package: views that another one made are made anew (`Lake.has_current_view`)."""
_MADE_BY = "ticdc_lake.version"
"""Property of a view: the version that made it."""
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""Session setting: what commits of the session carry as ``userMetadata``."""
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Session setting: Delta sets it to the version of the session's newest commit, of any table."""

_FREE_SESSIONS: WeakKeyDictionary[SparkSession, list[SparkSession]] = WeakKeyDictionary()
"""A session to the idle sessions that were made from it."""
_COPIED: WeakKeyDictionary[SparkSession, Mapping[str, str]] = WeakKeyDictionary()
"""Such a session to its latest settings: reading all settings of a session takes 200 calls of Java."""
_ABANDONED_AFTER_SECONDS = 60
"""Age from which on a folder whose table has no commit is that of a run that was killed, if no run is creating it:
somebody else may be, without `Lake.creating`."""
_LOCK = Lock()
_CURRENT_VIEWS: set[tuple[str, str]] = set()
"""Views that this process knows, with the version that made them: a loop does not ask in every round."""


class Layer(StrEnum):
    """The schemas of the lake."""

    BRONZE = "bronze"
    SILVER = "silver"
    LIVE = "live"
    GOLD = "gold"
    OPS = "ops"


def holds_table(folder: Path) -> bool:
    """True if a Delta table lies in a folder: its log has a commit. The log of one that is being created has none yet,
    nor has it if the run that created it was killed."""
    try:
        with os.scandir(folder / "_delta_log") as entries:  # a log has a file for each commit, and one is enough
            return any(entry.name.endswith(".json") for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


Values = Mapping[str, Any]
"""A row: its values by the columns' names."""


class Reader(Protocol):
    """Answers questions about a lake's tables: Spark (`Lake`), or on a laptop delta-rs, which starts no Java.

    Its SQL is what both understand: the standard's, with names that are quoted as `quoted` does.
    """

    def exists(self, layer: Layer, name: str) -> bool:
        """True if the table exists."""

    def table(self, layer: Layer, name: str) -> str:
        """Returns a table's name, as SQL takes it."""

    def columns(self, layer: Layer, name: str) -> list[str]:
        """Returns the names of a table's columns."""

    def property(self, layer: Layer, name: str, key: str) -> str | None:
        """Returns a table's property, None if it has none of that name."""

    def rows(self, sql: str) -> list[Values]:
        """Returns the rows of a query, times in UTC: few, as they come to the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """Where the tables of one lake are."""

    spark: SparkSession
    catalog: str
    schemas: dict[Layer, str]
    """Each layer's schema name; a bundle in development mode prefixes them."""
    checkpoints: str
    """Folder of the streams' checkpoints (a volume on Databricks)."""
    root: Path | None = None
    """Folder of the tables on a laptop, as ``<root>/<layer>/<table>``; None where the catalog stores them."""

    def table(self, layer: Layer, name: str) -> str:
        """Returns the quoted three-part name of a table or view: of ``name`` in the layer's schema, of ``part.name`` in
        the schema ``<layer>_<part>`` (``gold.schema``)."""
        part, _, plain = name.rpartition(".")
        return f"{self.schema(layer, part)}.{quoted(plain)}"

    def schema(self, layer: Layer, part: str = "") -> str:
        """Returns the quoted two-part name of a layer's schema, or of one of its parts."""
        own = self.schemas[layer]
        return ".".join(quoted(each) for each in (self.catalog, f"{own}_{part}" if part else own))

    def make_schemas(self, names: Iterable[str]) -> None:
        """Makes sure that tables and views of these names have schemas. On Databricks, where the bundle makes schemas,
        raises ConfigError for one that is missing."""
        for part in sorted({name.rpartition(".")[0] for name in names} - {""}):
            for layer in (Layer.SILVER, Layer.LIVE, Layer.GOLD):
                self._make_schema(layer, part)

    def _make_schema(self, layer: Layer, part: str) -> None:
        schema = self.schema(layer, part)
        if self.root is not None:
            self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        elif not self._has_schema(layer, part):
            raise ConfigError(
                f"schema {schema}: gold.schema of a feed needs it, and it is missing: add it to the bundle as "
                "docs/databricks.md shows, and deploy"
            )

    def location(self, layer: Layer, name: str) -> str:
        """Returns the LOCATION clause that a new table needs, empty where the catalog stores it."""
        return "" if self.root is None else f"LOCATION {literal(str(self.root / layer / name))}"

    def checkpoint(self, stream: str) -> str:
        """Returns the checkpoint folder of a stream."""
        return f"{self.checkpoints.rstrip('/')}/{stream}"

    def exists(self, layer: Layer, name: str) -> bool:
        """True if the table or view exists; False where its schema is missing."""
        if (part := name.rpartition(".")[0]) and not self._has_schema(layer, part):
            return False
        return self.spark.catalog.tableExists(self.table(layer, name))

    def columns(self, layer: Layer, name: str) -> list[str]:
        """Returns the names of a table's columns."""
        return self.spark.table(self.table(layer, name)).columns

    def rows(self, sql: str) -> list[Values]:
        """Returns the rows of a query, times in UTC: few, as they come to the driver."""
        return [{name: _aware(value) for name, value in row.asDict().items()} for row in self.spark.sql(sql).collect()]

    def create(self, layer: Layer, name: str, columns: str, *, comment: str, properties: str = "") -> str:
        """Creates a Delta table if it does not exist (or registers the one in its folder); returns its quoted name.

        ``columns`` is the SQL column list; ``properties`` more clauses such as CLUSTER BY and TBLPROPERTIES.
        """
        name_sql = self.table(layer, name)
        with self.creating(layer, name):
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {name_sql} ({columns}) USING delta COMMENT {literal(comment)} "
                f"{properties} {self.location(layer, name)}"
            )
        return name_sql

    def remove_abandoned(self, layer: Layer, name: str) -> None:
        """Removes, on a laptop, the folder that a killed run left of a table which it was creating."""
        if self.root is None or holds_table(folder := self.root / layer / name) or not folder.is_dir():
            return
        with _locked(self.root / "locks" / layer / name, wait=False) as is_free:
            if is_free and _last_change(folder) < time.time() - _ABANDONED_AFTER_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)

    def uncommitted(self, layer: Layer) -> list[str]:
        """Returns, on a laptop, the names of folders whose tables have no commit, as killed runs leave them."""
        folders = [] if self.root is None else (self.root / layer).glob("*")
        return sorted(folder.name for folder in folders if not holds_table(folder))

    @contextmanager
    def creating(self, layer: Layer, name: str) -> Iterator[None]:
        """Lets, on a laptop, one run at a time create a table of this name, or rename one to it, and removes the folder
        that a killed run left. Delta creates no table in a folder that has files."""
        if self.root is None or holds_table(folder := self.root / layer / name):
            yield
            return
        with _locked(self.root / "locks" / layer / name, wait=True):
            if not holds_table(folder):
                shutil.rmtree(folder, ignore_errors=True)
            yield

    def drop(self, layer: Layer, name: str) -> None:
        """Drops a Delta table with its files, also a table in a folder."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(layer, name)}")
        if self.root is not None:
            shutil.rmtree(self.root / layer / name, ignore_errors=True)

    def history(self, table: str, limit: int | None = None) -> DataFrame:
        """Returns the Delta versions of a table, named as ``table`` returns it, the newest first."""
        if _is_connect(self.spark):  # there Delta's Python API needs a plugin of the server
            return self.spark.sql(f"DESCRIBE HISTORY {table}{'' if limit is None else f' LIMIT {limit}'}")
        return DeltaTable.forName(self.spark, table).history(limit)

    def version(self, table: str) -> int:
        """Returns the newest Delta version of a table."""
        newest = self.history(table, 1).first()
        assert newest is not None
        return int(newest["version"])

    def commits(self, table: str, since: int) -> list[Row]:
        """Returns the rows of a table's history after the version ``since``, the newest first."""
        newest = self.history(table, 1).collect()
        later = newest[0]["version"] - since
        return newest[:later] if later < 2 else self.history(table, later).collect()

    def committing(self, metadata: str, settings: Mapping[str, str]) -> Lake:
        """Returns this lake in a session of its own with these ``settings``, whose commits carry ``metadata`` as
        ``userMetadata`` in the tables' histories: threads that commit different metadata share no setting. ``release``
        returns the session."""
        with _LOCK:
            free = _FREE_SESSIONS.setdefault(self.spark, [])
            session = free.pop() if free else _another_session(self.spark)
            copied = _COPIED.get(session)
            _COPIED[session] = settings
        if copied is None:
            copied = session.conf.getAll
        for name, value in settings.items():
            if copied.get(name) != value and session.conf.isModifiable(name):
                set_if_allowed(session, name, value)
        session.conf.set(USER_METADATA, metadata)
        return replace(self, spark=session)

    def release(self, committing: Lake) -> None:
        """Takes back the session of a lake that ``committing`` returned, once nothing uses it. Delta remembers
        tables with the sessions that read them, so a session for each window would fill the heap."""
        with _LOCK:
            _FREE_SESSIONS.setdefault(self.spark, []).append(committing.spark)

    def committed(self, commit: Callable[[], object]) -> int | None:
        """Runs what commits to one table in this session; returns the version of the commit, None if it made none or
        Delta does not say. Nothing else may commit in the session meanwhile."""
        set_if_allowed(self.spark, _LAST_COMMIT, None)
        stays = setting_of(self.spark, _LAST_COMMIT) is not None  # of a commit before: the session may not unset it
        commit()
        if stays:
            return None
        version = setting_of(self.spark, _LAST_COMMIT)
        return None if version is None else int(version)

    def property(self, layer: Layer, name: str, key: str) -> str | None:
        """Returns a table's property, None if it has none of that name."""
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.table(layer, name)}").collect()
        return next((row["value"] for row in rows if row["key"] == key), None)

    def _has_schema(self, layer: Layer, part: str) -> bool:
        return self.spark.catalog.databaseExists(self.schema(layer, part))

    def tables(self, layer: Layer, part: str = "") -> list[str]:
        """Returns the names of the tables and views in a layer's schema, or in one of its parts if that exists."""
        if part and not self._has_schema(layer, part):
            return []
        shown = self.spark.sql(f"SHOW TABLES IN {self.schema(layer, part)}").collect()
        names = sorted(row["tableName"] for row in shown if not row["isTemporary"])
        return [f"{part}.{name}" for name in names] if part else names

    def leave_names(self, layer: Layer, renames: Mapping[str, str]) -> dict[str, str]:
        """Renames Delta tables, old name to new one; on a laptop a table's folder has its name. Names may change
        places: tables whose new name another one had get a name in between. Returns these, with the names that they are
        to take once all have left theirs (``take_names``)."""
        leaving = {old: renaming_name(old) if new in renames else new for old, new in renames.items()}
        for old, new in leaving.items():
            self._rename_one(layer, old, new)
        return {between: renames[old] for old, between in leaving.items() if between != renames[old]}

    def step_aside(self, layer: Layer, renames: Mapping[str, str]) -> dict[str, str]:
        """Does what ``leave_names`` does, but all tables get a name in between, unless a run that died has left them at
        one: views that it has not renewed may read any other name."""
        aside = {old: renaming_name(old) for old in renames}
        for old, between in aside.items():
            if old != between:
                self._rename_one(layer, old, between)
        return {between: renames[old] for old, between in aside.items()}

    def take_names(self, layer: Layer, renames: Mapping[str, str]) -> None:
        """Renames tables whose new names are free."""
        for old, new in renames.items():
            self._rename_one(layer, old, new)

    def _rename_one(self, layer: Layer, old: str, new: str) -> None:
        if self.root is None:
            self.spark.sql(f"ALTER TABLE {self.table(layer, old)} RENAME TO {self.table(layer, new)}")
            return
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(layer, old)}")  # only of the catalog: the folder stays
        with self.creating(layer, new):
            (self.root / layer / old).rename(self.root / layer / new)
        self._forget_folders()
        self._register_table(layer, new)

    def _forget_folders(self) -> None:
        """Clears what Delta remembers by folder: another table may use the folder soon."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def view(self, layer: Layer, name: str, columns: str, query: str, *, comment: str) -> None:
        """Creates or replaces a view. ``columns`` is the SQL list of all its columns, with their comments."""
        view = f"{self.table(layer, name)} ({columns})"
        made_by = f"TBLPROPERTIES ({literal(_MADE_BY)} = {literal(VERSION)})"
        self.spark.sql(f"CREATE OR REPLACE VIEW {view} COMMENT {literal(comment)} {made_by} AS {query}")

    def has_current_view(self, layer: Layer, name: str) -> bool:
        """True if a view that ``view`` makes exists, and this version of the package made it."""
        if not self.exists(layer, name):
            return False
        known = self.table(layer, name), VERSION
        if known not in _CURRENT_VIEWS and self.property(layer, name, _MADE_BY) == VERSION:
            _CURRENT_VIEWS.add(known)
        return known in _CURRENT_VIEWS

    def keep_view(self, layer: Layer, name: str, query: str, *, comment: str, same_comment: bool = False) -> None:
        """Makes a view show the result of ``query``. One that exists is altered, so that it keeps its privileges;
        columns take their comments from the query's. ``same_comment``: it has this comment already."""
        view = self.table(layer, name)
        if not self.exists(layer, name):
            self.spark.sql(f"CREATE VIEW IF NOT EXISTS {view} COMMENT {literal(comment)} AS {query}")
            return
        self.spark.sql(f"ALTER VIEW {view} AS {query}")
        if not same_comment:
            self.spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('comment' = {literal(comment)})")

    def register(self) -> None:
        """Prepares the session. On a laptop: creates the schemas and registers every Delta table found under ``root``
        with the session's catalog."""
        # Else Spark puts settings and environment variables in place of ${…}, also within the quotes of a name.
        set_if_allowed(self.spark, "spark.sql.variable.substitute", "false")
        # Else TIMESTAMP may mean a time without zone, in tables that others have made with one.
        set_if_allowed(self.spark, "spark.sql.timestampType", "TIMESTAMP_LTZ")
        if self.root is None:
            return
        for layer in self.schemas:
            names = sorted(folder.name for folder in (self.root / layer).glob("*") if holds_table(folder))
            for part in sorted({"", *(name.rpartition(".")[0] for name in names)}):
                self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema(layer, part)}")
            for name in names:
                self._register_table(layer, name)

    def _register_table(self, layer: Layer, name: str) -> None:
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.table(layer, name)} USING delta {self.location(layer, name)}")


def _last_change(folder: Path) -> float:
    """Returns when something in a folder was last written, in seconds; the current time, if something goes away
    meanwhile."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return time.time()


@contextmanager
def _locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Holds the lock of a file, once no other run does. Yields False if one does and this one is not to ``wait``. The
    operating system releases it when a process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_held = True
        except BlockingIOError:
            is_held = False
        yield is_held


def _another_session(spark: SparkSession) -> SparkSession:
    """Returns a session with settings of its own."""
    return spark.cloneSession() if _is_connect(spark) else spark.newSession()  # type: ignore[attr-defined]


def _is_connect(spark: SparkSession) -> bool:
    """True if the session is a client of Spark Connect, as on serverless compute and in standard access mode."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _aware(value: object) -> object:
    """Returns a time with its zone: PySpark returns times without zone, in that of the process."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def session_lake(spark: SparkSession) -> Lake:
    """Returns the lake of the session's current catalog, with the layers' plain names: enough to read."""
    return Lake(
        spark=spark,
        catalog=spark.catalog.currentCatalog(),
        schemas={layer: layer.value for layer in Layer},
        checkpoints="",
    )
