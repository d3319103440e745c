"""Random DDLs and rows of several databases, with what TiDB's tables hold after each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from random_column_changes import ColumnChanges
from random_row_changes import RowChanges
from random_script_state import DATABASES
from random_tables import HeldTable

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.names import TableName

_APART = 10
"""Between the commit_ts of two events."""


class DatabaseScript(ColumnChanges, RowChanges):
    """A script, played step by step."""

    def play(self, steps: int) -> None:
        of_names = [self.create, self.create, self.like, self.drop, self.rename, self.swap, self.truncate]
        of_names += [self.recover, self.flashback, self.drop_database, self.create_database]
        of_columns = [self.add, self.drop_column, self.rename_column, self.modify, self.swap_columns, self.add_and_drop]
        of_columns += [self.unreadable] * 2 if self.blocks else []
        of_rows = [self.exchange, self.exchange, self.truncate_partition, self.remove_partitioning]
        dml = [*[self.insert] * 5, *[self.update] * 2, self.delete, self.move_key]
        for database in DATABASES:
            self.now.schemas[fold(database)] = (database, self.number())
        for name in self.random.sample(self.free(), self.random.randint(1, 4)) if self.idle else ():
            self.new(name).uncertain = True
        self.states[self.commit_ts] = deepcopy(self.now.tables)
        for _ in range(steps):
            self.commit_ts += _APART
            before = {name: table for name, table in self.now.tables.items() if name.table == self.kept}
            verbs = self.random.choices((of_names, of_columns, of_rows, dml), (3, 2, 1, 4))[0]
            self.random.choice(verbs)()
            if self.repeats and self.random.random() < 0.3:
                again = [ddl for ddl in self.ddls if ddl.commit_ts == self.commit_ts]
                self.ddls += [replace(ddl, query=f"{ddl.query};") for ddl in again]
            self._keep(before)
            self.states[self.commit_ts] = deepcopy(self.now.tables)

    def _keep(self, before: dict[TableName, HeldTable]) -> None:
        """Adds those of the tables that are gone to the dropped ones; takes away the ones that are back."""
        there = {table.number for table in self.now.tables.values()}
        self.dropped |= {name: table for name, table in before.items() if table.number not in there}
        back = {table.number for table in self.now.tables.values() if not table.unknown}
        left = ((name, table) for name, table in self.dropped.items() if name not in self.now.tables)
        self.dropped = {name: table for name, table in left if table.number not in back}
        self.kept_states[self.commit_ts] = deepcopy(self.dropped)

    def create(self) -> None:
        for name in self.some_free():
            table = self.new(name)
            table.partitions = self.random.choice((0, 0, 2))
            parted = f" PARTITION BY HASH (`id`) PARTITIONS {table.partitions}" if table.partitions else ""
            self.ddl(table, f"CREATE TABLE {self.text(name)} (`id` INT PRIMARY KEY, `x` INT){parted}")

    def like(self) -> None:
        for name, source in zip(self.some_free(), self.some(1), strict=False):
            self.now.tables[name] = made = replace(source.emptied(self.number()), name=name, former=())
            made.uncertain = source.uncertain or self.hides(source.name)
            self.ddl(made, f"CREATE TABLE {self.text(name)} LIKE {self.text(source.name)}")

    def drop(self) -> None:
        for table in self.some(1):
            self.now.drop(table.name)
            self.ddl(table, f"DROP TABLE {self.text(table.name)}")

    def truncate(self) -> None:
        for table in self.some(1):
            self.now.drop(table.name)
            self.now.tables[table.name] = emptied = table.emptied(self.number())
            self.ddl(emptied, f"TRUNCATE TABLE {self.text(table.name)}")

    def recover(self) -> None:
        found = sorted(self.now.found_dropped().keys() - self.now.tables.keys())
        for name in self.random.sample(found, min(1, len(found))):
            several = sum(each.name == name for each in self.now.history) > 1
            by_job = self.random.random() < 0.2
            back = self._restored(name, name)
            back.uncertain |= by_job and several
            self.ddl(back, f"RECOVER TABLE BY JOB {self.number()}" if by_job else f"RECOVER TABLE {self.text(name)}")

    def flashback(self) -> None:
        found = sorted(self.now.found_dropped())
        for name in self.random.sample(found, min(1, len(found))):
            free = [to for to in self.free() if fold(to.database) == fold(name.database)]
            for to in self.random.sample(free, min(1, len(free))):
                back = self._restored(name, TableName(name.database, to.table))
                self.ddl(back, f"FLASHBACK TABLE {self.text(name)} TO `{self.typed(to.table)}`")

    def _restored(self, name: TableName, to: TableName) -> HeldTable:
        table = self.now.restore(name, to)
        if self.hides(name):
            table.uncertain = table.unknown = True
        return table

    def rename(self) -> None:
        for table, new in zip(self.some(1), self.some_free(), strict=False):
            self._rename([(table.name, new)])

    def swap(self) -> None:
        some = self.some(2)
        if len(some) == 2:
            one, other = (table.name for table in some)
            tmp = TableName(self.random.choice((one, other)).database, "tmp")
            self._rename([(one, tmp), (other, one), (tmp, other)])

    def _rename(self, pairs: list[tuple[TableName, TableName]]) -> None:
        """As one statement or, as TiCDC sends it, as one a table."""
        for old, new in pairs:
            self.now.tables[new] = table = self.now.tables.pop(old)
            table.name, table.lowered = self.spelled(new), self.lowers and len(pairs) == 1
            if self.hides(old):
                table.uncertain = table.unknown = True
        texts = [f"{self.text(old)} TO {self.text(new)}" for old, new in pairs]
        as_one = self.random.random() < 0.3
        tables = [self.now.tables[name] for name in {new for _, new in pairs} & self.now.tables.keys()]
        if not as_one and self.topics > 1 and any(table.uncertain for table in tables):
            for table in tables:  # one that gold lacks may have had the name in between
                table.uncertain = True
        for text, (old, new) in [(", ".join(texts), pairs[0])] if as_one else zip(texts, pairs, strict=True):
            self.add_ddl(table.sent_name.database, new.table, f"RENAME TABLE {text}", old)

    def drop_database(self) -> None:
        for database in self.some_databases(0.3):
            self.now.drop_database(database)
            self.add_ddl(database, None, f"DROP DATABASE `{self.typed(database)}`", None)

    def create_database(self) -> None:
        for database in DATABASES:
            if fold(database) not in self.now.schemas:
                made = self.typed(database)
                self.now.schemas[fold(database)] = (made, self.number())
                self.add_ddl(made, None, f"CREATE DATABASE `{made}`", None)
