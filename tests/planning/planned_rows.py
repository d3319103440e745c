"""What gold's tables hold after each window of a recorded stream, without Spark: plans are done to rows in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planned import Planner

from ticdc_codec.event import Op, RowChange
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.table_plan import AlterRows, MergeRows, Step
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import ColumnDefinition
from ticdc_lakehouse.schema.effect import Added, ConvertedColumn, Dropped, Effect, Renamed, RowsGone
from ticdc_lakehouse.schema.names import TableName
from ticdc_testkit.comparison import Cell, Difference, differences
from ticdc_testkit.respelled_streams import commit_order

CONVERTED = "\0converted"
"""A value that a MODIFY COLUMN converted: SQL does that, and its own tests compare it."""

Row = dict[str, Cell]
Rows = dict[str, Row]
"""By handle key."""


@dataclass
class RowPlanner(Planner):
    """A planner whose plans are done to rows."""

    held: dict[str, Rows] = field(default_factory=lambda: defaultdict(dict))
    """By stable id of the table."""
    planned: list[TablePlan] = field(default_factory=list)
    named: dict[TableName, list[RowChange]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.rows:
            self.named[TableName(row.database, row.table)].append(row)

    def _plan(self, tso: int) -> tuple[TablePlan, ...]:
        self.planned.clear()
        plans = super()._plan(tso)
        for plan in self.planned:
            for step in plan.steps if plan.definition is not None else ():
                self._do(step, self.held[plan.definition.data])
        return plans

    def _publish(self, plan: TablePlan) -> TableState:
        self.planned.append(plan)
        return super()._publish(plan)

    def _do(self, step: Step, rows: Rows) -> None:
        match step:
            case MergeRows():
                merge(step, self.named[step.table.name], rows)
            case AlterRows(effects=effects):
                for effect in effects:
                    change(effect, rows)
            case _:
                raise NotImplementedError(step)

    def differences(self, tables: Mapping[str, Any]) -> Iterator[Difference]:
        """Each cell in which the published tables differ from the answer's."""
        for name, table in tables.items():
            database, _, plain = name.partition(".")
            state = self.before.tables[TableName(database, plain)]
            columns = [column["name"] for column in table["columns"]]
            rows = [[row[column] for column in columns] for row in self.held[state.data].values()]
            compared = [at for at, _ in enumerate(columns) if all(row[at] != CONVERTED for row in rows)]
            if len(compared) == len(columns) or any(table["columns"][at]["key"] == "PRI" for at in compared):
                picked = [pick(some, compared) for some in (table["columns"], *table["rows"], *rows)]
                end = len(table["rows"]) + 1
                yield from differences(name, picked[0], picked[1:end], [tuple(row) for row in picked[end:]])


def pick(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [values[place] for place in places]


def merge(step: MergeRows, changes: Sequence[RowChange], rows: Rows) -> None:
    """The newest change of each key: at one commit_ts a delete is before an upsert."""
    assert step.wire_keys
    within = (row for row in changes if step.after < commit_order(row) <= step.through)
    for row in sorted(within, key=lambda row: (commit_order(row), row.op is not Op.DELETE)):
        for key in filter(None, (row.old_handle_key, row.handle_key if row.op is Op.DELETE else None)):
            rows.pop(key, None)
        if row.after is not None:
            assert row.after.keys() == {column.name for column in step.table.sent}
            rows[str(row.handle_key)] = {c.name: named_value(c, row.after[c.name]) for c in step.table.sent}


def named_value(column: ColumnDefinition, text: Cell) -> Cell:
    """ENUM and SET by name."""
    members = column.type.elements
    if text is None or not members or column.by == "name":
        return text
    if column.type.family is Family.ENUM:
        return ("", *members)[int(text)]
    return ",".join(member for at, member in enumerate(members) if int(text) >> at & 1)


def change(effect: Effect, rows: Rows) -> None:
    match effect:
        case RowsGone(column=column):
            for key in [key for key, row in rows.items() if is_gone(effect, row[column.name])]:
                del rows[key]
        case _:
            for row in rows.values():
                change_row(effect, row)


def change_row(effect: Effect, row: Row) -> None:
    match effect:
        case Added(column=column, value=value):
            row[column.name] = value
        case Dropped(column=column):
            del row[column.name]
        case Renamed(old=old, new=new):
            row[new] = row.pop(old)
        case ConvertedColumn(after=after):
            row[after.name] = None if row[after.name] is None else CONVERTED
        case _:
            raise NotImplementedError(effect)


def is_gone(part: RowsGone, text: Cell) -> bool:
    """RANGE of integers."""
    assert part.function is None
    assert part.values is None
    assert part.remainder is None
    low, high = (None if bound is None else int(bound) for bound in (part.low, part.high))
    if text is None:
        return low is None
    return (low is None or low <= int(text)) and (high is None or int(text) < high)
