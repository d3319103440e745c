"""Which tables pay for looking at the TIMESTAMPs of their keys, and where these are in a key's text."""

from __future__ import annotations

import pytest

from ticdc_codec.event import Column
from ticdc_lakehouse.gold.ambiguous_keys import _positions, may_be_ambiguous
from ticdc_lakehouse.gold.staging import is_stageable
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql


def rows_of(create: str, named: tuple[str, ...]) -> MergeRows:
    (table,) = tables_from_sql(f"USE d; CREATE TABLE t ({create});", source="test")
    columns = tuple(Column(name=c.name, type=c.type.text, key=c.name in named) for c in table.sent)
    group = RowGroup(
        name=table.name, columns=columns, is_upsert=True, handle_only=False, keyed=True, first=1, last=2, rows=1
    )
    return MergeRows(table=table, after=0, through=9, groups=(group,))


@pytest.mark.parametrize(
    ("create", "named", "positions"),
    [
        ("ts TIMESTAMP, d INT, PRIMARY KEY (ts, d)", ("ts", "d"), [1]),
        ("Ts TIMESTAMP(6), U TIMESTAMP, d INT, PRIMARY KEY (u, tS, d)", ("Ts", "U", "d"), [1, 2]),
        ("ts DATETIME, d INT, u TIMESTAMP, PRIMARY KEY (ts, d)", ("ts", "d"), []),
        ("ts TIMESTAMP NOT NULL, z INT AS (1) VIRTUAL, a INT NOT NULL, UNIQUE (ts, z, a)", ("ts", "a"), [1]),
    ],
    ids=["in the order of names", "of another spelling", "none in the key", "beside a virtual column"],
)
def test_timestamps_are_where_a_keys_text_has_them(create: str, named: tuple[str, ...], positions: list[int]) -> None:
    rows = rows_of(create, named)
    assert _positions(rows) == positions
    assert may_be_ambiguous(rows, "America/New_York") is bool(positions)
    assert not may_be_ambiguous(rows, "UTC")
    assert not may_be_ambiguous(rows, "Asia/Kolkata"), "its clocks were never set back"


def test_only_rows_that_may_stop_are_not_staged() -> None:
    """All of a staged segment is merged."""
    rows = rows_of("d INT, ts TIMESTAMP, PRIMARY KEY (d, ts)", ("d", "ts"))
    staged = {
        zone: is_stageable(GoldConfig(feed="f", time_zone=zone), rows) for zone in ("Asia/Kolkata", "Europe/Rome")
    }
    assert staged == {"Asia/Kolkata": True, "Europe/Rome": False}
