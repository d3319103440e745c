"""Kafka keys of Debezium that name a virtual column: ticdc takes such a unique key where there is no primary key."""

from __future__ import annotations

import pytest
from test_debezium_strict import BARE, FIELDS, IMAGE, INSERT, KEY, decode, failure, row, text, value

FIELD = {"type": "int32", "optional": False, "field": "v", "tidb_type": "int"}
TYPED = value(fields=[*FIELDS, FIELD])
"""Virtual columns are in the schema, never in images (wire.md 1.5.1)."""


@pytest.mark.parametrize("message", [TYPED, BARE], ids=["with schema", "without"])
@pytest.mark.parametrize("payload", [{"v": None}, {"v": 2}, {"id": 1, "v": 2}])
def test_a_key_with_a_virtual_column_is_none(message: bytes, payload: dict[str, int | None]) -> None:
    """Its other columns are not unique."""
    key = text({"payload": payload})
    found = row(message, key=key)
    assert (found.handle_key, found.after) == (None, row(message).after)
    assert not any(column.key for column in found.columns)
    assert decode(*[message] * 20, key=key) == [found] * 20


def test_what_the_image_has_of_such_a_key_is_compared() -> None:
    assert failure(TYPED, key=text({"payload": {"id": 2, "v": 2}})).reason == "key_mismatch"
    assert failure(TYPED, key=b'{"payload":{"id":1,"v":2,"v":2}}').reason == "duplicate_name"


def test_the_schema_must_have_it() -> None:
    assert failure(INSERT, key=text({"payload": {"v": 2}})).reason == "wrong_columns"
    others = {name: found for name, found in IMAGE.items() if name != "id"}
    assert failure(value(fields=FIELDS[1:], after=others), key=KEY).reason == "wrong_columns"
