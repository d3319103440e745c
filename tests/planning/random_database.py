"""Random DDLs and rows of several databases, with what TiDB's tables hold after each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random

from random_tables import Databases, HeldColumn, HeldTable, Row

from ticdc_codec.event import Column, Op, RowChange
from ticdc_lakehouse.planning.window import DdlEvent, statements_of
from ticdc_lakehouse.schema.names import TableName, fold

_DATABASES = ("d", "D_a")
_TABLES = ("B", "a_b", "σ", "ς")  # noqa: RUF001 - Greek on purpose
"""Two of one name in Spark. `d.a_b` and `d_a.b` would have one name in the lake."""
_COLUMNS = ("x", "Y", "é", "c d")
_APART = 10
"""Between the commit_ts of two events."""


@dataclass
class DatabaseScript:
    random: Random
    idle: bool = False
    """Whether there are tables from before the changefeed, without rows, that no statement makes."""
    lowers: bool = False
    """Whether a RENAME gives messages the database's name in lower case, as those of tiflow (wire.md 8.14)."""
    topics: int = 1
    """DDLs of a table come through the topic of its name."""
    hidden: str = ""
    """The name of tables, of any database, that the feed's filter leaves out."""
    kept: str = ""
    """The name of tables, of any database, that gold keeps when TiDB drops them."""
    now: Databases = field(default_factory=Databases)
    ddls: list[DdlEvent] = field(default_factory=list)
    """In TiDB's order."""
    rows: list[RowChange] = field(default_factory=list)
    states: dict[int, dict[TableName, HeldTable]] = field(default_factory=dict)
    """The tables since each commit_ts."""
    dropped: dict[TableName, HeldTable] = field(default_factory=dict)
    """The last tables of names that gold keeps."""
    kept_states: dict[int, dict[TableName, HeldTable]] = field(default_factory=dict)
    commit_ts: int = 100
    used: int = 0
    """Numbers that tables, keys and values have."""

    def play(self, steps: int) -> None:
        of_names = [self.create, self.create, self.like, self.drop, self.rename, self.swap, self.truncate]
        of_names += [self.recover, self.flashback, self.drop_database, self.create_database]
        of_columns = [self.add, self.drop_column, self.rename_column, self.modify, self.swap_columns, self.add_and_drop]
        of_rows = [self.exchange, self.exchange, self.truncate_partition, self.remove_partitioning]
        dml = [*[self.insert] * 5, *[self.update] * 2, self.delete, self.move_key]
        for database in _DATABASES:
            self.now.schemas[fold(database)] = (database, self._number())
        for name in self.random.sample(self._free(), self.random.randint(1, 4)) if self.idle else ():
            self._new(name).uncertain = True
        for _ in range(steps):
            self.commit_ts += _APART
            before = {name: table for name, table in self.now.tables.items() if name.table == self.kept}
            verbs = self.random.choices((of_names, of_columns, of_rows, dml), (3, 2, 1, 4))[0]
            self.random.choice(verbs)()
            there = {table.number for table in self.now.tables.values()}
            self.dropped |= {name: table for name, table in before.items() if table.number not in there}
            shown = (table for table in self.now.tables.values() if not (table.unknown or self._hides(table.name)))
            there = {table.number for table in shown}
            gone = {name for name, table in self.dropped.items() if name in self.now.tables or table.number in there}
            self.dropped = {name: table for name, table in self.dropped.items() if name not in gone}
            self.states[self.commit_ts] = deepcopy(self.now.tables)
            self.kept_states[self.commit_ts] = deepcopy(self.dropped)

    def at(self, commit_ts: int) -> dict[TableName, HeldTable]:
        """What TiDB held then, of the feed's tables."""
        return {name: table for name, table in _last(self.states, commit_ts).items() if not self._hides(name)}

    def kept_at(self, commit_ts: int) -> dict[TableName, HeldTable]:
        """What gold keeps of dropped tables."""
        return _last(self.kept_states, commit_ts)

    # Names

    def create(self) -> None:
        for name in self._some_free():
            table = self._new(name)
            table.partitions = self.random.choice((0, 0, 2))
            parted = f" PARTITION BY HASH (`id`) PARTITIONS {table.partitions}" if table.partitions else ""
            self._ddl(table, f"CREATE TABLE {self._text(name)} (`id` INT PRIMARY KEY, `x` INT){parted}")

    def like(self) -> None:
        for name, source in zip(self._some_free(), self._some(1), strict=False):
            self.now.tables[name] = made = replace(source.emptied(self._number()), name=name)
            made.uncertain = source.uncertain or self._hides(source.name)
            self._ddl(made, f"CREATE TABLE {self._text(name)} LIKE {self._text(source.name)}")

    def drop(self) -> None:
        for table in self._some(1):
            self.now.drop(table.name)
            self._ddl(table, f"DROP TABLE {self._text(table.name)}")

    def truncate(self) -> None:
        for table in self._some(1):
            self.now.drop(table.name)
            self.now.tables[table.name] = emptied = table.emptied(self._number())
            self._ddl(emptied, f"TRUNCATE TABLE {self._text(table.name)}")

    def recover(self) -> None:
        found = sorted(self.now.found_dropped().keys() - self.now.tables.keys())
        for name in self.random.sample(found, min(1, len(found))):
            self._ddl(self._restored(name, name), f"RECOVER TABLE {self._text(name)}")

    def flashback(self) -> None:
        found = sorted(self.now.found_dropped())
        for name in self.random.sample(found, min(1, len(found))):
            free = [to for to in self._free() if fold(to.database) == fold(name.database)]
            for to in self.random.sample(free, min(1, len(free))):
                back = self._restored(name, TableName(name.database, to.table))
                self._ddl(back, f"FLASHBACK TABLE {self._text(name)} TO `{self._typed(to.table)}`")

    def _restored(self, name: TableName, to: TableName) -> HeldTable:
        table = self.now.restore(name, to)
        if self._hides(name):
            table.uncertain = table.unknown = True
        return table

    def rename(self) -> None:
        for table, new in zip(self._some(1), self._some_free(), strict=False):
            self._rename([(table.name, new)])

    def swap(self) -> None:
        some = self._some(2)
        if len(some) == 2:
            one, other = (table.name for table in some)
            tmp = TableName(self.random.choice((one, other)).database, "tmp")
            self._rename([(one, tmp), (other, one), (tmp, other)])

    def _rename(self, pairs: list[tuple[TableName, TableName]]) -> None:
        """As one statement or, as TiCDC sends it, as one a table."""
        for old, new in pairs:
            self.now.tables[new] = table = self.now.tables.pop(old)
            table.name, table.lowered = self._spelled(new), self.lowers and len(pairs) == 1
            if self._hides(old):
                table.uncertain = table.unknown = True
        texts = [f"{self._text(old)} TO {self._text(new)}" for old, new in pairs]
        as_one = self.random.random() < 0.3
        tables = [self.now.tables[name] for name in {new for _, new in pairs} & self.now.tables.keys()]
        if not as_one and self.topics > 1 and any(table.uncertain for table in tables):
            for table in tables:  # one that gold lacks may have had the name in between
                table.uncertain = True
        for text, (old, new) in [(", ".join(texts), pairs[0])] if as_one else zip(texts, pairs, strict=True):
            self._add_ddl(table.sent_name.database, new.table, f"RENAME TABLE {text}", old)

    def drop_database(self) -> None:
        for database in self._some_databases(0.3):
            self.now.drop_database(database)
            self._add_ddl(database, None, f"DROP DATABASE `{self._typed(database)}`", None)

    def create_database(self) -> None:
        for database in _DATABASES:
            if fold(database) not in self.now.schemas:
                made = self._typed(database)
                self.now.schemas[fold(database)] = (made, self._number())
                self._add_ddl(made, None, f"CREATE DATABASE `{made}`", None)

    # Columns

    def add(self) -> None:
        for table in self._some(1):
            if (column := self._new_column(table)) is not None:
                self._alter(table, self._added(table, table.columns, column))

    def drop_column(self) -> None:
        for table in self._some(1):
            if (dropped := self._column(table)) is not None:
                table.change_columns([column for column in table.columns if column is not dropped])
                self._alter(table, f"DROP COLUMN `{self._typed(dropped.name)}`")

    def add_and_drop(self) -> None:
        for table in self._some(1):
            dropped, added = self._column(table), self._new_column(table)
            if dropped is not None and added is not None:
                left = [column for column in table.columns if column is not dropped]
                texts = [f"DROP COLUMN `{self._typed(dropped.name)}`", self._added(table, left, added)]
                self._alter(table, ", ".join(self.random.sample(texts, 2)))

    def rename_column(self) -> None:
        for table in self._some(1):
            of_key = self.random.random() < 0.2 and not table.partitions
            column = table.columns[self._key_at(table)] if of_key else self._column(table)
            free = self._free_columns(table)
            if column is not None and free:
                new = self.random.choice(free)
                old = self._typed(column.name)
                table.change_columns([replace(c, name=new) if c is column else c for c in table.columns])
                changed = f"CHANGE COLUMN `{old}` `{new}` {column.type}" + (" NOT NULL" if of_key else "")
                self._alter(table, self.random.choice((f"RENAME COLUMN `{old}` TO `{new}`", changed)))

    def swap_columns(self) -> None:
        for table in self._some(1):
            others = [column for column in table.columns if column.number != 1]
            if len(others) > 1:
                one, other = self.random.sample(others, 2)
                names = {one: other.name, other: one.name}
                table.change_columns([replace(c, name=names.get(c, c.name)) for c in table.columns])
                texts = [f"RENAME COLUMN `{self._typed(c.name)}` TO `{new}`" for c, new in names.items()]
                self._alter(table, ", ".join(texts))

    def modify(self) -> None:
        """A name that a MODIFY writes in another case is the column's from then on."""
        for table in self._some(1):
            column = self._column(table)
            if column is not None:
                to = {"INT": "BIGINT", "BIGINT": "VARCHAR(30)"}.get(column.type, "VARCHAR(40)")
                made = replace(column, name=self._typed(column.name), type=to, converted=True)
                left = [each for each in table.columns if each is not column]
                at, place = self._place(left)
                if not place:
                    at = table.columns.index(column)
                table.change_columns([*left[:at], made, *left[at:]])
                self._alter(table, f"MODIFY COLUMN `{made.name}` {to}{place}")

    def _new_column(self, table: HeldTable) -> HeldColumn | None:
        free = self._free_columns(table)
        if not free:
            return None
        table.columns_made += 1
        default = self.random.choice((None, str(self._number())))
        type_ = self.random.choice(("INT", "BIGINT", "VARCHAR(30)"))
        return HeldColumn(self._typed(self.random.choice(free)), type_, table.columns_made, default)

    def _added(self, table: HeldTable, columns: list[HeldColumn], column: HeldColumn) -> str:
        at, place = self._place(columns)
        table.change_columns([*columns[:at], column, *columns[at:]])
        default = "" if column.default is None else f" DEFAULT '{column.default}'"
        return f"ADD COLUMN `{column.name}` {column.type}{default}{place}"

    def _place(self, columns: list[HeldColumn]) -> tuple[int, str]:
        at = self.random.randint(0, len(columns))
        if at == len(columns) and self.random.random() < 0.5:
            return at, ""
        return at, f" AFTER `{self._typed(columns[at - 1].name)}`" if at else " FIRST"

    def _column(self, table: HeldTable) -> HeldColumn | None:
        others = [column for column in table.columns if column.number != 1]
        return self.random.choice(others) if others else None

    def _key_at(self, table: HeldTable) -> int:
        return next(at for at, column in enumerate(table.columns) if column.number == 1)

    def _free_columns(self, table: HeldTable) -> list[str]:
        return [name for name in _COLUMNS if fold(name) not in {fold(column.name) for column in table.columns}]

    # Rows

    def exchange(self) -> None:
        parted = [table for table in self._all() if table.partitions]
        for one in self.random.sample(parted, min(1, len(parted))):
            others = [other for other in self._all() if self._fits(one, other)]
            for other in self.random.sample(others, min(1, len(others))):
                keys = {one.partition_of(key) for key in other.rows} or {self.random.randrange(one.partitions)}
                if len(keys) == 1:
                    self._exchange(one, other, *keys)

    def _fits(self, one: HeldTable, other: HeldTable) -> bool:
        columns = [[(c.number, fold(c.name), c.type) for c in table.columns] for table in (one, other)]
        return not other.partitions and columns[0] == columns[1]

    def _exchange(self, one: HeldTable, other: HeldTable, at: int) -> None:
        inside = {key: row for key, row in one.rows.items() if one.partition_of(key) == at}
        outside = {key: row for key, row in one.rows.items() if key not in inside}
        for table, rows in ((one, {**outside, **other.rows}), (other, inside)):
            names = [column.name for column in table.columns]
            table.rows = {key: dict(zip(names, row.values(), strict=True)) for key, row in rows.items()}
        defaults = [[(c.default, c.converted) for c in table.columns] for table in (one, other)]
        if one.uncertain or other.uncertain or defaults[0] != defaults[1]:
            one.uncertain = other.uncertain = True
        if self._hides(one.name) != self._hides(other.name):
            one.uncertain = other.uncertain = one.unknown = other.unknown = True
        one.unknown = other.unknown = one.unknown or other.unknown
        texts = [self._text(table.name) for table in (one, other)]
        self._ddl(one, f"ALTER TABLE {texts[0]} EXCHANGE PARTITION `p{at}` WITH TABLE {texts[1]}")

    def truncate_partition(self) -> None:
        parted = [table for table in self._all() if table.partitions]
        for table in self.random.sample(parted, min(1, len(parted))):
            at = self.random.randrange(table.partitions)
            table.rows = {key: row for key, row in table.rows.items() if table.partition_of(key) != at}
            self._alter(table, f"TRUNCATE PARTITION `P{at}`")

    def remove_partitioning(self) -> None:
        parted = [table for table in self._all() if table.partitions]
        for table in self.random.sample(parted, min(1, len(parted))):
            table.partitions = 0
            self._alter(table, "REMOVE PARTITIONING")

    def insert(self) -> None:
        for table in self._some(1):
            key = str(self._number() * 2 + (self.random.random() < 0.3))
            self._row(table, Op.INSERT, None, self._values(table, key))

    def update(self) -> None:
        for table in self._some(1):
            for key in self.random.sample(sorted(table.rows), min(1, len(table.rows))):
                self._row(table, Op.UPDATE, table.rows[key], self._values(table, key))

    def delete(self) -> None:
        for table in self._some(1):
            for key in self.random.sample(sorted(table.rows), min(1, len(table.rows))):
                self._row(table, Op.DELETE, table.rows[key], None)

    def move_key(self) -> None:
        """Two rows swap their keys, or one gets another: TiCDC sends deletes and inserts (wire.md 2.3)."""
        for table in self._some(1):
            keys = self.random.sample(sorted(table.rows), min(2, len(table.rows)))
            new = [*keys[1:], keys[0]] if len(keys) > 1 else [str(self._number() * 2)]
            for key in keys:
                self._row(table, Op.DELETE, table.rows[key], None)
            for key in new if keys else ():
                self._row(table, Op.INSERT, None, self._values(table, key))

    def _values(self, table: HeldTable, key: str) -> Row:
        null = self.random.random() < 0.1
        values = {column.name: None if null else str(self._number()) for column in table.columns}
        return {**values, table.key: key}

    def _row(self, table: HeldTable, op: Op, before: Row | None, after: Row | None) -> None:
        columns = tuple(
            Column(name=column.name, type=column.type.lower().partition("(")[0], key=column.number == 1)
            for column in table.columns
        )
        key = (after or before or {})[table.key]
        assert key is not None
        change = RowChange(
            op=op, database=table.sent_name.database, table=table.sent_name.table, commit_ts=self.commit_ts,
            commit_ms=0, before=None if before is None else {**before}, after=None if after is None else {**after},
            columns=columns, handle_key=f'["{key}"]',
        )  # fmt: skip
        self.rows.append(change)
        if after is None:
            del table.rows[key]
        else:
            table.rows[key] = after

    # Texts

    def _alter(self, table: HeldTable, actions: str) -> None:
        table.lowered = False
        self._ddl(table, f"ALTER TABLE {self._text(table.name)} {actions}")

    def _ddl(self, table: HeldTable, query: str) -> None:
        self._add_ddl(table.name.database, table.name.table, query, table.name)

    def _add_ddl(self, database: str, table: str | None, query: str, name: TableName | None) -> None:
        topic = "" if name is None or self.topics == 1 else str(sum(map(ord, "".join(name.folded))) % self.topics)
        statements = statements_of(query, database, table)
        self.ddls.append(
            DdlEvent(
                commit_ts=self.commit_ts,
                database=database,
                table=table,
                query=query,
                statements=statements,
                topic=topic,
            )
        )

    def _text(self, name: TableName) -> str:
        return f"`{self._typed(name.database)}`.`{self._typed(name.table)}`"

    def _typed(self, name: str) -> str:
        """The name in some case."""
        typed = self.random.choice((name, name, name.upper(), name.lower()))
        return typed if fold(typed) == fold(name) else name

    # Choices

    def _hides(self, name: TableName) -> bool:
        return name.table == self.hidden

    def _new(self, name: TableName) -> HeldTable:
        columns = [HeldColumn("id", "INT", 1), HeldColumn("x", "INT", 2)]
        self.now.tables[name] = table = HeldTable(self._spelled(name), self._number(), columns)
        return table

    def _spelled(self, name: TableName) -> TableName:
        """With the database as it was created."""
        return TableName(self.now.schemas[fold(name.database)][0], name.table)

    def _all(self) -> list[HeldTable]:
        return [self.now.tables[name] for name in sorted(self.now.tables)]

    def _some(self, count: int) -> list[HeldTable]:
        return self.random.sample(self._all(), min(count, len(self.now.tables)))

    def _some_databases(self, chance: float) -> list[str]:
        databases = sorted(database for database, _ in self.now.schemas.values())
        return self.random.sample(databases, min(1, len(databases))) if self.random.random() < chance else []

    def _free(self) -> list[TableName]:
        schemas = [database for database, _ in self.now.schemas.values()]
        names = (TableName(database, table) for database in sorted(schemas) for table in _TABLES)
        return [name for name in names if name not in self.now.tables]

    def _some_free(self) -> list[TableName]:
        free = self._free()
        return [self.random.choice(free)] if free else []

    def _number(self) -> int:
        self.used += 1
        return self.used


def _last(states: dict[int, dict[TableName, HeldTable]], commit_ts: int) -> dict[TableName, HeldTable]:
    return next((states[at] for at in sorted(states, reverse=True) if at <= commit_ts), {})
