"""What people decided about tables that stand still, and why.

ops.decisions   one line a decision: feed, database, table, action (skip-ddl or resume), commit_ts, reason
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from pyspark.sql import functions as F

from ticdc_lakehouse.ddl.statement import TableName
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.lake.place import Lake, Layer, literal
from ticdc_lakehouse.lake.state import Published, TableState, publish, published

DECISIONS = "decisions"
_COLUMNS = """
    feed STRING NOT NULL,
    database STRING NOT NULL,
    table STRING NOT NULL,
    action STRING NOT NULL COMMENT 'skip-ddl or resume',
    commit_ts BIGINT NOT NULL COMMENT 'TSO at which the table stood still',
    reason STRING NOT NULL COMMENT 'given by who decided',
    decided_at TIMESTAMP NOT NULL
"""


class Action(StrEnum):
    """What was decided."""

    SKIP_DDL = "skip-ddl"
    """Pass over the DDL at which the table stands still, as if it had not been."""
    RESUME = "resume"
    """Try again from where it stands still: after a fix, a new version, a changed setting."""


def create_table(lake: Lake) -> None:
    """Create the table of decisions where it is missing."""
    lake.create(Layer.OPS, DECISIONS, _COLUMNS, comment="What people decided about tables that stand still")


def decide(lake: Lake, feed: str, name: TableName, action: Action, reason: str) -> TableState:
    """Record a decision, and let the next run of gold try the table again. Gives the state that the table was in.

    Raises ConfigError for a table that does not stand still, or not because of a DDL.
    """
    create_table(lake)
    before = published(lake, feed)
    state = _standing(before, feed, name)
    if action is Action.SKIP_DDL and not (state.reason or "").startswith("DDL at "):
        raise ConfigError(f"{feed}: table {'.'.join(name)} does not stand still because of a DDL: {state.reason}")
    values = ", ".join([*map(literal, (feed, *name, action.value)), str(state.applied_tso), literal(reason)])
    lake.spark.sql(f"INSERT INTO {lake.table(Layer.OPS, DECISIONS)} VALUES ({values}, current_timestamp())")
    resumed = replace(before, tables={**before.tables, name: replace(state, final=False)})
    publish(lake, feed, before, resumed, (), 0)
    return state


def _standing(before: Published, feed: str, name: TableName) -> TableState:
    state = before.tables.get(name)
    if state is None:
        known = ", ".join(sorted(map(".".join, before.tables))) or "none"
        raise ConfigError(f"{feed}: expected one of {known}, found {'.'.join(name)!r}")
    if state.reason is None:
        raise ConfigError(f"{feed}: table {'.'.join(name)} does not stand still")
    return state


def skipped(lake: Lake, feed: str, before: Published) -> frozenset[tuple[str, int]]:
    """The DDLs to pass over: Delta table of the rows, and commit_ts. Looked up only if a table stands still."""
    standing = {name: state for name, state in before.tables.items() if state.reason is not None}
    if not standing:
        return frozenset()
    create_table(lake)
    lines = lake.spark.table(lake.table(Layer.OPS, DECISIONS)).where(
        (F.col("feed") == feed) & (F.col("action") == Action.SKIP_DDL.value)
    )
    found = {((line["database"], line["table"]), line["commit_ts"]) for line in lines.collect()}
    return frozenset((standing[name].data, commit_ts) for name, commit_ts in found if name in standing)
