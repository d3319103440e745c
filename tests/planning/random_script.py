"""Random DDLs and rows over a few names, with what TiDB's tables hold after each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from ticdc_codec.event import Column, Op, RowChange
from ticdc_lakehouse.planning.window import DdlEvent, statements_of

_NAMES = ("a", "B", "c d", "e", "f")
_APART = 10
"""Between the commit_ts of two events."""


@dataclass
class HeldTable:
    columns: list[str]
    ids: tuple[int, ...]
    """TiDB's ids of the table: each TRUNCATE adds one."""
    rows: set[int] = field(default_factory=set)
    unread: set[int] = field(default_factory=set)
    """commit_ts of the DDLs of it that nobody can read."""


Tables = dict[str, HeldTable]


@dataclass
class Script:
    random: Random
    blocks: bool = False
    """Whether some DDLs are of a kind that nobody can read, which change nothing here: an override skips them."""
    idle: bool = False
    """Whether there are tables from before the changefeed, without rows, that no statement makes."""
    topics: int = 1
    """How many topics DDLs come through, each by the name of its table before it."""
    comes_back: bool = True
    """Whether tables are recovered, and made like others."""
    tables: Tables = field(default_factory=dict)
    dropped: Tables = field(default_factory=dict)
    """What RECOVER brings back."""
    ddls: list[DdlEvent] = field(default_factory=list)
    rows: list[RowChange] = field(default_factory=list)
    states: dict[int, Tables] = field(default_factory=dict)
    """The tables since each commit_ts."""
    commit_ts: int = 100
    used: int = 0
    """Numbers that rows and columns have."""

    def play(self, steps: int) -> None:
        kinds = [self.create, self.drop, self.rename, self.truncate, self.add, self.drop_column]
        kinds += [self.like, self.recover] if self.comes_back else []
        kinds += [self.unreadable] if self.blocks else []
        for name in self.random.sample(_NAMES, self.random.randint(1, 3)) if self.idle else ():
            self.tables[name] = HeldTable(["id", "x"], (self._number(),))
        for _ in range(steps):
            self.commit_ts += _APART
            self.random.choice((*kinds, self.swap, self.swap, *[self.insert] * 5))()
            self.states[self.commit_ts] = deepcopy(self.tables)

    def at(self, commit_ts: int) -> Tables:
        """What TiDB held then."""
        return next((self.states[at] for at in sorted(self.states, reverse=True) if at <= commit_ts), {})

    def create(self) -> None:
        for name in self._free():
            self.tables[name] = HeldTable(["id", "x"], (self._number(),))
            self._ddl(name, f"CREATE TABLE `d`.`{name}` (`id` INT PRIMARY KEY, `x` INT)")

    def like(self) -> None:
        for name, source in zip(self._free(), self._some(1), strict=False):
            self.tables[name] = HeldTable([*self.tables[source].columns], (self._number(),))
            self._ddl(name, f"CREATE TABLE `d`.`{name}` LIKE `d`.`{source}`")

    def drop(self) -> None:
        for name in self._some(1):
            self.dropped[name] = self.tables.pop(name)
            self._ddl(name, f"DROP TABLE `d`.`{name}`")

    def recover(self) -> None:
        for name in sorted(self.dropped.keys() - self.tables.keys())[:1]:
            self.tables[name] = self.dropped.pop(name)
            self._ddl(name, f"RECOVER TABLE `d`.`{name}`")

    def truncate(self) -> None:
        for name in self._some(1):
            self.dropped[name] = self.tables[name]
            self.tables[name] = HeldTable([*self.tables[name].columns], (*self.tables[name].ids, self._number()))
            self._ddl(name, f"TRUNCATE TABLE `d`.`{name}`")

    def rename(self) -> None:
        for old, new in zip(self._some(1), self._free(), strict=False):
            self._rename([(old, new)])

    def swap(self) -> None:
        names = self._some(2)
        if len(names) == 2:
            one, other = names
            self._rename([(one, "tmp"), (other, one), ("tmp", other)])

    def _rename(self, pairs: list[tuple[str, str]]) -> None:
        """As one statement or, as TiCDC sends it, as one a table."""
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
        texts = [f"`d`.`{old}` TO `d`.`{new}`" for old, new in pairs]
        if self.random.random() < 0.3:
            self._ddl(pairs[0][1], f"RENAME TABLE {', '.join(texts)}")
            return
        for (old, _), text in zip(pairs, texts, strict=True):
            self._ddl(
                pairs[0][1],
                f"RENAME TABLE {text}",
                topic=str(sum(map(ord, old)) % self.topics) if self.topics > 1 else "",
            )

    def add(self) -> None:
        for name in self._some(1):
            column = f"c{self._number()}"
            self.tables[name].columns.insert(0, column)
            self._ddl(name, f"ALTER TABLE `d`.`{name}` ADD COLUMN `{column}` INT FIRST")

    def drop_column(self) -> None:
        for name in self._some(1):
            columns = self.tables[name].columns
            if columns[0] != "id":
                self._ddl(name, f"ALTER TABLE `d`.`{name}` DROP COLUMN `{columns.pop(0)}`")

    def unreadable(self) -> None:
        for name in self._some(1):
            self.tables[name].unread.add(self.commit_ts)
            self._ddl(name, f"ALTER TABLE `d`.`{name}` SOME NEW THING {self._number()}")

    def insert(self) -> None:
        for name in self._some(1):
            table, number = self.tables[name], self._number()
            table.rows.add(number)
            columns = tuple(Column(name=column, type="int", key=column == "id") for column in table.columns)
            after = {column: str(number) for column in table.columns}
            row = RowChange(
                op=Op.INSERT, database="d", table=name, commit_ts=self.commit_ts, commit_ms=0, before=None,
                after=after, columns=columns, handle_key=f'["{number}"]',
            )  # fmt: skip
            self.rows.append(row)

    def _ddl(self, name: str, query: str, topic: str = "") -> None:
        ddl = DdlEvent(
            commit_ts=self.commit_ts, database="d", table=name, query=query,
            statements=statements_of(query, "d", name), topic=topic,
        )  # fmt: skip
        self.ddls.append(ddl)

    def _some(self, count: int) -> list[str]:
        return self.random.sample(sorted(self.tables), min(count, len(self.tables)))

    def _free(self) -> list[str]:
        free = [name for name in _NAMES if name not in self.tables]
        return [self.random.choice(free)] if free else []

    def _number(self) -> int:
        self.used += 1
        return self.used
