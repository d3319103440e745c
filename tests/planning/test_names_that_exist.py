"""CREATEs, RENAMEs and RECOVERs to a name that another table has: what stays blocked, and what an override does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import KNOWN, NAME, STATE, UNFOLLOWED, U, after_window, ddl, definition, planning_input

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
    expected = {"t": (KNOWN.stable_id, True), "u": ("u", made_by is RENAME)}
    for end in (15, 20) if made_by is not RENAME else (20,):  # a RENAME at a window's end waits for the next
        now = replace(window(made_by), tso=end)
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


def override(now: PlanningInput, name: TableName, *, skip: bool) -> PlanningInput:
    """The window, after an override of one table: the DDL that blocks it is skipped, or done again."""
    state = now.before.tables[name]
    assert state.stop is not None
    assert state.stop.commit_ts is not None
    skipped = now.skipped | ({(state.stable_id, state.stop.commit_ts)} if skip else set())
    tables = {**now.before.tables, name: replace(state, stop=replace(state.stop, needs_override=False))}
    return replace(now, before=replace(now.before, tables=tables), skipped=skipped)


def test_tables_of_a_rename_skip_it_one_after_the_other() -> None:
    for first, second in ((NAME, U), (U, NAME)):
        now = after_window(override(after_window(window(RENAME), 30), first, skip=True), 40)
        assert ids(now) == {"t": (KNOWN.stable_id, first != NAME), "u": ("u", first != U)}
        assert ids(override(now, second, skip=True)) == {"t": (KNOWN.stable_id, False), "u": ("u", False)}


@pytest.mark.parametrize("ddls", [(RENAME,), (ddl(12, UNFOLLOWED), RENAME)], ids=["at once", "blocked before it"])
def test_a_table_stays_blocked_at_a_rename_to_the_name_of_one_that_has_continued(ddls: tuple[DdlEvent, ...]) -> None:
    """Such a window ended with an error, as all later ones: it left two tables of one name."""
    now = after_window(override(after_window(window(*ddls), 30), U, skip=True), 40)
    for skip in (False, len(ddls) > 1):
        resumed = override(now, NAME, skip=skip)
        assert ids(resumed)["u"] == ("u", False)
    assert ids(resumed)["t"] == (KNOWN.stable_id, True)
    assert ids(override(after_window(resumed, 50), NAME, skip=True))["t"] == (KNOWN.stable_id, False)


def test_a_table_of_a_rename_is_resumed_once_the_other_is_loaded() -> None:
    now = after_window(window(RENAME), 30)
    loaded = replace(OTHER, commit_ts=18, named_at=18, origin=Origin.EXPORT, stable_id="loaded")
    tables = {**now.before.tables, U: replace(STATE, lake_name="f_d_u", stable_id="loaded", applied_tso=18)}
    now = replace(now, before=replace(now.before, tables=tables), definitions={**now.definitions, "loaded": loaded})
    expected = {"t": (KNOWN.stable_id, True), "u": ("loaded", False)}
    assert ids(now) == ids(override(now, NAME, skip=False)) == expected
    assert ids(override(after_window(now, 40), NAME, skip=True)) == {**expected, "t": (KNOWN.stable_id, False)}
