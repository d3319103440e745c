"""Where a DDL, a message in quarantine or an earlier stop stops a table in a window, and the reason that
people read: every stop is a line of a table here. `test_rows_block_a_table` has those of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_table import (
    DDL_STOP,
    KNOWN,
    ROWS,
    STATE,
    UNFOLLOWED,
    block_reason,
    check_stop,
    ddl,
    definition,
    plan,
    planning_input,
    quarantined,
)

from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput

KEYLESS = definition(sql="CREATE TABLE d.t (id BIGINT NOT NULL, v VARCHAR(9))")
STOPS = {
    "nothing in the way": (planning_input(ROWS, known=KNOWN, state=STATE), 20, None),
    "a new table, from the wire": (planning_input(ROWS), 20, None),
    "a message in quarantine": (
        planning_input(ROWS, known=KNOWN, state=STATE, quarantined=quarantined(12)),
        12,
        "in quarantine",
    ),
    "a message in quarantine before everything": (
        planning_input(ROWS, known=KNOWN, state=STATE, quarantined=quarantined(0)),
        10,
        "in quarantine",
    ),
    "a message in quarantine beyond the window": (
        planning_input(ROWS, known=KNOWN, state=STATE, quarantined=quarantined(20)),
        20,
        None,
    ),
    "a DDL that is followed": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE t ADD w INT"),)),
        20,
        None,
    ),
    "an unsupported DDL": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),)),
        17,
        "unsupported DDL at 17 (1970-01-01 00:00:00.000 UTC)",
    ),
    "a first key": (
        planning_input(ROWS, known=KEYLESS, state=STATE, ddls=(ddl(14, "ALTER TABLE t ADD PRIMARY KEY (id)"),)),
        14,
        "the table had no key that could be its handle key",
    ),
    "a column of a unique key may not be NULL any more": (
        planning_input(
            ROWS,
            known=definition(sql="CREATE TABLE d.t (id BIGINT UNIQUE, v VARCHAR(9))"),
            state=STATE,
            ddls=(ddl(14, "ALTER TABLE t MODIFY id BIGINT NOT NULL"),),
        ),
        14,
        "the table had no key that could be its handle key",
    ),
    "a primary key beside one of virtual columns": (
        planning_input(
            known=definition(sql="CREATE TABLE d.t (id BIGINT NOT NULL, v VARCHAR(9), w INT AS (id), UNIQUE (id, w))"),
            state=STATE,
            ddls=(ddl(14, "ALTER TABLE t ADD PRIMARY KEY (id)"),),
        ),
        20,
        None,
    ),
    "another column of a table without a key": (
        planning_input(known=KEYLESS, state=STATE, ddls=(ddl(14, "ALTER TABLE t ADD w INT"),)),
        20,
        None,
    ),
    "at the window's end": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(20, UNFOLLOWED),)),
        20,
        "unsupported DDL at 20 ",
    ),
    "at the published watermark": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(10, UNFOLLOWED),)),
        10,
        "unsupported DDL at 10 ",
    ),
    "at the published watermark, and in already": (
        planning_input(
            ROWS,
            known=KNOWN,
            state=replace(STATE, ddls=("ALTER TABLE t DROP COLUMN v",)),
            ddls=(ddl(10, "ALTER TABLE t DROP COLUMN v"),),
        ),
        20,
        None,
    ),
    "the first of two DDLs": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, UNFOLLOWED), ddl(13, "ALTER TABLE t ADD w INT"))),
        12,
        "unsupported DDL at 12 ",
    ),
    "rows that do not know of a DDL": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "ALTER TABLE t ADD w INT"),)),
        14,
        "rows lack columns of the table's definition: w",
    ),
    "a hold before a DDL": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, UNFOLLOWED),), quarantined=quarantined(12)),
        12,
        "in quarantine",
    ),
    "an unreadable DDL of the database": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "FLASHBACK DATABASE d", None),)),
        12,
        "FLASHBACK",
    ),
    "an unreadable DDL that names nothing": (
        planning_input(ROWS, known=KNOWN, state=STATE, ddls=(ddl(12, "DROP TABLE t", None, ""),)),
        12,
        "expected a table name with its database",
    ),
    "CREATE TABLE": (planning_input(ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)"),)), 20, None),
    "CREATE TABLE at the published watermark, again": (
        planning_input(
            known=definition(10),
            state=replace(STATE, ddls=("CREATE TABLE t (id BIGINT PRIMARY KEY)",)),
            ddls=(ddl(10, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),),
        ),
        20,
        None,
    ),
    "CREATE TABLE of one that is there": (
        planning_input(known=definition(9), state=STATE, ddls=(ddl(12, "CREATE TABLE t (id BIGINT PRIMARY KEY)"),)),
        12,
        "exists already",
    ),
    "CREATE TABLE LIKE one that nobody knows": (
        planning_input(ddls=(ddl(12, "CREATE TABLE t LIKE nobody"),)),
        12,
        "d.nobody is unknown",
    ),
    "EXCHANGE PARTITION with a table that nobody knows": (
        planning_input(
            ROWS, known=KNOWN, state=STATE, ddls=(ddl(17, "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t"),)
        ),
        17,
        "one table is unknown to this feed or blocked",
    ),
    "RECOVER TABLE of one that nobody knew": (
        planning_input(ddls=(ddl(12, "RECOVER TABLE t"),)),
        12,
        "rows of the restored table",
    ),
    "renamed out of what the filter leaves out": (
        planning_input(
            ddls=(ddl(12, "RENAME TABLE hidden TO t"),),
            config=GoldConfig(feed="f", time_zone="UTC", matches=lambda _, name: name != "hidden"),
        ),
        12,
        "filter excludes",
    ),
    "a DDL that nobody can read": (
        planning_input(
            known=KNOWN, state=STATE, ddls=(ddl(12, "ALTER TABLE d.T SOME NEW THING", name="T", database="D"),)
        ),
        12,
        "expected an action of ALTER TABLE",
    ),
    "a DDL that nobody can read, of a table that nobody knows": (
        planning_input(ddls=(ddl(12, "ALTER TABLE t SOME NEW THING"),)),
        12,
        "expected an action of ALTER TABLE",
    ),
    "blocked until a person decides": (
        planning_input(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, stop=DDL_STOP)),
        5,
        "unsupported DDL at 5 ",
    ),
    "blocked for a while": (
        planning_input(ROWS, known=KNOWN, state=replace(STATE, applied_tso=5, stop=quarantined(5).stop)),
        20,
        None,
    ),
}


@pytest.mark.parametrize(("now", "through", "reason"), STOPS.values(), ids=STOPS)
def test_ddls_and_messages_block_a_table(now: PlanningInput, through: int, reason: str | None) -> None:
    check_stop(plan(now), through, reason)


def test_unsupported_ddl_names_the_ways_out_in_one_line() -> None:
    export = "`ticdc-lake load` continues from an export taken since"
    skip = "`ticdc-lake table skip-ddl` skips it"
    anew = "DROP and CREATE in TiDB starts the table anew"
    ignore = "gold.on_unsupported_ddl: ignore, and `ticdc-lake table resume`, skip it and later ones"
    unfollowed = ddl(17, UNFOLLOWED.replace(" ADD", "\n  ADD"))
    known = block_reason(plan(planning_input(ROWS, known=KNOWN, state=STATE, ddls=(unfollowed,)))) or ""
    assert known.endswith(f": {UNFOLLOWED}; ways out: {export}; {skip}; {anew}; {ignore}")
    unknown = block_reason(plan(planning_input(ddls=(ddl(17, "CREATE TABLE t LIKE hidden"),)))) or ""
    assert unknown.endswith(f": CREATE TABLE t LIKE hidden; ways out: {export}; {anew}")
