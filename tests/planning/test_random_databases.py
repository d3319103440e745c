"""Random scripts of several databases in random windows: wherever a window ends, each table has the columns and rows of
TiDB's, or is blocked where no message tells them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest
from planned import topics_of
from planned_rows import Converted, Row, RowPlanner
from random_database import DatabaseScript
from random_tables import HeldTable
from test_random_windows import windows

from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.steps import Step
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.policy import OnDrop, Policy
from ticdc_lakehouse.schema.names import TableName, spark_names


class DatabasePlanner(RowPlanner):
    """Plans a script's windows, and does them to rows."""

    def __init__(self, script: DatabaseScript, config: GoldConfig) -> None:
        self._config, self.script, self.script_rows = config, script, script.rows
        super().__init__(stream=None)  # type: ignore[arg-type]  # a script is none

    def __post_init__(self) -> None:
        self.rows = self.script_rows
        for row in self.rows:
            self.named[TableName(row.database, row.table)].append(row)

    @property
    def config(self) -> GoldConfig:
        return self._config

    @property
    def topics(self) -> set[str]:
        return topics_of(self.script.topics)

    def play(self, tso: int, ddls: list[DdlEvent]) -> None:
        self.ddls = ddls
        self._plan(tso)
        names = [(state.lake_name, name) for name, state in self.before.tables.items() if state.lake_name]
        assert len({each for name, _ in names for each in spark_names(name)[:1]}) == len(names), names

    def _do(self, step: Step, data: str) -> None:
        """A type that gets larger leaves each text as it is."""
        super()._do(step, data)
        for row in self.held[data]:
            row |= {name: cell.text for name, cell in row.items() if isinstance(cell, Converted)}

    def differences_from(self, tables: dict[TableName, HeldTable], kept: dict[TableName, HeldTable]) -> Iterator[str]:
        for name, state in self.before.tables.items():
            table = tables.get(name)
            if state.dropped and name in kept:
                yield from (f"{name}, kept: {text}" for text in self._differences_of(state.stable_id, kept[name]))
                continue
            if table is None:
                is_uncertain = name in kept and kept[name].uncertain
                if state.stop is None or not (is_uncertain or self.may_be_left(name, state)):
                    yield f"{name}: is not there ({state.stop})"
            elif state.stop is not None:
                yield from () if table.uncertain else (f"{name}: is blocked: {state.stop}",)
            else:
                yield from (f"{name}: {text}" for text in self._differences_of(state.stable_id, table))
        for name, table in (tables | kept).items():
            if name not in self.before.tables and (table.rows or not table.uncertain):
                yield f"{name}: is missing"

    def may_be_left(self, name: TableName, state: TableState) -> bool:
        """True if gold may have a blocked table of a name that no table of TiDB has: it has no rows, or renames of
        unknown order may have given its name."""
        return not state.stable_id or name.table.lower() == "tmp"

    def _differences_of(self, data: str, table: HeldTable) -> Iterator[str]:
        if table.unknown:
            yield "its rows cannot be known"
        columns = [(column.name, column.type.name) for column in self.definitions[data].table.columns]
        expected = [(column.name, column.type.lower().partition("(")[0]) for column in table.columns]
        if columns != expected:
            yield f"columns {columns} instead of {expected}"
        held, rows = map(_texts, (self.held[data], table.rows.values()))
        if held != rows:
            yield f"rows {held} instead of {rows}"
        if data in self.untraced:
            yield "its rows are not traced"


def _texts(rows: Iterable[Row]) -> list[str]:
    """An EXCHANGE leaves names of columns in rows in the other table's case."""
    return sorted(str(sorted((fold(name), value) for name, value in row.items())) for row in rows)


def config_of(script: DatabaseScript) -> GoldConfig:
    return GoldConfig(
        feed="f", time_zone="UTC", matches=lambda _, table: fold(table) != script.hidden,
        policy=lambda _, table: Policy(on_drop=OnDrop.KEEP if fold(table) == fold(script.kept) else OnDrop.DROP),
    )  # fmt: skip


def assert_windows(seed: int, *, idle: bool) -> None:
    random = Random(seed)
    lowers, topics = random.random() < 0.5, 1 if idle else random.choice((1, 3))
    hidden, kept = random.choice(("", "ς")), random.choice(("", "B"))
    script = DatabaseScript(random, idle=idle, lowers=lowers, topics=topics, hidden=hidden, kept=kept)
    script.repeats = random.random() < 0.3  # DDLs in two texts
    script.play(random.choice((15, 40)))
    planner = DatabasePlanner(script, config_of(script))
    for end, ddls, whole in windows(script):
        planner.play(end, ddls)
        differences = [*planner.differences_from(script.at(end), script.kept_at(end))] if whole else []
        assert not differences, (seed, end, differences)


@pytest.mark.parametrize("idle", [False, True])
def test_tables_of_random_databases_are_those_of_tidb(idle: bool) -> None:
    for seed in range(100):
        assert_windows(seed, idle=idle)


@pytest.mark.long
@pytest.mark.parametrize("idle", [False, True])
def test_tables_of_many_random_databases_are_those_of_tidb(idle: bool) -> None:
    for seed in range(100, 5000):
        assert_windows(seed, idle=idle)
