"""Debezium as written: days that there are not (wire.md 1.5.2)."""

from __future__ import annotations

import json

import pytest

from ticdc_codec import decode
from ticdc_codec import encode as encode_any
from ticdc_codec.debezium import encode
from ticdc_codec.errors import ConfigError
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
    (found,) = decode(message, "debezium", {"enable-tidb-extension": True})
    assert isinstance(found, RowChange)
    assert (found.table, found.after, found.handle_key) == (name, {name: "7"}, '["7"]')


@pytest.mark.parametrize("moment", ["2024-11-03T06:30:00Z", "2024-11-03T06:30:00.500Z"])
def test_a_timestamp_that_is_kept_as_sent_is_written_so(moment: str) -> None:
    """The later of two hours with one text, when clocks are set back."""
    options = {"time-zone": "America/New_York", "enable-tidb-extension": True}
    columns = (Column(name="id", type="int", key=True), Column(name="z", type="timestamp(3)"))
    row = RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
                    after={"id": "1", "z": moment}, columns=columns)  # fmt: skip
    (message,) = encode_any([row], "debezium", options)
    (event,) = decode(message, "debezium", options)
    assert isinstance(event, RowChange)
    assert event.after == row.after


@pytest.mark.parametrize(
    ("type_text", "value"),
    [("datetime", "2024-01-01 00:00:00.1234"), ("datetime", "0001-01-01 00:00:00.000001"), ("bit", "5")],
)
def test_what_a_type_without_its_size_would_cut_is_refused(type_text: str, value: str) -> None:
    """Most protocols do not tell the size, by which this wire chooses the form of the value."""
    columns = (Column(name="id", type="int", key=True), Column(name="c", type=type_text))
    row = RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
                    after={"id": "1", "c": value}, columns=columns)  # fmt: skip
    with pytest.raises(ConfigError, match="such as"):
        encode_any([row], "debezium")
