"""Flags that are made up for columns of other protocols, against those of both writers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vectors import cases, header

from ticdc_codec.event import Column, RowChange, events_of
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.tidb_codes import Flag, flags_of

_TOLD_BY_TYPE = (Family.INTEGER, Family.BIT, Family.YEAR)
"""Of these the wire's type says whether UNSIGNED is set."""


def columns_in(file: str) -> set[Column]:
    """Of all rows, but for columns that came without flags (wire.md 8.4)."""
    protocol = header(file)["protocol"]
    decoder = Decoder(protocol, sink_options(protocol, header(file)["options"]))
    keys = [key for case in cases(file) for key in case.keys]
    values = [value for case in cases(file) for value in case.values]
    rows = [event for _, event in events_of(decoder.decode(keys, values)) if isinstance(event, RowChange)]
    return {column for row in rows for column in row.columns if column.flags}


@pytest.mark.parametrize("file", ["ticdc-open_protocol", "tiflow-open_protocol", "tiflow-craft"])
def test_flags_are_those_that_ticdc_sets(file: str) -> None:
    columns = columns_in(file)
    assert {family_of(column.type) for column in columns} == {*Family} - {Family.OTHER}
    for column in columns:
        derived = Flag.BINARY | Flag.HANDLE_KEY
        if family_of(column.type) in _TOLD_BY_TYPE:
            derived |= Flag.UNSIGNED
        assert flags_of(replace(column, flags=None)) & derived == (column.flags or 0) & derived, column
