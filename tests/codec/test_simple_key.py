"""Which columns of a Simple table are its handle key (wire.md 1.2.5), and rows that have not all of them."""

from __future__ import annotations

from typing import Any

import pytest
from simple_messages import AVRO, BARE, VERSION, decode, row, written

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Bootstrap
from ticdc_codec.options import EncodingFormat, sink_options
from ticdc_codec.simple import encode
from ticdc_codec.simple.avro_message import AvroWriter
from ticdc_codec.simple.message import read_envelope

INT = {"mysqlType": "int", "charset": "binary", "collate": "binary", "length": 11}
NULLABLE = "n"
NAMES = ("id", "u", "w", NULLABLE, "_V$_k_0")
Index = dict[str, Any]


def unique(*columns: str) -> Index:
    return {"name": "k", "unique": True, "primary": False, "nullable": NULLABLE in columns, "columns": columns}


def primary(*columns: str) -> Index:
    return unique(*columns) | {"name": "PRIMARY", "primary": True}


def added(*columns: str) -> Index:
    """What writers add if no index is primary: a primary key that is the row's number, or the first unique key."""
    return unique(*columns) | {"name": "primary", "primary": True}


def bootstrap(*indexes: Index) -> bytes:
    columns = [{"name": n, "dataType": INT, "nullable": n == NULLABLE, "default": None} for n in NAMES]
    schema = {"schema": "d", "table": "t", "tableID": 7, "version": VERSION, "columns": columns, "indexes": indexes}
    return written(**BARE, type="BOOTSTRAP", commitTs=0, tableSchema=schema)


def insert(*columns: str, **members: Any) -> bytes:
    return written(type="INSERT", data=dict.fromkeys(columns, "1"), old=..., **members)


HANDLE_KEYS = {
    "primary key": ((unique("id"), primary("u", "w")), {"u", "w"}),
    "primary key that is unique twice": ((unique("u", "w"), unique("id"), primary("u", "w")), {"u", "w"}),
    "primary key that is no index": ((unique("u"), unique("u", "w"), added("id")), {"id"}),
    "primary key that is no index, unique twice": ((unique("id"), unique("u"), added("id")), {"id"}),
    "fewest columns": ((unique("u", "w"), unique("id"), added("u", "w")), {"id"}),
    "the first of as many": ((unique("u"), unique("id"), added("u")), {"u"}),
    "none with NULLs": ((unique(NULLABLE), unique("u", "w"), added("u", "w")), {"u", "w"}),
    "none of expressions": ((unique("_V$_k_0"), unique("u", "w"), added("u", "w")), {"u", "w"}),
    "no key": ((unique(NULLABLE),), set()),
}


@pytest.mark.parametrize("name", HANDLE_KEYS)
def test_the_handle_key_is_the_one_that_ticdc_takes(name: str) -> None:
    indexes, expected = HANDLE_KEYS[name]
    (schema,) = decode(bootstrap(*indexes))
    assert isinstance(schema, Bootstrap)
    assert {column.name for column in schema.columns if column.key} == expected


def in_avro(schema: bytes, value: bytes) -> list[bytes | None]:
    """A schema and a row of it."""
    options = sink_options("simple", AVRO)
    control = AvroWriter(options).control(read_envelope(schema))
    return [control, *[message.value for message in encode(decode(schema, value)[1:], options)]]


@pytest.mark.parametrize("encoding", EncodingFormat)
@pytest.mark.parametrize("key", [("u",), ("u", "w")])
def test_a_key_of_virtual_columns_is_none(encoding: str, key: tuple[str, ...]) -> None:
    """TiDB's stand-in for a primary key may have virtual columns, which rows never have (wire.md 1.3.1)."""
    messages: list[bytes | None] = [bootstrap(unique(*key), added(*key)), insert("id", "w")]
    values = in_avro(*map(bytes, filter(None, messages))) if encoding == "avro" else messages
    schema, found = decode(*values, encoding_format=encoding)
    assert isinstance(schema, Bootstrap)
    context = DecoderContext(schemas={("d", "t", VERSION): schema.columns})
    assert row(values[1] or b"", context=context, encoding_format=encoding) == found
    assert found.after == {"id": "1", "w": "1"}
    assert found.handle_key is None
    assert not any(column.key for column in found.columns)


@pytest.mark.parametrize("encoding", EncodingFormat)
def test_row_may_have_only_its_handle_key(encoding: str) -> None:
    """It holds the key that has fewest columns, whatever stands in for the primary key."""
    schema, value = bootstrap(unique("u", "w"), unique("id"), added("u", "w")), insert("id", handleKeyOnly=True)
    values = in_avro(schema, value) if encoding == "avro" else [schema, value]
    found = decode(*values, encoding_format=encoding)[1]
    assert (found.after, found.handle_key, found.handle_only) == ({"id": "1"}, '["1"]', True)
