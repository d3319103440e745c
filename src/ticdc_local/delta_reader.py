"""Reads a lake's tables in a folder by delta-rs and DataFusion: within milliseconds, where Spark's JVM takes seconds.

It answers the same SQL as Spark does (`ticdc_lakehouse.catalog.Reader`), so that what a laptop says about a lake is
computed by the code that says it on Databricks. It makes no file and needs no Java.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer, Values
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.folder_lake import holds_table
from ticdc_lakehouse.sql.text import quoted

# Spark's way to quote names and texts.
_SETTINGS = {"datafusion.sql_parser.dialect": "spark"}


class DeltaReader:
    """The tables of the lake in a folder, each as it was at its first query."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._queries = QueryBuilder(_SETTINGS)
        self._tables: dict[str, DeltaTable] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The lake's folder and the one that it is in, for people."""
        return f"{self._root.parent.name}/{self._root.name}"

    def exists(self, layer: Layer, name: str) -> bool:
        """True if the Delta table exists."""
        return holds_table(self._root / layer / name)

    def table(self, layer: Layer, name: str) -> str:
        """Returns a table's name, as SQL takes it. Raises ConfigError for one that does not exist or cannot be read."""
        self._opened(layer, name)
        return quoted(_registered(layer, name))

    def columns(self, layer: Layer, name: str) -> list[str]:
        """Returns the names of a table's columns. Raises as `table` does."""
        return [field.name for field in self._opened(layer, name).schema().fields]

    def property(self, layer: Layer, name: str, key: str) -> str | None:
        """Returns a table's property, None if it has none of that name. Raises as `table` does."""
        return self._delta_table(layer, name).metadata().configuration.get(key)

    def commit_times(self, layer: Layer, name: str) -> list[datetime]:
        """Returns when each version of a table that wrote rows was committed, as far as its log goes back."""
        history = self._opened(layer, name).history()
        writes = [each for each in history if each.get("operation") not in ("CREATE TABLE", "OPTIMIZE")]
        return [datetime.fromtimestamp(each["timestamp"] / 1000, UTC) for each in writes]

    def rows(self, sql: str) -> list[Values]:
        """Returns the rows of a query, times in UTC. Raises ConfigError where a table's files cannot be read."""
        table = self._arrow(sql)
        columns = [_values(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _arrow(self, sql: str) -> pa.Table:
        try:
            with self._lock:
                return pa.RecordBatchReader.from_stream(self._queries.execute(sql)).read_all()
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise ConfigError(f"{self._root}: cannot be read: {first_line(error)}") from error

    def _opened(self, layer: Layer, name: str) -> DeltaTable:
        registered = _registered(layer, name)
        with self._lock:
            if registered not in self._tables:
                self._tables[registered] = self._delta_table(layer, name)
                self._queries.register(registered, self._tables[registered])
            return self._tables[registered]

    def _delta_table(self, layer: Layer, name: str) -> DeltaTable:
        folder = self._root / layer / name
        try:
            return DeltaTable(str(folder))
        except (DeltaError, OSError) as error:
            raise ConfigError(f"{folder}: cannot be read as a Delta table: {first_line(error)}") from error


def _values(column: pa.ChunkedArray) -> list[object]:
    """Returns a column's values. pyarrow itself imports pandas, which takes longer than all queries of a status
    together, for a time with a zone (and in ``pa.table`` for any argument)."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return column.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    times = column.cast(pa.timestamp(column.type.unit)).to_pylist()
    return [None if time is None else time.replace(tzinfo=UTC) for time in times]


def _registered(layer: Layer, name: str) -> str:
    return f"{layer}__{name}".lower()
