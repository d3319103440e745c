"""Random rotations of names in one statement, which TiCDC sends as one RENAME a table, each to the topic of its old
name. They come in windows that end at their commit_ts: whichever are in, each table has its own rows in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from one_table import KNOWN, STATE, after_window, ddl, planning_input, table

from ticdc_lakehouse.planning.naming import Naming, TakenNames
from ticdc_lakehouse.planning.plan_builder import AppliedDdls, TablePlanBuilder
from ticdc_lakehouse.planning.planning_input import PlanningInput
from ticdc_lakehouse.planning.rename_order import in_execution_order
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import DdlEvent
from ticdc_lakehouse.planning.window_plan import plan_tables
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.statement import Unread, names_of

NAMES = "abcd"
NO_NAMES = replace(planning_input(), naming=Naming(feed="f", taken=TakenNames()))
"""Gold has published no table."""


def rotation(random: Random) -> tuple[list[DdlEvent], dict[str, str]]:
    """The renames as TiDB does them, and whose rows each name has afterwards."""
    ring = random.sample(NAMES, random.randint(2, len(NAMES)))
    pairs = [(ring[0], "tmp"), *zip(ring[1:], ring, strict=False), ("tmp", ring[-1]), (random.choice(NAMES), "e")]
    topics, held = {name: str(random.randrange(3)) for name in (*NAMES, "tmp")}, {name: name for name in NAMES}
    for old, new in pairs:
        held[new] = held.pop(old)
    return [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=topics[old]) for old, new in pairs], held


def chain(random: Random) -> tuple[list[DdlEvent], dict[str, str]]:
    """Renames from and to any name, as no swap needs them: through several topics they may have several orders."""
    held, pairs = {name: name for name in NAMES}, dict[tuple[str, str], None]()
    for _ in range(random.randint(2, 6)):
        pair = random.choice(sorted(held)), random.choice(sorted({*NAMES, "x", "y"} - {*held}))
        if pair in pairs:
            break
        pairs[pair] = None
        held[pair[1]] = held.pop(pair[0])
    return [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in pairs], held


def before() -> PlanningInput:
    now = planning_input()
    tables = {TableName("d", name): replace(STATE, lake_name=f"f_d_{name}", stable_id=name) for name in NAMES}
    definitions = {
        name: replace(
            KNOWN, table=table(f"CREATE TABLE d.{name} (id INT KEY)"), lake_name=f"f_d_{name}", stable_id=name
        )
        for name in NAMES
    }
    return replace(now, definitions=definitions, before=replace(now.before, tables=tables))


def with_ddls(now: PlanningInput, ddls: Sequence[DdlEvent]) -> PlanningInput:
    """As `gold.window_reader` has them: by topic, then in order of arrival."""
    return replace(now, window=replace(now.window, ddls=tuple(sorted(ddls, key=lambda ddl: ddl.topic))))


@pytest.mark.parametrize("windows", [1, 2, 3])
def test_each_table_keeps_its_rows(windows: int) -> None:
    for seed in range(300):
        random = Random(seed)
        ddls, held = rotation(random)
        now = before()
        for arrived in (*sorted(random.choices(range(len(ddls)), k=windows - 1)), len(ddls)):
            now = with_ddls(now, ddls[:arrived])
            made = plan_tables(now).tables
            now = after_window(now, 20)
        assert [each.name.table for each in made if each.stop is not None] == [], seed
        assert {each.name.table: each.definition.stable_id for each in made if each.definition} == held, seed


def test_a_table_that_could_have_another_ones_rows_is_blocked_and_stays_so() -> None:
    blocked = 0
    for seed in range(500):
        ddls, held = chain(Random(seed))
        now = with_ddls(before(), ddls)
        for tso in (20, 30):
            now = replace(now, tso=tso)
            made = plan_tables(now).tables
            stopped = {each.name.table for each in made if each.stop is not None}
            assert {n: d for n, d in held.items() if n not in stopped}.items() <= {
                each.name.table: each.definition.stable_id for each in made if each.definition is not None
            }.items(), seed
            now = after_window(now, tso)
        # A table that gold does not have may have had a name that one of them gives and another takes.
        blocked += bool(stopped) and all(each.topic in NAMES for each in ddls)
        renamed = {name for each in ddls for statement in each.statements for name in names_of(statement)}
        assert stopped in (set(), {name.table for name in renamed}), seed
    assert 0 < blocked < 100


def planned(*pairs: str, arrived: Sequence[int]) -> dict[str, str]:
    """The rows of each table that is not blocked, after renames ``old new``, each from a topic of its old name."""
    ddls = [ddl(20, f"RENAME TABLE d.{old} TO d.{new}") for old, new in map(str.split, pairs)]
    ddls = [replace(each, topic=pair.split()[0]) for each, pair in zip(ddls, pairs, strict=True)]
    now = before()
    made = plan_tables(replace(now, window=replace(now.window, ddls=tuple(ddls[at] for at in arrived)))).tables
    return {each.name.table: each.definition.stable_id for each in made if each.definition and each.stop is None}


def test_renames_that_have_no_name_in_common_are_ordered_apart() -> None:
    names = [f"t{number}" for number in range(12)]
    swaps = [(a, b, f"tmp_{a}") for a, b in zip(names[::2], names[1::2], strict=True)]
    pairs = [pair for a, b, tmp in swaps for pair in (f"{a} {tmp}", f"{b} {a}", f"{tmp} {b}")]
    ddls = [ddl(20, f"RENAME TABLE d.{old} TO d.{new}") for old, new in map(str.split, pairs)]
    shuffled = [replace(each, topic=str(at)) for at, each in enumerate(ddls)]
    ordered = in_execution_order([*reversed(shuffled)], [builder(name) for name in names], NO_NAMES)
    assert {each.query for each in ordered} == {each.query for each in ddls}
    assert not [s for each in ordered for s in each.statements if isinstance(s, Unread)]


@pytest.mark.parametrize(("count", "is_known"), [(3, True), (13, False)])
def test_renames_with_thousands_of_orders_are_of_unknown_order(count: int, is_known: bool) -> None:
    """The last one is possible only after all others, which may be done in any order."""
    firsts = [ddl(20, f"RENAME TABLE d.a{number} TO d.b{number}") for number in range(count)]
    last = ddl(20, "RENAME TABLE " + ", ".join(f"d.b{number} TO d.a{number}" for number in range(count)))
    ddls = [replace(each, topic=str(at)) for at, each in enumerate([last, *firsts])]
    ordered = in_execution_order(ddls, [builder(f"a{number}") for number in range(count)], NO_NAMES)
    assert (ordered[-1] == ddls[0]) == is_known
    assert any(isinstance(s, Unread) for each in ordered for s in each.statements) != is_known


def test_a_table_that_gold_lacks_has_its_name_before_its_rename() -> None:
    assert planned("a e", "z a", arrived=(1, 0))["e"] == "a"


def test_a_table_does_not_get_the_name_that_one_gold_lacks_leaves() -> None:
    """As a tool replaces a table from before the changefeed by its copy: the copy would get the old table's new name,
    if no table had its own."""
    for arrived in ((0, 1), (1, 0)):
        assert planned("t old", "a t", arrived=arrived) == {"b": "b", "c": "c", "d": "d"}


def test_a_swap_with_a_table_that_gold_lacks_does_not_leave_the_other_where_it_is() -> None:
    assert planned("a tmp", "t a", "tmp t", arrived=(0, 1, 2)) == {"b": "b", "c": "c", "d": "d"}


def test_renames_of_which_some_are_done_leave_no_doubt_about_their_names() -> None:
    now = before()
    ddls = [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in ("ax", "ba", "xb", "ae")]
    for arrived in (1, 4):
        now = with_ddls(now, ddls[:arrived])
        made = plan_tables(now).tables
        now = after_window(now, 20)
    assert {each.name.table: each.definition.stable_id for each in made if each.definition and not each.stop} == {
        "b": "a", "c": "c", "d": "d", "e": "b",
    }  # fmt: skip


def test_a_name_that_a_ddl_without_effect_in_gold_gave_may_be_in_the_way() -> None:
    """A table that was renamed out of what the filter leaves out has no columns in gold, and TiDB has it."""
    moved = builder("a")
    moved.block(StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=10, needs_override=True))
    ddls = [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in ("za", "ab")]
    ordered = in_execution_order(ddls, [moved], NO_NAMES)
    assert all(isinstance(s, Unread) for each in ordered for s in each.statements)


def test_a_table_that_waits_before_renames_of_unknown_order_has_done_none() -> None:
    queries = [f"RENAME TABLE d.{old} TO d.{new}" for old, new in (("a", "x"), ("x", "a"), ("a", "y"), ("b", "a"))]
    ddls = [replace(ddl(20, query), topic=query.split()[2]) for query in queries]
    waits = builder("y", queries[2])
    waits.block(StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=20, needs_override=True))
    for builders in ([builder("a"), builder("b")], [builder("a"), builder("b"), waits]):
        ordered = in_execution_order([ddls[3], ddls[0], ddls[2], ddls[1]], builders, NO_NAMES)
        assert all(isinstance(s, Unread) for each in ordered for s in each.statements)


def without(hidden: str) -> PlanningInput:
    now = before()
    return replace(now, config=replace(now.config, matches=lambda _, table: table != hidden))


def test_a_table_from_outside_the_filter_is_blocked_where_renames_may_have_taken_it_back() -> None:
    """If TiDB has a table `s`, it has that of `h` afterwards; in the order of arrival it would have none."""
    ddls = [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in ("hs", "sx", "xh")]
    made = plan_tables(with_ddls(without("h"), ddls)).tables
    assert {each.name.table for each in made if each.stop is not None} == {"s", "x"}


def test_a_table_from_outside_the_filter_may_replace_one_of_the_feed() -> None:
    ddls = [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in ("Ha", "ax")]
    made = plan_tables(with_ddls(without("H"), ddls)).tables
    assert {each.name.table: each.definition.stable_id for each in made if each.definition and not each.stop} == {
        "b": "b", "c": "c", "d": "d", "x": "a",
    }  # fmt: skip
    assert [
        str(each.stop) for each in made if each.name.table == "a" and "the feed's filter excludes" in str(each.stop)
    ]


def test_renames_of_unknown_order_that_a_window_had_begun_stay_so() -> None:
    """The first of them moved `a`, and the next window blocks it: it is still the same table to the window after."""
    now = before()
    ddls = [replace(ddl(20, f"RENAME TABLE d.{old} TO d.{new}"), topic=old) for old, new in ("ax", "ta", "xt")]
    shown = []
    for arrived in (1, 3, 3):
        now = with_ddls(now, ddls[:arrived])
        made = plan_tables(now).tables
        shown.append({each.name.table: each.definition.stable_id for each in made if each.definition and each.stop})
        now = after_window(now, 20)
    assert shown == [{}, {"x": "a"}, {"x": "a"}]


def builder(name: str, *queries: str) -> TablePlanBuilder:
    seen = AppliedDdls(commit_ts=20, queries=queries)
    return TablePlanBuilder(
        name=TableName("d", name), definition=None, state=None, complete_through=10, applied_ddls=seen
    )
