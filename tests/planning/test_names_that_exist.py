"""CREATEs, RENAMEs and RECOVERs to a name that another table has: what stays blocked, and what an override does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import KNOWN, NAME, STATE, U, after_window, ddl, definition, planning_input

from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Origin, Recoverable
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.schema.names import TableName

OTHER = replace(definition(sql="CREATE TABLE d.u (id BIGINT PRIMARY KEY)"), lake_name="f_d_u", stable_id="u")
CREATE = ddl(15, "CREATE TABLE t (id BIGINT PRIMARY KEY)")
LIKE = ddl(15, "CREATE TABLE t LIKE u")
RENAME = ddl(15, "RENAME TABLE t TO u")
RECOVER = ddl(15, "RECOVER TABLE t")


def window(*ddls: DdlEvent) -> PlanningInput:
    """The window (10, 20] of the tables t and u; an older t was dropped at 5."""
    now = planning_input(known=KNOWN, state=STATE, ddls=ddls)
    tables = {NAME: STATE, U: replace(STATE, lake_name="f_d_u", stable_id="u")}
    older = Recoverable(name=NAME, stable_id="older", version=3, dropped_at=5)
    definitions = {**now.definitions, "u": OTHER, "older": replace(KNOWN, stable_id="older")}
    return replace(now, before=replace(now.before, tables=tables, recoverable=(older,)), definitions=definitions)


def planned(now: PlanningInput) -> dict[TableName, TablePlan]:
    return {each.name: each for each in plan_tables(now).tables}


def ids(now: PlanningInput) -> dict[str, tuple[str, bool]]:
    """Table to its stable id, and true if it is blocked because its name exists."""
    made = ((each, each.definition) for each in plan_tables(now).tables)
    return {each.name.table: (known.stable_id, "exists already" in str(each.stop)) for each, known in made if known}


@pytest.mark.parametrize("made_by", [CREATE, LIKE, RENAME, RECOVER], ids=["create", "like", "rename", "recover"])
def test_a_table_whose_name_a_ddl_gives_again_stays_blocked_without_an_override(made_by: DdlEvent) -> None:
    """The window after read the DDL again, and let it replace the table, without the rows up to its own end."""
    now = window(made_by)
    expected = {"t": (KNOWN.stable_id, True), "u": ("u", made_by is RENAME)}
    for tso in (30, 40, 50):
        assert ids(now) == expected
        now = after_window(now, tso)


def test_a_recover_that_is_blocked_leaves_the_dropped_table_recoverable() -> None:
    now = window(RECOVER)
    later = after_window(now, 30)
    later = replace(later, before=replace(later.before, recoverable=now.before.recoverable))
    later = replace(later, definitions=now.definitions)
    (kept,) = (each for each in plan_tables(later).recoverable if each.dropped_at == 5)
    assert kept.stop is None


def test_a_new_ddl_replaces_a_table_that_is_blocked() -> None:
    """TiDB must have dropped it."""
    now = after_window(window(CREATE), 30)
    again = ddl(25, CREATE.query)
    made = planned(replace(now, window=replace(now.window, ddls=(CREATE, again))))[NAME]
    assert made.stop is None
    assert made.definition is not None
    assert made.definition.origin is Origin.DDL
    assert made.definition.commit_ts == 25
