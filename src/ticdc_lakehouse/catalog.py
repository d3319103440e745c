"""The tables of a lake, as the layers' code sees them, and where they lie: here in Unity Catalog's own storage, on a
laptop in a folder (`folder_lake`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.planning.naming import renaming_name
from ticdc_lakehouse.session_settings import is_connect, set_if_allowed
from ticdc_lakehouse.sql.text import literal, quoted

VERSION = version("ticdc-lakehouse")
"""The version of this package: views that another one made are made anew (`Lake.has_current_view`)."""
_MADE_BY = "ticdc_lake.version"
"""Property of a view: the version that made it."""


class Layer(StrEnum):
    """The schemas of the lake."""

    BRONZE = "bronze"
    SILVER = "silver"
    LIVE = "live"
    GOLD = "gold"
    OPS = "ops"


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
    on_databricks: ClassVar[bool] = True
    """True if the tables have tags and privileges, the bundle makes the schemas, and no lock keeps a second run out."""
    _known_views: set[tuple[str, str]] = field(init=False, repr=False, compare=False, default_factory=set)
    """Views that exist, with the version that made them: a loop does not ask in every round."""

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
        if not self._has_schema(layer, part):
            raise ConfigError(
                f"schema {self.schema(layer, part)}: gold.schema of a feed needs it, and it is missing: add it to the "
                "bundle as docs/databricks.md shows, and deploy"
            )

    def location(self, layer: Layer, name: str) -> str:  # noqa: ARG002 - of tables in a folder
        """Returns the LOCATION clause that a new table needs, empty where the catalog stores it."""
        return ""

    @property
    def locks(self) -> Path | None:
        """The folder of the locks, None where there are none."""
        return None

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

    def creating(self, layer: Layer, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 - the same
        """Lets one run at a time create a table of this name, or rename one to it, where the catalog does not see to
        it."""
        return nullcontext()

    def remove_abandoned(self, layer: Layer) -> None:
        """Removes what killed runs left of tables which they were creating, where the catalog does not see to it."""

    def drop(self, layer: Layer, name: str) -> None:
        """Drops a Delta table with its files."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(layer, name)}")

    def history(self, table: str, limit: int | None = None) -> DataFrame:
        """Returns the Delta versions of a table, named as ``table`` returns it, the newest first."""
        if is_connect(self.spark):  # there Delta's Python API needs a plugin of the server
            return self.spark.sql(f"DESCRIBE HISTORY {table}{'' if limit is None else f' LIMIT {limit}'}")
        return DeltaTable.forName(self.spark, table).history(limit)

    def version(self, table: str) -> int:
        """Returns the newest Delta version of a table."""
        newest = self.history(table, 1).first()
        assert newest is not None
        return int(newest["version"])

    def commits(self, table: str, after: int) -> list[Row]:
        """Returns the rows of a table's history after the version ``after``, the newest first.

        Raises ConfigError if the table does not reach that version.
        """
        limit = 1
        while True:
            rows = self.history(table, limit).collect()
            later = rows[0]["version"] - after
            if later < 0:
                raise ConfigError(
                    f"{table} is at version {rows[0]['version']}, and has been at {after}: it was restored from an "
                    "older copy, and what came since is missing. Restore a newer copy, or `load` an export of the table"
                )
            if later <= limit:
                return rows[:later]
            limit = later  # another run may commit before the history is read again: then once more

    def property(self, layer: Layer, name: str, key: str) -> str | None:
        """Returns a table's property, None if it has none of that name."""
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.table(layer, name)}").collect()
        return next((row["value"] for row in rows if row["key"] == key), None)

    def _has_schema(self, layer: Layer, part: str) -> bool:
        return self.spark.catalog.databaseExists(self.schema(layer, part))

    def trim_log(self, layer: Layer, name: str, *, keeps_versions: bool = False, read_from: int | None = None) -> None:
        """Deletes what is no longer needed of a table's log, where each query lists all of it: on a laptop."""

    def tables(self, layer: Layer, part: str = "") -> list[str]:
        """Returns the names of the tables and views in a layer's schema, or in one of its parts if that exists."""
        if part and not self._has_schema(layer, part):
            return []
        shown = self.spark.sql(f"SHOW TABLES IN {self.schema(layer, part)}").collect()
        names = sorted(row["tableName"] for row in shown if not row["isTemporary"])
        return [f"{part}.{name}" for name in names] if part else names

    def begin_renames(self, renames: Mapping[str, str]) -> dict[str, str]:
        """Renames live tables, old name to new one. Names may change places: tables whose new name another one had get
        a name in between. Returns these, with the names that they are to take once all have left theirs
        (``finish_renames``)."""
        leaving = {old: renaming_name(old) if new in renames else new for old, new in renames.items()}
        for old, new in leaving.items():
            self._rename(old, new)
        return {between: renames[old] for old, between in leaving.items() if between != renames[old]}

    def rename_aside(self, renames: Mapping[str, str]) -> dict[str, str]:
        """Renames live tables as ``begin_renames`` does, but each to a name in between: views that a dead run has not
        renewed may read any other name. A table that the dead run left at a name in between keeps it."""
        aside = {old: renaming_name(old) for old in renames}
        for old, between in aside.items():
            if old != between:
                self._rename(old, between)
        return {between: renames[old] for old, between in aside.items()}

    def finish_renames(self, renames: Mapping[str, str]) -> None:
        """Renames live tables whose new names are free."""
        for old, new in renames.items():
            self._rename(old, new)

    def _rename(self, old: str, new: str) -> None:
        self.spark.sql(f"ALTER TABLE {self.table(Layer.LIVE, old)} RENAME TO {self.table(Layer.LIVE, new)}")

    def replace_view(self, layer: Layer, name: str, columns: str, query: str, *, comment: str) -> None:
        """Creates or replaces a view. ``columns`` is the SQL list of all its columns, with their comments."""
        view = f"{self.table(layer, name)} ({columns})"
        made_by = f"TBLPROPERTIES ({literal(_MADE_BY)} = {literal(VERSION)})"
        self.spark.sql(f"CREATE OR REPLACE VIEW {view} COMMENT {literal(comment)} {made_by} AS {query}")

    def has_current_view(self, layer: Layer, name: str) -> bool:
        """True if a view that ``replace_view`` makes exists, and this version of the package made it."""
        if not self.exists(layer, name):
            return False
        view = self.table(layer, name), VERSION
        if view not in self._known_views and self.property(layer, name, _MADE_BY) == VERSION:
            self._known_views.add(view)
        return view in self._known_views

    def alter_view(self, layer: Layer, name: str, query: str, *, comment: str, same_comment: bool = False) -> None:
        """Makes a view show the result of ``query``: creates it, or alters one that exists, which keeps its privileges.
        Columns take their comments from the query's. ``same_comment``: it has this comment already."""
        view = self.table(layer, name)
        if not self.exists(layer, name):
            self.spark.sql(f"CREATE VIEW IF NOT EXISTS {view} COMMENT {literal(comment)} AS {query}")
            return
        self.spark.sql(f"ALTER VIEW {view} AS {query}")
        if not same_comment:
            self.comment_on_view(view, comment)

    def comment_on_view(self, view: str, comment: str) -> None:
        """Replaces the comment of a view, given by its full name."""
        self.spark.sql(f"COMMENT ON TABLE {view} IS {literal(comment)}")

    def refresh(self) -> None:
        """Registers what other processes created or renamed, where the session's catalog is its own."""

    def register(self) -> None:
        """Prepares the session."""
        # Else Spark puts settings and environment variables in place of ${…}, also within the quotes of a name.
        set_if_allowed(self.spark, "spark.sql.variable.substitute", "false")
        # Else TIMESTAMP may mean a time without zone, in tables that others have made with one.
        set_if_allowed(self.spark, "spark.sql.timestampType", "TIMESTAMP_LTZ")


def _aware(value: object) -> object:
    """Returns a time with its zone: PySpark returns times without zone, in that of the process."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def deployed_lake(spark: SparkSession, catalog: str, prefix: str = "") -> Lake:
    """Returns a deployed lake, to read from: ``prefix`` is what target ``dev`` puts before the schemas' names."""
    return Lake(spark=spark, catalog=catalog, schemas={layer: f"{prefix}{layer}" for layer in Layer}, checkpoints="")
