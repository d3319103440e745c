"""What arrives late or is replayed for a table that is blocked already, or together with what blocks it: the reason
promises of `table resume` only what it does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import DATA, KNOWN, NAME, ROWS, STATE, U, ddl, definition, late_point, plan, planning_input, with_names

from ticdc_lakehouse.planning.late_ddls import late_ddl_points
from ticdc_lakehouse.planning.naming import NameInUse
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
