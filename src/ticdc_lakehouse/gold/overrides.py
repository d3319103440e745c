"""What people decided about tables that stand still, and why.

ops.decisions   one line a decision: feed, database, table, action (skip-ddl or resume), commit_ts, reason
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold.state import publish, published
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.sql.text import literal

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


def decide(lake: Lake, feed: str, table: str, action: Action, reason: str) -> TableState:
    """Record a decision about ``database.table``, and let the next run of gold try it again. Gives how it stood.

    Raises ConfigError for a table that does not stand still, or not because of a DDL, and if it is not said why.
    """
    if not reason.strip():
        raise ConfigError("reason: expected a text that says why, found none")
    create_table(lake)
    before = published(lake, feed)
    name, state, stop = _blocked(before, feed, table)
    if action is Action.SKIP_DDL and stop.kind is not StopKind.UNSUPPORTED_DDL:
        raise ConfigError(f"{feed}: table {name} is not blocked by a DDL: {stop}")
    values = ", ".join([*map(literal, (feed, *name, action.value)), str(state.applied_tso), literal(reason)])
    lake.spark.sql(f"INSERT INTO {lake.table(Layer.OPS, DECISIONS)} VALUES ({values}, current_timestamp())")
    resumed = replace(before, tables={**before.tables, name: replace(state, stop=replace(stop, needs_override=False))})
    publish(lake, feed, before, resumed, (), 0)
    return state


def _blocked(before: Published, feed: str, table: str) -> tuple[TableName, TableState, StopReason]:
    """A table by what joins its name with a dot: either part may have dots of its own."""
    name = {fold(str(name)): name for name in before.tables}.get(fold(table))
    if name is None:
        raise ConfigError(
            f"{feed}: expected one of {', '.join(map(str, sorted(before.tables))) or 'none'}, found {table!r}"
        )
    state = before.tables[name]
    if state.stop is None:
        raise ConfigError(f"{feed}: table {table} is not blocked")
    return name, state, state.stop


def skipped(lake: Lake, feed: str, before: Published) -> frozenset[tuple[str, int]]:
    """The DDLs to pass over: Delta table of the rows, and commit_ts. Looked up only if a table stands still."""
    standing = {name: state for name, state in before.tables.items() if state.stop is not None}
    if not standing:
        return frozenset()
    create_table(lake)
    lines = lake.spark.table(lake.table(Layer.OPS, DECISIONS)).where(
        (F.col("feed") == feed) & (F.col("action") == Action.SKIP_DDL.value)
    )
    found = {(TableName(line["database"], line["table"]), line["commit_ts"]) for line in lines.collect()}
    return frozenset((standing[name].data, commit_ts) for name, commit_ts in found if name in standing)
