"""Rows are parted at the DDLs of their own table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import DDL_STOP, KNOWN, NAME, STATE, U, ddl

from ticdc_lakehouse.planning.barriers import barriers, lagging_names, unapplied_after
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.schema.names import TableName

BEFORE = Published(tso=10)


@pytest.mark.parametrize(
    ("query", "parted"),
    [
        ("ALTER TABLE t ADD c INT", {"t"}),
        ("ALTER TABLE T ADD c INT", {"t"}),
        ("ALTER TABLE t ADD INDEX i (v)", set()),
        ("ALTER TABLE t ADD INDEX (v)", {"t"}),
        ("ALTER TABLE t ADD FOREIGN KEY f (v) REFERENCES u (id)", {"t"}),
        ("CREATE TABLE t (id INT KEY)", {"t"}),
        ("CREATE TABLE t LIKE u", {"t", "u"}),
        ("DROP TABLE t, u", {"t", "u"}),
        ("TRUNCATE TABLE u", {"u"}),
        ("RENAME TABLE t TO u", {"t", "u"}),
        ("RECOVER TABLE t", {"t"}),
        ("FLASHBACK TABLE t TO u", {"t", "u"}),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", {"t", "u"}),
        ("DROP DATABASE D", {"t", "u"}),
        ("DROP DATABASE other", set()),
        ("CREATE VIEW v AS SELECT 1", set()),
    ],
)
def test_ddl_parts_the_rows_of_the_tables_that_it_names(query: str, parted: set[str]) -> None:
    found = barriers([ddl(15, query, None)], BEFORE)
    for name in (NAME, U):
        between = [found.passed(name, commit_ts) for commit_ts in (14, 15, 16)]
        assert between == ([0, 0, 1] if name.table in parted else [0, 0, 0])


def test_ddl_that_names_nothing_parts_the_rows_of_all_tables() -> None:
    before = Published(tso=10, tables={NAME: STATE})
    found = barriers([ddl(15, "DROP TABLE t", None, ""), ddl(18, "CREATE TABLE u (id INT KEY)")], before)
    assert [found.passed(NAME, commit_ts) for commit_ts in (15, 16, 19)] == [0, 1, 1]
    assert [found.passed(U, commit_ts) for commit_ts in (15, 16, 19)] == [0, 1, 2]


def test_database_and_table_are_parted_by_both() -> None:
    found = barriers([ddl(12, "DROP DATABASE d", None), ddl(15, "CREATE TABLE t (id INT KEY)", None)], BEFORE)
    assert [found.passed(NAME, commit_ts) for commit_ts in (12, 13, 15, 16)] == [0, 1, 1, 2]


def test_table_below_the_watermark_is_parted_where_it_is_under_all_its_names() -> None:
    before = Published(tso=10, tables={U: replace(STATE, applied_tso=4)})
    ddls = [
        ddl(6, "RENAME TABLE t TO x", None),
        ddl(8, "RENAME TABLE x TO u", None),
        ddl(9, "RENAME TABLE v TO w", None),
    ]
    x, v = TableName("d", "x"), TableName("d", "v")
    assert lagging_names(ddls, before) == {U: {U, NAME, x}}
    assert barriers(ddls, before).tables[NAME] == (4, 6, 10)
    assert barriers(ddls, before).tables[v] == (9,)


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        (StopKind.UNSUPPORTED_DDL, 7),
        (StopKind.INCOMPATIBLE_ROWS, 8),
    ],
)
def test_all_rows_of_a_definition_are_read_again_for_a_table_that_waited_for_an_override(
    kind: StopKind, after: int
) -> None:
    """Late ones may have come meanwhile. Under another name they may be another table's."""
    state = replace(STATE, applied_tso=8, stop=replace(DDL_STOP, kind=kind, needs_override=False))
    before = Published(
        tso=10, tables={U: state}, definitions={STATE.stable_id: replace(KNOWN, commit_ts=7, named_at=3)}
    )
    rename = ddl(9, "RENAME TABLE t TO u", None)
    assert [*unapplied_after([rename], before, in_any_order=True)] == [(NAME, after), (U, 8)]
    assert [*unapplied_after([rename], before, in_any_order=False)] == [(NAME, 8), (U, 8)]
    newest = [*unapplied_after([rename], replace(before, tso=8), in_any_order=True)]
    assert newest == ([(NAME, 7)] if after == 7 else []), "it is applied up to the newest commit of all"
    waiting = replace(state, stop=replace(DDL_STOP, kind=kind))
    assert [*unapplied_after([rename], replace(before, tables={U: waiting}), in_any_order=True)] == []


def test_rows_from_before_the_window_are_parted_at_the_definition_in_force() -> None:
    known = replace(KNOWN, commit_ts=7, named_at=3)
    assert barriers([], BEFORE, [known]).tables == {NAME: (3, 7)}
