"""Schemas of Simple are found by the names of their tables as TiDB compares them."""

from __future__ import annotations

import pickle

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Column, Op, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder, encode
from ticdc_codec.tso import milliseconds
from ticdc_lakehouse.silver.external_schemas import SchemasByName

TSO = 470613127470252033
COLUMNS = (Column(name="id", type="bigint", key=True), Column(name="v", type="varchar"))


def test_row_under_another_spelling_finds_its_schema() -> None:
    """wire.md 8.14: a database in lower case after a RENAME."""
    row = RowChange(
        op=Op.INSERT,
        database="mutatio",
        table="uno",
        commit_ts=TSO,
        commit_ms=milliseconds(TSO),
        before=None,
        after={"id": "1", "v": "a"},
        columns=COLUMNS,
        schema_version=TSO - 5,
    )
    (message,) = encode([row], "simple")
    schemas = SchemasByName([(("Mutatio", "Uno", TSO - 5), COLUMNS), (("Mutatio", "due", TSO - 5), COLUMNS[:1])])
    assert [*schemas] == [("Mutatio", "Uno", TSO - 5), ("Mutatio", "due", TSO - 5)]
    decoder = Decoder("simple", sink_options("simple", {}), DecoderContext(schemas=pickle.loads(pickle.dumps(schemas))))
    ((_, found),) = events_of(decoder.decode([message.key], [message.value]))
    assert isinstance(found, RowChange)
    assert found.after == row.after
    assert schemas.get(("mutatio", "UNO", TSO)) is None


def test_the_last_schema_of_a_name_and_version_holds() -> None:
    schemas = SchemasByName([(("d", "t", 5), COLUMNS), (("D", "T", 5), COLUMNS[:1])])
    assert [*schemas.values()] == [COLUMNS[:1]]
