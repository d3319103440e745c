"""Where tables lie: Unity Catalog's own storage on Databricks, a folder of Delta tables on a laptop."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from ticdc_lakehouse.sql.text import literal, quoted

_SIGNATURE = "spark.databricks.delta.commitInfo.userMetadata"


class Layer(StrEnum):
    """The schemas of the lake."""

    BRONZE = "bronze"
    SILVER = "silver"
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

    @contextmanager
    def signed(self, signature: str) -> Iterator[None]:
        """What this session writes within bears the signature, as ``userMetadata`` in the tables' histories."""
        self.spark.conf.set(_SIGNATURE, signature)
        try:
            yield
        finally:
            self.spark.conf.unset(_SIGNATURE)

    def signature(self) -> str | None:
        """What this session signs with now."""
        return self.spark.conf.get(_SIGNATURE, None)

    def view(self, layer: Layer, name: str, query: str, *, comment: str, columns: str = "") -> None:
        """Create or replace a view."""
        self.spark.sql(
            f"CREATE OR REPLACE VIEW {self.table(layer, name)} {columns} COMMENT {literal(comment)} AS {query}"
        )

    def register(self) -> None:
        """Make the session fit. On a laptop: make the schemas and register every Delta table found under ``root`` with
        the session's catalog."""
        # Else Spark puts settings and environment variables in place of ${…}, also within the quotes of a name.
        self.spark.conf.set("spark.sql.variable.substitute", "false")
        if self.root is None:
            return
        for layer, schema in self.schemas.items():
            self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.catalog)}.{quoted(schema)}")
            for log in sorted((self.root / layer).glob("*/_delta_log")):
                name = log.parent.name
                self.spark.sql(
                    f"CREATE TABLE IF NOT EXISTS {self.table(layer, name)} USING delta {self.location(layer, name)}"
                )


def session_lake(spark: SparkSession) -> Lake:
    """The lake of the session's current catalog, with the layers' plain names: enough to read."""
    return Lake(
        spark=spark,
        catalog=spark.catalog.currentCatalog(),
        schemas={layer: layer.value for layer in Layer},
        checkpoints="",
    )
