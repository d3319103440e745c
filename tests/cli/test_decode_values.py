"""Events as the JSON values that vectors hold."""

from __future__ import annotations

from typing import Any

import pytest

from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange
from ticdc_local.cli.decode import canonical

COLUMNS = (
    Column(name="i", type="int"),
    Column(name="b", type="varbinary"),
    Column(name="e", type="enum", by="index"),
    Column(name="n", type="enum", by="name"),
    Column(name="s", type="set", by="index"),
    Column(name="m", type="set", by="name"),
    Column(name="z", type="blob"),
)
IMAGE = {"i": "1", "b": "00ff", "e": "2", "n": "x", "s": "5", "m": "a,c", "z": None}
VALUES = {
    "i": "1",
    "b": {"hex": "00ff"},
    "e": {"index": 2},
    "n": {"name": "x"},
    "s": {"mask": "5"},
    "m": {"names": "a,c"},
    "z": None,
}
ROW = {"kind": "row", "op": "update", "schema": "d", "table": "t"}


def row(commit_ts: int | None) -> RowChange:
    return RowChange(
        op=Op.UPDATE,
        database="d",
        table="t",
        commit_ts=commit_ts,
        commit_ms=9,
        before=None,
        after=IMAGE,
        columns=COLUMNS,
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (row(7), {**ROW, "commit_ts": 7, "before": None, "after": VALUES}),
        (row(None), {**ROW, "commit_ts": None, "es": 9, "before": None, "after": VALUES}),
        (
            Ddl(database="d", table=None, commit_ts=7, commit_ms=9, query="q", type="14"),
            {"kind": "ddl", "schema": "d", "table": "", "commit_ts": 7, "query": "q", "type": 14},
        ),
        (
            Ddl(database=None, table="t", commit_ts=None, commit_ms=9, query="q", type="CREATE"),
            {"kind": "ddl", "schema": "", "table": "t", "commit_ts": None, "es": 9, "query": "q", "type": "CREATE"},
        ),
        (Resolved(commit_ts=7), {"kind": "resolved", "commit_ts": 7}),
        (Bootstrap(database="d", table="t"), {"kind": "bootstrap", "schema": "d", "table": "t"}),
        (
            Failure(reason="r", detail="d", offset=3, database="d", table="t"),
            {"reason": "r", "detail": "d", "offset": 3},
        ),
    ],
)
def test_each_kind_of_event_has_its_canonical_members(event: Event, expected: dict[str, Any]) -> None:
    assert canonical(event) == expected
