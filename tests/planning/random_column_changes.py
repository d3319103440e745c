"""Random changes of columns, for `random_database`."""

from __future__ import annotations

from dataclasses import replace

from random_script_state import ScriptState
from random_tables import HeldColumn, HeldTable

from ticdc_codec.name_case import fold

_COLUMNS = ("x", "Y", "é", "c d")


class ColumnChanges(ScriptState):
    def add(self) -> None:
        for table in self.some(1):
            if (column := self._new_column(table)) is not None:
                self.alter(table, self._added(table, table.columns, column))

    def drop_column(self) -> None:
        for table in self.some(1):
            if (dropped := self._column(table)) is not None:
                table.change_columns([column for column in table.columns if column is not dropped])
                self.alter(table, f"DROP COLUMN `{self.typed(dropped.name)}`")

    def add_and_drop(self) -> None:
        for table in self.some(1):
            dropped, added = self._column(table), self._new_column(table)
            if dropped is not None and added is not None:
                left = [column for column in table.columns if column is not dropped]
                texts = [f"DROP COLUMN `{self.typed(dropped.name)}`", self._added(table, left, added)]
                self.alter(table, ", ".join(self.random.sample(texts, 2)))

    def rename_column(self) -> None:
        for table in self.some(1):
            of_key = self.random.random() < 0.2 and not table.partitions
            column = table.columns[self._key_at(table)] if of_key else self._column(table)
            free = self._free_columns(table)
            if column is not None and free:
                new = self.random.choice(free)
                old = self.typed(column.name)
                table.change_columns([replace(c, name=new) if c is column else c for c in table.columns])
                changed = f"CHANGE COLUMN `{old}` `{new}` {column.type}" + (" NOT NULL" if of_key else "")
                self.alter(table, self.random.choice((f"RENAME COLUMN `{old}` TO `{new}`", changed)))

    def swap_columns(self) -> None:
        for table in self.some(1):
            others = [column for column in table.columns if column.number != 1]
            if len(others) > 1:
                one, other = self.random.sample(others, 2)
                names = {one: other.name, other: one.name}
                table.change_columns([replace(c, name=names.get(c, c.name)) for c in table.columns])
                texts = [f"RENAME COLUMN `{self.typed(c.name)}` TO `{new}`" for c, new in names.items()]
                self.alter(table, ", ".join(texts))

    def modify(self) -> None:
        """A name that a MODIFY writes in another case is the column's from then on."""
        for table in self.some(1):
            column = self._column(table)
            if column is not None:
                to = {"INT": "BIGINT", "BIGINT": "VARCHAR(30)"}.get(column.type, "VARCHAR(40)")
                made = replace(column, name=self.typed(column.name), type=to, converted=True)
                left = [each for each in table.columns if each is not column]
                at, place = self._place(left)
                if not place:
                    at = table.columns.index(column)
                table.change_columns([*left[:at], made, *left[at:]])
                self.alter(table, f"MODIFY COLUMN `{made.name}` {to}{place}")

    def unreadable(self) -> None:
        for table in self.some(1):
            table.unread |= {self.commit_ts}
            self.alter(table, f"SOME NEW THING {self.number()}")

    def _new_column(self, table: HeldTable) -> HeldColumn | None:
        free = self._free_columns(table)
        if not free:
            return None
        table.columns_made += 1
        default = self.random.choice((None, str(self.number())))
        type_ = self.random.choice(("INT", "BIGINT", "VARCHAR(30)"))
        return HeldColumn(self.typed(self.random.choice(free)), type_, table.columns_made, default)

    def _added(self, table: HeldTable, columns: list[HeldColumn], column: HeldColumn) -> str:
        at, place = self._place(columns)
        table.change_columns([*columns[:at], column, *columns[at:]])
        default = "" if column.default is None else f" DEFAULT '{column.default}'"
        return f"ADD COLUMN `{column.name}` {column.type}{default}{place}"

    def _place(self, columns: list[HeldColumn]) -> tuple[int, str]:
        at = self.random.randint(0, len(columns))
        if at == len(columns) and self.random.random() < 0.5:
            return at, ""
        return at, f" AFTER `{self.typed(columns[at - 1].name)}`" if at else " FIRST"

    def _column(self, table: HeldTable) -> HeldColumn | None:
        others = [column for column in table.columns if column.number != 1]
        return self.random.choice(others) if others else None

    def _key_at(self, table: HeldTable) -> int:
        return next(at for at, column in enumerate(table.columns) if column.number == 1)

    def _free_columns(self, table: HeldTable) -> list[str]:
        return [name for name in _COLUMNS if fold(name) not in {fold(column.name) for column in table.columns}]
