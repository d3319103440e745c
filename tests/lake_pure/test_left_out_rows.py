"""What a window writes of a table that the feed's filter leaves out: up to which TSO gold has applied it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_lakehouse.gold.state import rows_to_publish
from ticdc_lakehouse.gold.state_tables import TABLE_STATES, Identity
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.schema.names import TableName

GONE, LAGGING = TableName("d", "t0"), TableName("d", "t1")


def states_at_20(tables: int) -> dict[TableName, TableState]:
    return {
        TableName("d", f"t{i}"): TableState(lake_name=f"d_t{i}", stable_id=f"t{i}__data", version=1, applied_tso=20)
        for i in range(tables)
    }


@pytest.mark.parametrize("tables", [3, 30], ids=["all states are written again", "changed states alone"])
def test_a_table_that_is_left_out_ends_where_it_was_applied(tables: int) -> None:
    states = states_at_20(tables)
    states[LAGGING] = replace(states[LAGGING], applied_tso=15)
    before = Published(tso=20, number=1, base=1, tables=states)
    kept = {name: replace(s, applied_tso=30) for name, s in states.items() if name not in (GONE, LAGGING)}
    planned = replace(before, tso=30, tables=kept)
    after, rows = rows_to_publish(Identity("f", 2, "run"), before, planned, [], 0, [GONE, LAGGING])
    assert (after.base == 2) is (tables == 3)
    ended = [row for row in rows[TABLE_STATES] if row["removed"]]
    reason = "the feed's filter leaves it out"
    assert [(row["table"], row["dropped_at"], row["applied_tso"], row["block_reason"]) for row in ended] == [
        ("t0", None, 20, reason),
        ("t1", None, 15, reason),
    ]


def test_a_table_that_tidb_dropped_ends_without_a_reason() -> None:
    states = states_at_20(30)
    before = Published(tso=20, number=1, base=1, tables=states)
    planned = replace(before, tso=30, tables={n: replace(s, applied_tso=30) for n, s in states.items() if n != GONE})
    (ended,) = rows_to_publish(Identity("f", 2, "run"), before, planned, [], 0)[1][TABLE_STATES]
    assert (ended["table"], ended["removed"], ended.get("block_reason")) == ("t0", True, None)
