"""Keys with a TIMESTAMP whose text is two instants, where the feed's zone sets clocks back: two rows of TiDB have one
key in messages (docs/types.md, Time zones)."""

from __future__ import annotations

from ticdc_codec.event import key_order
from ticdc_codec.mysql_type import Family
from ticdc_codec.name_case import fold
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.gold.step_changes import StepChanges
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import incompatible
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.sql.instant import backward_shifts, instant_sql, is_ambiguous_sql

KEPT_APART = "a feed with time_zone: UTC, of a changefeed whose TiCDC servers run in UTC, keeps such rows apart"
"""What helps for good."""


def may_be_ambiguous(rows: MergeRows, time_zone: str) -> bool:
    """True if a row's key may have a TIMESTAMP that is two instants in the feed's zone."""
    return bool(backward_shifts(time_zone) and _positions(rows))


def timestamps_in_key(table: Table) -> list[str]:
    """Returns the TIMESTAMP columns of a table's key."""
    key = {fold(name) for name in table.key}
    return [c.name for c in table.columns if c.type.family is Family.TIMESTAMP and fold(c.name) in key]


def _positions(rows: MergeRows) -> list[int]:
    """Returns where the texts of keys have TIMESTAMPs. Of a key with virtual columns, which no definition has as its
    own, only the rows show the other columns."""
    times = {fold(c.name) for c in rows.table.columns if c.type.family is Family.TIMESTAMP}
    named = [rows.table.key] if rows.table.key else [[c.name for c in each.columns if c.key] for each in rows.groups]
    return sorted({at for key in named for at, name in enumerate(key_order(key)) if fold(name) in times})


def first_ambiguous(changes: StepChanges) -> BlockingPoint | None:
    """Returns the point before the first change of a key with a TIMESTAMP that is two instants in the feed's zone; None
    if there is none."""
    zone = changes.time_zone
    instants = (instant_sql(f"get_json_object({KEY}, '$[{at}]')", zone) for at in _positions(changes.rows))
    found = changes.lake.spark.sql(f"""
        SELECT min(struct(commit_ts, {KEY})) AS first
        FROM (SELECT commit_ts, {KEY}, explode(array({", ".join(instants)})) AS instant FROM ({changes.all_sql()}))
        WHERE {is_ambiguous_sql("instant", zone)}""")
    first = found.collect()[0]["first"]
    if first is None:
        return None
    detail = (
        f"the key {first[KEY]} of a row at {first['commit_ts']} has a TIMESTAMP that is two instants in {zone}, where "
        f"clocks were set back, and may be that of two rows ({KEPT_APART})"
    )
    return BlockingPoint(tso=first["commit_ts"] - 1, stop=incompatible(detail))
