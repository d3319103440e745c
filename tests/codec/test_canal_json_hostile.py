"""Canal-JSON messages with anything in the place of anything: an error, or events that hold what they should."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canal_json_messages import (
    DOUBLED,
    UPDATE,
    VALID,
    decode,
    failure,
)
from mutated import places, replaced
from vectors import cases

from ticdc_lakehouse.event import (
    Bootstrap,
    Ddl,
    Event,
    Failure,
    Resolved,
    RowChange,
)

SAMPLE = [
    value
    for name in ("ticdc-canal_json-ext", "tiflow-canal_json-ext")
    for case in cases(name)[::40]
    for value in case.values
]


def test_every_truncation() -> None:
    for value in (*VALID, *[value for value in SAMPLE if value is not None]):
        for event in decode(*[value[:length] for length in range(len(value))]):
            assert isinstance(event, Failure)


WRONG: tuple[Any, ...] = (
    None, 0, 7, -1, 2**63, 2**64, 10**400, 1.5, True, "", "x", "\0", "é", [], [[]], ["id"], [{}], [None],
    {}, {"id": None}, {"id": 4}, {"id": "int"},
)  # fmt: skip


def mutations(value: bytes) -> list[bytes]:
    whole = json.loads(value)
    found = []
    for at in places(whole):
        found += [replaced(value, at, json.dumps(wrong)) for wrong in WRONG]
        found += [replaced(value, at, wrong) for wrong in ("[" * 2000 + "]" * 2000, "1e999", "NaN", "", '"\\ud800"')]
    return found


def removals(value: bytes) -> list[bytes]:
    whole = json.loads(value)
    names = [name for name in whole if isinstance(whole, dict)]
    return [json.dumps({name: member for name, member in whole.items() if name != gone}).encode() for gone in names]


@pytest.mark.parametrize("value", [value for value in (*VALID, *SAMPLE[:30]) if value is not None])
def test_any_member_may_be_anything(value: bytes) -> None:
    """An error or an event whose columns hold their types (``decode`` validates the batch, ``event_of`` the values)."""
    for event in decode(*mutations(value), *removals(value)):
        well_typed(event)


@pytest.mark.parametrize("value", [value for value in (*VALID, *SAMPLE[:30:10]) if value is not None])
def test_what_a_message_is_does_not_depend_on_others(value: bytes) -> None:
    """Alone it is read by its envelope, together with rows of its table by that table's Struct."""
    changed = [*mutations(value)[::3], *removals(value), *[value.replace(*change) for change in DOUBLED.values()]]
    _, *together = decode(value, *changed)
    assert together == [decode(one)[0] for one in changed]


@pytest.mark.parametrize(
    ("change", "offset"),
    [((b'"1999"', b'"\xe9"'), 1), ((b'"1999"', b'"19\\q"'), 4), ((b'"1999"', b'"\0"'), 1)],
)
def test_a_fault_in_an_image_has_its_place(change: tuple[bytes, bytes], offset: int) -> None:
    value = UPDATE.replace(*change)
    found = failure(value)
    assert (found.reason, found.offset) == ("bad_json", value.index(change[1]) + offset)


def well_typed(event: Event) -> None:
    match event:
        case RowChange():
            texts = [*(event.before or {}).values(), *(event.after or {}).values()]
            assert all(text is None or isinstance(text, str) for text in texts)
            assert event.before is not None or event.after is not None
        case Ddl(query=query):
            assert isinstance(query, str)
        case Resolved(commit_ts=commit_ts):
            assert 0 <= commit_ts < 2**64
        case Failure(reason=reason, detail=detail):
            assert reason
            assert detail
        case Bootstrap():
            pytest.fail("no bootstrap on this wire")
