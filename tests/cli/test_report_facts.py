"""``ticdc-lake report``: the figures of tables that are spelled in two ways, and of a wire without commit_ts."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from delta_lake import NOW, write

from ticdc_codec.tso import first_of
from ticdc_lakehouse.ops.status import feed_status
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.report import facts
from ticdc_local.report.facts import FeedFacts, feed_facts

SPELLINGS = TableName("Shop", "t"), TableName("shop", "T")


def minute(number: int) -> datetime:
    return NOW + timedelta(minutes=number)


def tso(time: datetime) -> int:
    return first_of(round(time.timestamp() * 1000))


def facts_of(lake: Path, mode: str, events: list[dict[str, object]]) -> FeedFacts:
    """What the page says of a feed that published minutes 1 and 2 as windows 1 and 2, each with one bronze batch."""
    place = {"topic": "t", "partition": 0, "index": 0, "timestamp": NOW}
    write(lake / "silver" / "crm_events", "events", [{**place, "offset": n, **each} for n, each in enumerate(events)])
    landed = [{"batch": n, "topic": "t", "partition": 0, "messages": 9, "ingest_time": NOW} for n in (0, 1)]
    write(lake / "bronze" / "crm_offsets", "offsets", landed)
    windows = [
        {"feed": "crm", "number": n, "run": "r", "base": 1, "mode": mode, "batch": n - 1, "published_at": minute(9)}
        | {"tso": tso(minute(n)), "from_tso": tso(minute(n - 1)) if n > 1 else 0, "time": minute(n), "row_changes": 9}
        for n in (1, 2)
    ]
    write(lake / "ops" / "windows", "windows", windows)
    for name in ("table_states", "definitions", "topics"):
        write(lake / "ops" / name, name, [])
    reader = DeltaReader(lake)
    return feed_facts(reader, feed_status(reader, "crm", None))


def named(name: TableName) -> dict[str, object]:
    return {"kind": "row", "database": name.database, "table": name.table}


def test_rows_of_every_spelling_of_a_table_count(tmp_path: Path) -> None:
    spelled = [(name, number) for name in SPELLINGS for number in (1, 2, 2)]
    events = [{**named(name), "batch": n - 1, "commit_ts": tso(minute(n))} for name, n in spelled]
    assert facts_of(tmp_path, "watermarks", events).rows == {(1, SPELLINGS[0]): 2, (2, SPELLINGS[0]): 4}


@pytest.mark.parametrize("has_tso", [True, False], ids=["with commit_ts", "without"])
def test_in_mode_eventual_rows_count_in_the_window_that_they_arrived_in(tmp_path: Path, *, has_tso: bool) -> None:
    arrived = [(1, 0), (1, 1), (2, 1), (2, 2)]  # the minute, the batch: one came late, one is not published yet
    events = [
        {**named(SPELLINGS[0]), "batch": batch, "commit_time": minute(n), "commit_ts": tso(minute(n)) * has_tso or None}
        for n, batch in arrived
    ]
    assert facts_of(tmp_path, "eventual", events).rows == {(1, SPELLINGS[0]): 1, (2, SPELLINGS[0]): 2}


def test_ddls_without_commit_ts_are_among_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "NEWEST_DDLS", 3)
    ddl = {"kind": "ddl", "batch": 0}
    timed = [{**ddl, "commit_time": minute(n), "query": f"DDL {n}"} for n in (4, 4, 2, 1)]
    events = [*timed, {**ddl, "commit_time": minute(3), "commit_ts": tso(minute(3)) + 5, "query": "DDL 3"}]
    found = facts_of(tmp_path, "eventual", events).ddls
    assert [(each.query, each.tso) for each in found] == [
        ("DDL 4", tso(minute(4))),
        ("DDL 3", tso(minute(3)) + 5),
        ("DDL 2", tso(minute(2))),
    ]
