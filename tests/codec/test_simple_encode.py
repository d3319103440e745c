"""Simple written and read again, for any rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_messages import (
    UPDATE,
    ZONE,
    decode,
    row,
)

from ticdc_codec.batch import DecoderContext
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, Failure, Op, RowChange
from ticdc_codec.options import sink_options
from ticdc_codec.simple import encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = {
    "int(11)": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint(20) unsigned": st.integers(0, 2**64 - 1).map(str),
    "bit(64)": st.integers(0, 2**64 - 1).map(str),
    "varchar(8)": TEXT,
    "varbinary(8)": st.binary(max_size=8).map(bytes.hex),
    "enum('a','b')": st.integers(0, 2).map(str),
    "year(4)": st.integers(0, 2155).map(lambda year: f"{year:04d}"),
    "double": st.sampled_from(["0", "-0", "1e-07", "1.5", "-1e+300", "5e-324", "123456789012345680000", "1e+21"]),
    "float": st.sampled_from(["0", "-0", "1e-07", "3.4028235e+38", "0.1", "1e-45"]),
    "timestamp(3)": st.sampled_from(["2024-01-01 00:00:00.123", "0000-00-00 00:00:00.000"]),
    "json": st.sampled_from(['{"a": "b\\"\\\\"}', "[]", "1"]),
}


@st.composite
def rows(draw: st.DrawFn) -> RowChange:
    names = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    types = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    columns = tuple(
        Column(name=name, type=kind, key=not at, by="index" if kind.startswith("enum") else None)
        for at, (name, kind) in enumerate(zip(names, types, strict=True))
    )
    images = [{c.name: draw(VALUES[c.type] if c.key else st.none() | VALUES[c.type]) for c in columns} for _ in "ab"]
    op = draw(st.sampled_from(Op))
    commit_ts = draw(st.integers(0, 2**63 - 1))
    return RowChange(
        op=op, database=draw(TEXT), table=draw(TEXT), commit_ts=commit_ts, commit_ms=commit_ts >> 18,
        before=None if op is Op.INSERT else images[0], after=None if op is Op.DELETE else images[1],
        columns=columns, table_id=draw(st.integers(-(2**63), 2**63 - 1)),
        schema_version=draw(st.integers(0, 2**63 - 1)),
    )  # fmt: skip


@settings(max_examples=200)
@given(
    st.lists(rows(), max_size=4, unique_by=lambda e: (e.database, e.table, e.schema_version)),
    st.sampled_from(["json", "avro"]),
)
def test_what_is_encoded_decodes_to_the_same(events: list[RowChange], encoding: str) -> None:
    options = sink_options("simple", ZONE | {"encoding-format": encoding, "integrity-check-level": "correctness"})
    values = [message.value for message in encode(events, options)]
    schemas = {(event.database, event.table, event.schema_version or 0): event.columns for event in events}
    found = decode(*values, context=DecoderContext(schemas=schemas), encoding_format=encoding)
    keyless = [{name: getattr(event, name) for name in event.__slots__} for event in found]
    plain = {"handle_key": None, "old_handle_key": None}
    assert [RowChange(**members | plain) for members in keyless] == events


def test_encode_refuses_what_it_cannot_write() -> None:
    with pytest.raises(ConfigError):
        encode([Failure(reason="x", detail="x", offset=None, database=None, table=None)], sink_options("simple", {}))
    bare = {name: getattr(row(UPDATE), name) for name in RowChange.__slots__} | {"commit_ts": None}
    with pytest.raises(ConfigError, match="commit_ts"):
        encode([RowChange(**bare)], sink_options("simple", {}))
    of_view = RowChange(
        **bare | {"columns": (Column(name="g", type="geometry"),), "schema_version": None, "commit_ts": 5}
    )
    with pytest.raises(ConfigError, match="column g is of type 'geometry', which TiDB does not have"):
        encode([of_view], sink_options("simple", {}))
    with pytest.raises(ConfigError, match="simple-include-start-ts"):
        encode([], sink_options("simple", {"simple-include-start-ts": True}))


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_size_that_is_not_known_stays_so(encoding: str) -> None:
    """Rows of other protocols have types without sizes: none that TiDB has is 0."""
    kinds = {"id": "bigint(0)", "d": "decimal", "u": "decimal unsigned", "b": "bit", "y": "year"}
    columns = tuple(Column(name=name, type=kind.removesuffix("(0)"), key=name == "id") for name, kind in kinds.items())
    values: dict[str, str | None] = {"id": "1", "d": "1.50", "u": "2", "b": "3", "y": "1999"}
    members = {name: getattr(row(UPDATE), name) for name in RowChange.__slots__}
    other = {"op": Op.INSERT, "columns": columns, "before": None, "after": values, "schema_version": None}
    messages = [
        m.value for m in encode([RowChange(**members | other)], sink_options("simple", {"encoding-format": encoding}))
    ]
    found = decode(*messages, context=DecoderContext(), encoding_format=encoding)
    (read,) = (event for event in found if isinstance(event, RowChange))
    assert (read.after, {column.name: column.type for column in read.columns}) == (values, kinds)


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_type_without_names_is_written_without(encoding: str) -> None:
    # of rows that Craft, Open Protocol or Canal-JSON gave: their messages have the index or the mask alone
    kinds = {"id": "int(11)", "e": "enum", "s": "set"}
    columns = tuple(
        Column(name=name, type=kind, key=name == "id", by="index" if name in ("e", "s") else None)
        for name, kind in kinds.items()
    )
    values: dict[str, str | None] = {"id": "1", "e": "2", "s": "9223372036854775809"}
    members = {name: getattr(row(UPDATE), name) for name in RowChange.__slots__}
    other = {"op": Op.INSERT, "columns": columns, "before": None, "after": values, "schema_version": None}
    event = RowChange(**members | other)
    options = sink_options("simple", ZONE | {"encoding-format": encoding})
    messages = [message.value for message in encode([event], options)]
    found = decode(*messages, context=DecoderContext(), encoding_format=encoding)
    (read,) = (event for event in found if isinstance(event, RowChange))
    assert (read.after, {column.name: column.type for column in read.columns}) == (values, kinds)


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_names_of_an_enum_become_numbers(encoding: str) -> None:
    """Of rows that Debezium gave."""
    kinds = {"id": "int(11)", "e": "enum('a','b')", "s": "set('a','b','c')"}
    columns = tuple(
        Column(name=name, type=kind, key=name == "id", by="name" if name in ("e", "s") else None)
        for name, kind in kinds.items()
    )
    names: dict[str, str | None] = {"id": "1", "e": "b", "s": "a,c"}
    event = replace(row(UPDATE), op=Op.INSERT, columns=columns, before=None, after=names, schema_version=None)
    messages = [each.value for each in encode([event], sink_options("simple", {"encoding-format": encoding}))]
    found = decode(*messages, context=DecoderContext(), encoding_format=encoding)
    (read,) = (each for each in found if isinstance(each, RowChange))
    assert read.after == {"id": "1", "e": "2", "s": "5"}
