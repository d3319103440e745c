"""Debezium as written: days that there are not (wire.md 1.5.2)."""

from __future__ import annotations

import json

import pytest

from ticdc_codec.debezium import encode
from ticdc_codec.event import Column, Op, RowChange
from ticdc_codec.options import sink_options

DAYS = {
    "date": {"1970-01-03": 2, "2024-00-10": None, "2024-02-30": None, "0000-00-00": None},
    "datetime": {"1970-01-01 00:00:01": 1000, "2024-00-10 00:00:00": None, "2024-02-30 12:00:00": None},
    "datetime(6)": {"1970-01-01 00:00:00.000001": 1, "2024-02-30 00:00:00.000000": None},
}


def written(type_text: str, days: list[str], *, key: bool) -> list[tuple[object, object]]:
    """What stands in the key, if it is of the key, and in the image."""
    columns = (Column(name="c", type=type_text, key=key),)
    rows = [
        RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None, after={"c": day},
                  columns=columns)
        for day in days
    ]  # fmt: skip
    pairs = [(json.loads(m.key or b""), json.loads(m.value or b"")) for m in encode(rows, sink_options("debezium", {}))]
    return [(k["payload"].get("c", ...), v["payload"]["after"]["c"]) for k, v in pairs]


@pytest.mark.parametrize("type_text", DAYS)
def test_invalid_days_are_written_as_null_or_as_zero_in_a_key(type_text: str) -> None:
    """NULL, or 0 in a key, whose columns are NOT NULL; alone and beside others."""
    days = DAYS[type_text]
    for chosen in ([*days], *([day] for day in days)):
        assert written(type_text, chosen, key=False) == [(..., days[day]) for day in chosen]
        assert written(type_text, chosen, key=True) == [(days[day] or 0, days[day] or 0) for day in chosen]


def test_names_of_any_characters() -> None:
    """Names of databases, tables and columns are no part of the messages' form."""
    name = 'a"%b\\\n'
    row = RowChange(op=Op.INSERT, database=name, table=name, commit_ts=1, commit_ms=0, before=None, after={name: "7"},
                    columns=(Column(name=name, type="int", key=True),))  # fmt: skip
    (message,) = encode([row], sink_options("debezium", {}))
    key, payload = (json.loads(text or b"")["payload"] for text in (message.key, message.value))
    assert (key, payload["after"], payload["source"]["db"]) == ({name: 7}, {name: 7}, name)
