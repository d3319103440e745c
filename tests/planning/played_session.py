"""Recorded sessions of a real TiDB, planned without Spark: what differs from TiDB after a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planned_rows import Conversion, RowPlanner

from ticdc_codec.mysql_type import same_type
from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import Partitioning, Table
from ticdc_lakehouse.schema.names import spark_names
from ticdc_testkit.recorded_session import HeldTable, Step, session_steps, session_stream

PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "canal_json": {"enable-tidb-extension": True},
    "craft": {"craft-float": "trust"},
    "debezium": {"enable-tidb-extension": True},
    "open_protocol": {},
    "simple": {},
}
_EXPLAINED = re.compile(
    "(its|the) value (in old rows is not known|of column .* in old rows)|which rows .* had is unknown"
    "|the rows of the restored table are unknown|one table is unknown to this feed or blocked"
    "|the other table is blocked|is reserved for gold|VECTOR NOT NULL, no DEFAULT"
    "|when it was renamed out of a database that the text does not name|its bound is not understood: values of"
    "|the protocol writes .* keys with different digits|the table had no key that could be its handle key"
)
"""Reasons of docs/ddl.md (What blocks a table) that a message does not tell."""
_MIDNIGHT = re.compile(r" 00:00:00(\.0+)?$")
_WITHOUT_COLUMNS = (StopKind.AWAITS_ROWS, StopKind.AMBIGUOUS_TABLE)
_ONE_IN_SPARK = "two names in TiDB and one in Spark"


def differences(file: Path, protocol: str, folder: Path, conversions: set[Conversion] | None = None) -> Iterator[str]:
    """What a session's tables are in gold and not in TiDB, after each statement, and blocks that nothing explains.

    Adds the values that TiDB converted to ``conversions``: SQL converts them in gold."""
    steps = {step.watermark: step for step in session_steps(file)}
    planner = RowPlanner(session_stream(file, protocol, PROTOCOLS[protocol], folder))
    loosened, before = False, None
    for tso, plans in planner.windows():
        step = steps.pop(tso)
        planner.time_zone = step.time_zone
        loosened = loosened or (before is not None and step.refused and _loses_not_null(before, step))
        before = step
        for difference in (*_after(step, plans, loosened=loosened), *_of_rows(step, planner)):
            yield f"{step.number}: {step.statement}: {difference}"
    yield from (f"{step.number}: no window" for step in steps.values())
    if conversions is not None:
        conversions |= planner.conversions


def _loses_not_null(before: Step, step: Step) -> bool:
    """True if a column may be NULL now: so TiDB leaves it after a MODIFY that it refused (docs/ddl.md)."""
    pairs = [(before.tables[name], held) for name, held in step.tables.items() if name in before.tables]
    return any(
        new.nullable and not old.nullable
        for one, other in pairs
        for old, new in zip(one.definition.columns, other.definition.columns, strict=False)
    )


def _as_loosened(found: Table, held: Table) -> Table:
    """The definition with the columns that may be NULL in TiDB, which no message tells."""
    nullable = {fold(column.name) for column in held.columns if column.nullable}
    columns = tuple(replace(c, nullable=c.nullable or fold(c.name) in nullable) for c in found.columns)
    return replace(found, columns=columns, key=held.key if nullable & set(map(fold, found.key)) else found.key)


def _after(step: Step, plans: tuple[TablePlan, ...], *, loosened: bool) -> Iterator[str]:
    names = {str(plan.name) for plan in plans} ^ set(map(str, step.tables))
    if names:
        yield f"tables of one side alone: {sorted(names)}"
    views = [plan.lake_name for plan in plans if plan.lake_name]
    if len(views) != len(set(views)):
        yield "two tables have one view: a blocked table follows its names, another one may have its first name"
    for plan in plans:
        held = step.tables.get(plan.name)
        if held is None or (plan.stop is None and plan.definition is None):
            continue
        table = plan.definition.table if plan.definition is not None else held.definition
        shown = _as_loosened(table, held.definition) if loosened else table
        if plan.stop is None:
            yield from (f"{plan.name}: {text}" for text in _unequal(shown, held.definition))
        elif not _is_explained(plan, held) and shown == table:
            yield f"{plan.name} is blocked: {plan.stop}"


def _of_rows(step: Step, planner: RowPlanner) -> Iterator[str]:
    for name in planner.before.tables.keys() & step.tables.keys():
        yield from planner.differences_of(name, step.tables[name].answer)


def _unequal(found: Table, held: Table) -> Iterator[str]:
    if str(found.name) != str(held.name):
        yield f"its name is {held.name}"
    if found.keys is None:  # its rows alone told what it is
        if {c.name for c in found.sent} != {c.name for c in held.sent}:
            yield f"columns {found.sent} instead of {held.sent}"
        return
    columns = [[(c.name, c.nullable, c.virtual) for c in table.columns] for table in (found, held)]
    if columns[0] != columns[1]:
        yield f"columns {columns[0]} instead of {columns[1]}"
        return
    for one, other in zip(found.columns, held.columns, strict=True):
        if not same_type(one.type, other.type):
            yield f"{one.name} {one.type.text} instead of {other.type.text}"
    if found.key != held.key:
        yield f"key {found.key} instead of {held.key}"
    if _folded(found.partitioning) != _folded(held.partitioning):
        yield f"{found.partitioning} instead of {held.partitioning}"


def _value(bound: str) -> str:
    terms = bound.split("+")
    is_sum = len(terms) > 1 and all(term.strip().isdigit() for term in terms)
    return str(sum(map(int, terms))) if is_sum else _MIDNIGHT.sub("", bound)


def _folded(partitioning: Partitioning | None) -> Partitioning | None:
    """TiDB writes the column as it was spelled in PARTITION BY, bounds of a DATETIME with their time, and the value of
    a bound that is a sum (which gold keeps as it is, and blocks where it matters)."""
    if partitioning is None:
        return None
    partitions = tuple(
        replace(p, bounds=tuple(bound and _value(bound) for bound in p.bounds)) for p in partitioning.partitions
    )
    return replace(partitioning, column=partitioning.column and fold(partitioning.column), partitions=partitions)


def _is_explained(plan: TablePlan, held: HeldTable) -> bool:
    """Blocked because it has no handle key, because of a DDL whose effect is not on the wire, because Spark cannot tell
    its columns apart, or made LIKE such a table."""
    assert plan.stop is not None
    if _ONE_IN_SPARK in plan.stop.detail:
        names = [spark_names(column.name) for column in held.definition.columns]
        return any(len(set(same)) < len(names) for same in zip(*names, strict=True))
    if plan.stop.kind is StopKind.UNSUPPORTED_DDL:
        return _EXPLAINED.search(plan.stop.detail) is not None
    return plan.stop.kind in _WITHOUT_COLUMNS or not held.definition.key
