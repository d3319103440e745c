"""The plan builders of all tables of a window, found by name and by database."""

from __future__ import annotations

from collections.abc import Iterator

from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.plan_builder import TablePlanBuilder
from ticdc_lakehouse.schema.names import TableName


class BuilderIndex:
    """The builders in insertion order, with indexes by name and by database."""

    def __init__(self) -> None:
        self._numbers: dict[TablePlanBuilder, int] = {}
        self._by_name: dict[TableName, list[TablePlanBuilder]] = {}
        self._by_database: dict[str, dict[TablePlanBuilder, None]] = {}
        self._spellings: dict[str, str] = {}
        self._added = 0

    def __iter__(self) -> Iterator[TablePlanBuilder]:
        return iter([*self._numbers])

    def __contains__(self, builder: object) -> bool:
        return builder in self._numbers

    def add(self, builder: TablePlanBuilder) -> None:
        """Appends a builder."""
        self._numbers[builder] = self._added
        self._added += 1
        self._enter(builder)

    def remove(self, builder: TablePlanBuilder) -> None:
        """Removes a builder."""
        del self._numbers[builder]
        self._leave(builder)

    def rename(self, builder: TablePlanBuilder, to: TableName) -> None:
        """Renames a builder of the collection."""
        self._leave(builder)
        builder.name = to
        self._enter(builder)

    def named(self, name: TableName) -> TablePlanBuilder | None:
        """Returns the builder of this name, the first of several; None if there is none."""
        return next(iter(self.all_named(name)), None)

    def all_named(self, name: TableName) -> list[TablePlanBuilder]:
        """Returns all builders of this name, in insertion order: while a table is below the watermark, another one may
        have got its name since."""
        return sorted(self._by_name.get(name, ()), key=self._numbers.__getitem__)

    def of_database(self, database: str) -> list[TablePlanBuilder]:
        """Returns the builders of all tables of a database, in insertion order."""
        return sorted(self._by_database.get(fold(database), ()), key=self._numbers.__getitem__)

    def named_in_any_database(self, table: str) -> list[TablePlanBuilder]:
        """Returns the builders of the tables of this name in all databases, in insertion order."""
        return [builder for builder in self if fold(builder.name.table) == fold(table)]

    def spelled(self, name: TableName) -> TableName:
        """Returns the name, with its database in the spelling of the feed's first table. The message of a RENAME and
        all rows after it carry the database in lower case (wire.md 8.14)."""
        return TableName(self._spellings.get(fold(name.database), name.database), name.table)

    def _enter(self, builder: TablePlanBuilder) -> None:
        database = fold(builder.name.database)
        self._by_name.setdefault(builder.name, []).append(builder)
        self._by_database.setdefault(database, {})[builder] = None
        self._spellings.setdefault(database, builder.name.database)

    def _leave(self, builder: TablePlanBuilder) -> None:
        self._by_name[builder.name].remove(builder)
        del self._by_database[fold(builder.name.database)][builder]
