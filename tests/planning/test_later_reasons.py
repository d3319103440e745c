"""What arrives late or is replayed for a table that is blocked already, or together with what blocks it: the reason
promises of `table resume` only what it does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DATA,
    KNOWN,
    NAME,
    ROWS,
    STATE,
    U,
    after_window,
    ddl,
    definition,
    late_point,
    plan,
    planning_input,
    steps,
    with_names,
)

from ticdc_lakehouse.planning.late_ddls import late_ddl_points
from ticdc_lakehouse.planning.naming import NameInUse
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.published_state import Definition
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut
from ticdc_lakehouse.planning.window import BlockingPoint, RowGroup
from ticdc_lakehouse.planning.window_plan import TablePlan

WITHOUT = (WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT)
LOST = StopReason(kind=StopKind.LATE_ROWS, detail="rows are lost", ways_out=WITHOUT, needs_override=True)
RENAMED = replace(definition(7, "CREATE TABLE d.u (id BIGINT PRIMARY KEY, v VARCHAR(9))"), named_at=7)


def late(tso: int) -> BlockingPoint:
    point = late_point(tso)
    return replace(point, stop=replace(point.stop, ways_out=(WayOut.RESUME,)), last=tso + 1)


def replayed(first: int) -> RowGroup:
    return replace(ROWS, first=first, last=first, replayed=True)


def blocked(
    stop: StopReason | None, *rows: RowGroup, late_at: int | None = None, known: Definition = KNOWN
) -> TablePlan:
    """The plan of a table that was blocked at the watermark (10), in the window after."""
    now = planning_input(*rows, known=known, state=replace(STATE, stop=stop))
    return plan(replace(now, late_points={} if late_at is None else {NAME: late(late_at)}))


def outcome(made: TablePlan) -> tuple[int, str, tuple[WayOut, ...]]:
    assert made.stop is not None
    assert made.stop.needs_override
    return made.through, made.stop.detail, made.stop.ways_out


@pytest.mark.parametrize("ways_out", [WITHOUT, (WayOut.LOAD_EXPORT,)])
def test_a_later_reason_does_not_promise_what_an_earlier_one_denied(ways_out: tuple[WayOut, ...]) -> None:
    """Resume goes back to the later rows, not to those of the earlier reason."""
    earlier = replace(LOST, ways_out=ways_out)
    assert outcome(blocked(earlier, late_at=5)) == (5, "came late; before: rows are lost", WITHOUT)
    again = "while it was blocked (rows are lost), rows were replayed"
    assert outcome(blocked(earlier, replayed(5))) == (4, again, WITHOUT)


def test_a_later_reason_promises_what_the_earlier_one_promised() -> None:
    assert outcome(blocked(replace(LOST, ways_out=(WayOut.RESUME,)), late_at=5)) == (5, "came late", (WayOut.RESUME,))


def test_a_table_does_not_go_back_to_before_a_late_rename_that_is_not_followed() -> None:
    """Resumed, it would be renamed now: the reason said that it continues without."""
    point = late_ddl_points(planning_input(known=KNOWN, state=STATE).before, [ddl(8, "RENAME TABLE t TO w")])[NAME]
    through, detail, ways_out = outcome(blocked(point.stop, late_at=5))
    assert (through, ways_out) == (10, WITHOUT)
    assert detail.startswith("came late; before: the DDL at 8")
    assert outcome(blocked(point.stop, late_at=9))[0] == 9


def test_a_late_rename_that_is_not_followed_is_not_forgotten_when_later_rows_come_late() -> None:
    """The later reasons are of rows, and quote the one before."""
    rename = ddl(8, "RENAME TABLE t TO w")
    now = with_names(planning_input(known=KNOWN, state=STATE))
    now = replace(now, late_ddl_points=late_ddl_points(now.before, [rename]))
    for tso, late_at in ((30, 5), (40, 4)):
        now = replace(after_window(now, tso), late_ddl_points={}, late_points={NAME: late(late_at)})
        made = plan(now)
        assert (made.through, made.stop and (made.stop.kind, made.stop.ways_out)) == (10, (StopKind.LATE_ROWS, WITHOUT))
    now = resumed(after_window(now, 50))
    made = plan(replace(now, late_points={}, window=replace(now.window, ddls=(rename,))))
    assert (made.name, made.stop) == (NAME, None)


def test_a_table_goes_back_to_its_last_ddl_without_following_that_again() -> None:
    """A row can come a commit_ts after the CREATE TABLE of its table."""
    create = ddl(8, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))")
    now = planning_input(known=replace(definition(8), named_at=8), state=STATE)
    now = with_names(replace(now, late_points={NAME: late(8)}))
    assert outcome(plan(now)) == (8, "came late", (WayOut.RESUME,))
    now = replace(resumed(after_window(now, 30)), late_points={})
    missed = replace(ROWS, first=9, last=9)
    made = plan(replace(now, window=replace(now.window, ddls=(create,), rows={NAME: (missed,)})))
    assert (made.stop, steps(made)) == (None, [("M", 30)])


def resumed(now: PlanningInput) -> PlanningInput:
    """The same window, with an override of what blocks the table."""
    state = now.before.tables[NAME]
    assert state.stop is not None
    state = replace(state, stop=replace(state.stop, needs_override=False))
    return replace(now, before=replace(now.before, tables={NAME: state}))


def test_a_reason_does_not_grow_with_each_window_that_has_late_rows() -> None:
    """The changefeed was started again behind a gap, and the table cannot go back to before its last DDL."""
    now, details = with_names(planning_input(known=definition(9), state=STATE)), list[str]()
    for number in range(8):
        point = late(5)
        now = replace(now, late_points={NAME: replace(point, stop=replace(point.stop, detail=f"came late: {number}"))})
        details.append(outcome(plan(now))[1])
        now = after_window(now, now.tso + 10)
    assert (
        details[2] == "came late: 2; a DDL changed the table at 9; before: came late: 0; a DDL changed the table at 9"
    )
    assert {len(each) for each in details[2:]} == {len(details[1])}


def test_a_reason_does_not_grow_with_each_replay() -> None:
    now, details = with_names(planning_input(known=KNOWN, state=replace(STATE, stop=LOST))), list[str]()
    for first in range(9, 2, -1):
        now = replace(now, window=replace(now.window, rows={NAME: (replayed(first),)}))
        details.append(outcome(plan(now))[1])
        now = after_window(now, now.tso + 10)
    assert set(details) == {"while it was blocked (rows are lost), rows were replayed"}


def test_rows_that_are_replayed_together_with_late_ones_are_merged_by_resume() -> None:
    """They were lost: a blocked table merges none, and later windows do not read them again."""
    assert outcome(blocked(None, replayed(4), late_at=5)) == (3, "came late; rows were replayed", (WayOut.RESUME,))
    assert outcome(blocked(None, replayed(8), late_at=5)) == (5, "came late; rows were replayed", (WayOut.RESUME,))
    made = blocked(None, replayed(8), late_at=5, known=definition(7))
    assert outcome(made) == (7, "came late; rows were replayed; a DDL changed the table at 7", WITHOUT)


def test_rows_that_are_replayed_together_with_a_late_ddl_are_merged_by_resume() -> None:
    now = planning_input(replayed(4), known=KNOWN, state=STATE)
    before = replace(now.before, definitions=now.definitions)
    points = late_ddl_points(before, [ddl(8, "ALTER TABLE t ADD COLUMN w INT")])
    through, detail, ways_out = outcome(plan(replace(now, late_ddl_points=points)))
    assert (through, ways_out) == (3, (WayOut.RESUME,))
    assert detail.startswith("the DDL at 8")
    assert detail.endswith("; rows were replayed")


def former(stop: StopReason | None, *rows: RowGroup) -> TablePlan:
    """The plan of a table that is called u since 7, and of which a late row at 5 has its former name."""
    now = planning_input(known=RENAMED)
    names = (NameInUse(feed="f", table=n, lake_name="", stable_id=DATA, named_at=at) for n, at in ((NAME, 0), (U, 7)))
    state = replace(STATE, lake_name="f_d_u", stop=stop)
    window = replace(now.window, rows={U: tuple(replace(row, name=U) for row in rows)})
    now = replace(now, before=replace(now.before, tables={U: state}), window=window, late_points={NAME: late(4)})
    return plan(with_names(now, *names), U)


def test_rows_under_a_former_name_are_lost_whatever_the_earlier_reason_promised() -> None:
    made = former(replace(LOST, ways_out=(WayOut.RESUME,)))
    detail = "rows arrived late under the name that it had before, d.t"
    assert outcome(made) == (10, f"{detail} while it was blocked (rows are lost)", WITHOUT)
    assert former(LOST).stop == LOST
    assert outcome(former(None, replayed(9))) == (10, f"{detail}; rows of its own were replayed", WITHOUT)
