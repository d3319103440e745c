"""The tables' schemas: what messages have carried so far, and what earlier batches learned (``known``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from ticdc_codec.decoder_context import SchemaName
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column, Layout, columns_text


class Schemas:
    """Layouts by database, table and schema version. RENAME TABLE leaves the version as it is (wire.md 1.3.1)."""

    MOST = 10_000

    def __init__(self, known: Mapping[SchemaName, tuple[Column, ...]]) -> None:
        self._known = known
        self._learned: dict[SchemaName, Layout] = {}
        self._missing: set[SchemaName] = set()

    def begin_batch(self) -> None:
        """Ask ``known`` again for what it did not know before."""
        self._missing.clear()

    def learn(self, layout: Layout) -> Layout:
        """Keep a layout for rows to come; the one kept before if it says the same."""
        if layout.database is None or layout.table is None or layout.version is None:
            return layout
        name = (layout.database, layout.table, layout.version)
        before = self._learned.get(name)
        if before is not None and before.text == layout.text:
            return before
        if len(self._learned) >= self.MOST:
            self._learned.clear()
        self._learned[name] = layout
        self._missing.discard(name)
        return layout

    def find(self, database: str, table: str, version: int) -> Layout:
        """The layout that a row names. Raises DecodeError ``schema_missing``: the row can be read once it is known."""
        name = (database, table, version)
        layout = self._learned.get(name)
        if layout is not None:
            return layout
        columns = None if name in self._missing else self._known.get(name)
        if columns is None:
            self._missing.add(name)
            detail = f"expected a schema of version {version} of {database}.{table} before its rows, found none"
            raise DecodeError("schema_missing", detail, database=database, table=table)
        return self.learn(Layout(database, table, columns, columns_text(columns), version))


@lru_cache(maxsize=4096)
def layout_with(layout: Layout, names: frozenset[str]) -> Layout:
    """The layout of rows that have these columns: all, or all but virtual ones, or the handle key alone; one object
    for equal arguments. Raises DecodeError for other names.

    Rows name no key if they lack a column of it: a unique key may have virtual columns, and the others are not unique.
    """
    columns = tuple(column for column in layout.columns if column.name in names)
    if len(columns) != len(names):
        expected = [column.name for column in layout.columns]
        raise DecodeError("wrong_columns", f"expected columns among {expected}, found {sorted(names)}")
    if len(columns) == len(layout.columns):
        return layout
    if not names >= {column.name for column in layout.columns if column.key}:
        columns = tuple(replace(column, key=False) for column in columns)
    return Layout(layout.database, layout.table, columns, columns_text(columns), layout.version)
