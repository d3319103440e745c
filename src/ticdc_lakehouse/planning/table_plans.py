"""The plans of all tables of a window, found by name and by database."""

from __future__ import annotations

from collections.abc import Iterator

from ticdc_lakehouse.planning.table_plan import TablePlanBuilder
from ticdc_lakehouse.schema.names import TableName, fold


class TablePlans:
    """The plans in insertion order, with indexes by name and by database."""

    def __init__(self) -> None:
        self._numbers: dict[TablePlanBuilder, int] = {}
        self._by_name: dict[TableName, list[TablePlanBuilder]] = {}
        self._by_database: dict[str, dict[TablePlanBuilder, None]] = {}
        self._spellings: dict[str, str] = {}
        self._added = 0

    def __iter__(self) -> Iterator[TablePlanBuilder]:
        return iter([*self._numbers])

    def __contains__(self, plan: object) -> bool:
        return plan in self._numbers

    def add(self, plan: TablePlanBuilder) -> None:
        """Appends a plan."""
        self._numbers[plan] = self._added
        self._added += 1
        self._enter(plan)

    def remove(self, plan: TablePlanBuilder) -> None:
        """Removes a plan."""
        del self._numbers[plan]
        self._leave(plan)

    def rename(self, plan: TablePlanBuilder, to: TableName) -> None:
        """Renames a plan, whether or not it is in the collection."""
        if plan in self._numbers:
            self._leave(plan)
        plan.name = to
        if plan in self._numbers:
            self._enter(plan)

    def named(self, name: TableName) -> TablePlanBuilder | None:
        """The plan of this name, the first of several; None if there is none."""
        return next(iter(self.all_named(name)), None)

    def all_named(self, name: TableName) -> list[TablePlanBuilder]:
        """All plans of this name, in insertion order: while a table is below the watermark, another one may have got
        its name since."""
        return sorted(self._by_name.get(name, ()), key=self._numbers.__getitem__)

    def of_database(self, database: str) -> list[TablePlanBuilder]:
        """The plans of all tables of a database, in insertion order."""
        return sorted(self._by_database.get(fold(database), ()), key=self._numbers.__getitem__)

    def named_in_any_database(self, table: str) -> list[TablePlanBuilder]:
        """The plans of the tables of this name in all databases, in insertion order."""
        return [plan for plan in self if fold(plan.name.table) == fold(table)]

    def spelled(self, name: TableName) -> TableName:
        """The name, with its database in the spelling of the feed's first table. The message of a RENAME and all rows
        after it carry the database in lower case (wire.md 8.14)."""
        return TableName(self._spellings.get(fold(name.database), name.database), name.table)

    def _enter(self, plan: TablePlanBuilder) -> None:
        database = fold(plan.name.database)
        self._by_name.setdefault(plan.name, []).append(plan)
        self._by_database.setdefault(database, {})[plan] = None
        self._spellings.setdefault(database, plan.name.database)

    def _leave(self, plan: TablePlanBuilder) -> None:
        self._by_name[plan.name].remove(plan)
        del self._by_database[fold(plan.name.database)][plan]
