"""What random scripts of several databases share: their state, the texts of their DDLs, and choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from random_tables import Databases, HeldColumn, HeldTable

from ticdc_codec.event import RowChange
from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.window import DdlEvent, statements_of
from ticdc_lakehouse.schema.names import TableName

DATABASES = ("d", "D_a")
_TABLES = ("B", "a_b", "σ", "ς")  # noqa: RUF001 - Greek on purpose
"""Two of one name in Spark. `d.a_b` and `d_a.b` would have one name in the lake."""


@dataclass
class ScriptState:
    random: Random
    idle: bool = False
    """Whether there are tables from before the changefeed, without rows, that no statement makes."""
    lowers: bool = False
    """Whether a RENAME gives messages the database's name in lower case, as those of tiflow (wire.md 8.14)."""
    topics: int = 1
    """DDLs of a table come through the topic of its name."""
    blocks: bool = False
    """Whether some DDLs are of a kind that nobody can read, which change nothing here: an override skips them."""
    repeats: bool = False
    """Whether DDLs come again in another text, as when another version of TiCDC takes a changefeed over."""
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

    def at(self, commit_ts: int) -> dict[TableName, HeldTable]:
        """What TiDB held then, of the feed's tables."""
        return {name: table for name, table in _last(self.states, commit_ts).items() if not self.hides(name)}

    def kept_at(self, commit_ts: int) -> dict[TableName, HeldTable]:
        """What gold keeps of dropped tables."""
        return _last(self.kept_states, commit_ts)

    def alter(self, table: HeldTable, actions: str) -> None:
        table.lowered = False
        self.ddl(table, f"ALTER TABLE {self.text(table.name)} {actions}")

    def ddl(self, table: HeldTable, query: str) -> None:
        self.add_ddl(table.name.database, table.name.table, query, table.name)

    def add_ddl(self, database: str, table: str | None, query: str, name: TableName | None) -> None:
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

    def text(self, name: TableName) -> str:
        return f"`{self.typed(name.database)}`.`{self.typed(name.table)}`"

    def typed(self, name: str) -> str:
        """The name in some case."""
        typed = self.random.choice((name, name, name.upper(), name.lower()))
        return typed if fold(typed) == fold(name) else name

    def hides(self, name: TableName) -> bool:
        return name.table == self.hidden

    def new(self, name: TableName) -> HeldTable:
        columns = [HeldColumn("id", "INT", 1), HeldColumn("x", "INT", 2)]
        self.now.tables[name] = table = HeldTable(self.spelled(name), self.number(), columns)
        return table

    def spelled(self, name: TableName) -> TableName:
        """With the database as it was created."""
        return TableName(self.now.schemas[fold(name.database)][0], name.table)

    def all_tables(self) -> list[HeldTable]:
        return [self.now.tables[name] for name in sorted(self.now.tables)]

    def some(self, count: int) -> list[HeldTable]:
        return self.random.sample(self.all_tables(), min(count, len(self.now.tables)))

    def some_databases(self, chance: float) -> list[str]:
        databases = sorted(database for database, _ in self.now.schemas.values())
        return self.random.sample(databases, min(1, len(databases))) if self.random.random() < chance else []

    def free(self) -> list[TableName]:
        schemas = [database for database, _ in self.now.schemas.values()]
        names = (TableName(database, table) for database in sorted(schemas) for table in _TABLES)
        return [name for name in names if name not in self.now.tables]

    def some_free(self) -> list[TableName]:
        free = self.free()
        return [self.random.choice(free)] if free else []

    def number(self) -> int:
        self.used += 1
        return self.used


def _last(states: dict[int, dict[TableName, HeldTable]], commit_ts: int) -> dict[TableName, HeldTable]:
    return next((states[at] for at in sorted(states, reverse=True) if at <= commit_ts), {})
