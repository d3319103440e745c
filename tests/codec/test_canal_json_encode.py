"""Canal-JSON that is written reads back as what it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from canal_json_messages import (
    EXTENSION,
    UPDATE,
    row,
    without,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from well_typed import handle_key_text

from ticdc_codec.canal_json import encode
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Bootstrap, Column, Event, Op, Resolved, RowChange, events_of
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.lists(TEXT, min_size=1, max_size=6, unique=True)
VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint unsigned": st.integers(0, 2**64 - 1).map(str),
    "varchar(8)": TEXT,
    "varbinary(8)": st.binary(max_size=8).map(bytes.hex),
    "enum('a','b')": st.integers(0, 2).map(str),
    "year(4)": st.integers(0, 2155).map(lambda year: f"{year:04d}"),
    "double": st.sampled_from(["0", "-0", "1e-07", "1.5", "-1e+300", "5e-324", "123456789012345680000", "1e+21"]),
    "json": st.sampled_from(['{"a": "b\\"\\\\"}', "[]", "1"]),
}


@st.composite
def rows(draw: st.DrawFn) -> RowChange:
    names = draw(NAMES)
    types = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    keys = draw(st.integers(0, len(names)))
    columns = tuple(
        Column(name=name, type=kind, key=at < keys, by="index" if kind.startswith("enum") else None)
        for at, (name, kind) in enumerate(zip(names, types, strict=True))
    )

    def image() -> dict[str, str | None]:
        return {
            column.name: draw(VALUES[column.type] if column.key else st.none() | VALUES[column.type])
            for column in columns
        }

    op = draw(st.sampled_from(Op))
    before = None if op is Op.INSERT else image()
    after = None if op is Op.DELETE else image()
    key, old_key = (
        handle_key_text({n: i[n] for n in names[:keys]}) if i and keys else None for i in (after or before, before)
    )
    commit_ts = draw(st.integers(0, 2**63 - 1))
    return RowChange(
        op=op, database=draw(TEXT), table=draw(TEXT.filter(bool)), commit_ts=commit_ts, commit_ms=commit_ts >> 18,
        before=before, after=after, columns=columns, handle_key=key,
        old_handle_key=old_key if op is Op.UPDATE and old_key != key else None,
    )  # fmt: skip


@settings(max_examples=300)
@given(st.lists(rows(), max_size=4))
def test_what_is_encoded_decodes_to_the_same(events: list[RowChange]) -> None:
    """With the content-compatible types, and so with the changed columns alone in ``old``."""
    options = sink_options("canal_json", EXTENSION | {"content-compatible": True})
    messages = encode(events, options)
    batch = Decoder("canal_json", options).decode([m.key for m in messages], [m.value for m in messages])
    found = [event for _, event in events_of(batch)]
    assert [as_whole(event) for event in found] == events


def test_backslashes_in_the_names_of_an_enum_stand_for_themselves() -> None:
    """TiDB's own text of a type, which ``content-compatible`` has, doubles quotes alone."""
    wire = r"enum('k\l','it''s','\')"
    columns = (Column(name="id", type="int", key=True), Column(name="e", type=r"enum('k\\l','it''s','\\')", by="index"))
    change = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=1 << 18, commit_ms=1, before=None,
        after={"id": "1", "e": "3"}, columns=columns, handle_key='["1"]',
    )  # fmt: skip
    options = EXTENSION | {"content-compatible": True}
    (message,) = encode([change], sink_options("canal_json", options))
    assert json.loads(message.value or b"")["mysqlType"]["e"] == wire
    found = row(message.value or b"", **options)
    assert (found, parse_type(found.columns[1].type).elements) == (change, ("k\\l", "it's", "\\"))


def test_a_name_of_an_enum_that_may_be_two_is_not_known() -> None:
    """TiDB prints a line end as it prints a backslash and an n."""
    options = EXTENSION | {"content-compatible": True}
    columns = (Column(name="id", type="int", key=True), Column(name="e", type="enum('a','b')", by="index"))
    change = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=1 << 18, commit_ms=1, before=None,
        after={"id": "1", "e": "1"}, columns=columns,
    )  # fmt: skip
    (message,) = encode([change], sink_options("canal_json", options))
    printed = (message.value or b"").replace(b"enum('a','b')", rb"enum('a\\nb','b')")
    assert json.loads(printed)["mysqlType"]["e"] == r"enum('a\nb','b')"
    found = row(printed, **options)
    assert (found.columns[1].type, found.columns[1].by, found.after) == ("enum", "index", {"id": "1", "e": "1"})


def as_whole(event: Event) -> Event:
    """An update with the columns that ``before`` leaves out, because they have not changed."""
    if not isinstance(event, RowChange) or event.op is not Op.UPDATE:
        return event
    assert event.before is not None
    assert event.after is not None
    members = {name: getattr(event, name) for name in event.__slots__}
    return RowChange(**members | {"before": {**event.after, **event.before}})


def test_encode_refuses_what_it_cannot_write() -> None:
    update = row(UPDATE)
    with pytest.raises(ConfigError, match="output-row-key"):
        encode([update], sink_options("canal_json", EXTENSION | {"output-row-key": True}))
    bare = row(without("_tidb"), enable_tidb_extension=False)
    with pytest.raises(ConfigError, match="enable-tidb-extension"):
        encode([bare], sink_options("canal_json", EXTENSION))
    members = {name: getattr(update, name) for name in RowChange.__slots__}
    unknown = RowChange(**members | {"columns": tuple(replace(each, type="connect int64") for each in update.columns)})
    with pytest.raises(ConfigError, match="'connect int64' is no type of TiDB"):
        encode([unknown], sink_options("canal_json", EXTENSION))
    with pytest.raises(ConfigError):
        encode([Bootstrap(database="d", table="t")], sink_options("canal_json", EXTENSION))


def test_watermarks_are_written_only_with_the_extension() -> None:
    assert encode([Resolved(commit_ts=5)], sink_options("canal_json", {})) == []


def test_names_of_an_enum_become_numbers() -> None:
    columns = (Column(name="e", type="enum('a','b')", by="name"), Column(name="s", type="set('a','b','c')", by="name"))
    named = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
        after={"e": "b", "s": "a,c"}, columns=columns
    )  # fmt: skip
    (written_message,) = encode([named], sink_options("canal_json", EXTENSION))
    assert written_message.value is not None
    assert row(written_message.value).after == {"e": "2", "s": "5"}
