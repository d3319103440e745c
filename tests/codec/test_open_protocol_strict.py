"""Open Protocol that is not as TiCDC writes it: a DecodeError with the right reason, or a well-typed event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from single import single

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Ddl, Event, Failure, Resolved, RowChange, events_of
from ticdc_codec.open_protocol.frame import VERSION, framed
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

COMMIT_TS = 470613139966656514
DEEP = b"[" * 100_000 + b"]" * 100_000
Pair = tuple[bytes | None, bytes | None]


def decode(*messages: Pair, stored: dict[str, bytes] | None = None, **options: object) -> list[Event]:
    given_options = {name.replace("_", "-"): value for name, value in options.items()}
    decoder = Decoder(
        "open_protocol", sink_options("open_protocol", given_options), DecoderContext(objects=stored or {})
    )
    batch = decoder.decode([key for key, _ in messages], [value for _, value in messages])
    batch.validate(full=True)
    return [event for _, event in events_of(batch)]


def failure(message: Pair, **options: Any) -> Failure:
    return single(decode(message, **options), Failure)


def row(message: Pair, **options: Any) -> RowChange:
    return single(decode(message, **options), RowChange)


def written(*events: tuple[dict[str, Any] | bytes, Any]) -> Pair:
    """A message of keys and values."""

    def text(part: Any) -> bytes:
        return part if isinstance(part, bytes) else json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()

    return VERSION + framed([text(key) for key, _ in events]), framed([text(value) for _, value in events])


def key(**members: Any) -> dict[str, Any]:
    return {"ts": COMMIT_TS, "scm": "d", "tbl": "t", "t": 1} | members


CELLS = {
    "id": {"t": 3, "h": True, "f": 11, "v": 1},
    "q": {"t": 15, "f": 65, "v": "a\\x00\\u00a0"},
    "b": {"t": 252, "f": 64, "v": "YcOp"},
    "g": {"t": 5, "f": 65, "v": 0.5},
    "n": {"t": 8, "f": 193, "v": None},
}


def cells(**changed: Any) -> dict[str, Any]:
    """An image, with other values of some columns."""
    return {name: cell | {"v": changed[name]} if name in changed else cell for name, cell in CELLS.items()}


ROW = {"u": cells(), "p": cells(id=2)}
UPDATE = written((key(), ROW))
DDL = written((key(t=2), {"q": "CREATE TABLE t (id INT)", "t": 3}))
WATERMARK = written(({"ts": 5, "t": 3}, b""))
BATCH = written((key(), ROW), (key(tbl="s"), {"d": cells()}), (key(t=2), {"q": "x", "t": 11}), ({"ts": 5, "t": 3}, b""))
VALID = (UPDATE, DDL, WATERMARK, BATCH)


def test_the_messages_here_are_valid() -> None:
    update, ddl, watermark, *batch = decode(*VALID)
    assert isinstance(update, RowChange)
    assert update.after == {"id": "1", "q": "6100c2a0", "b": "aé", "g": "0.5", "n": None}
    assert (update.handle_key, update.old_handle_key) == ('["1"]', '["2"]')
    assert [column.type for column in update.columns] == ["int", "varbinary", "text", "double", "bigint unsigned"]
    assert isinstance(ddl, Ddl)
    assert (ddl.type, ddl.query) == ("3", "CREATE TABLE t (id INT)")
    assert watermark == Resolved(commit_ts=5)
    assert [type(event) for event in batch] == [RowChange, RowChange, Ddl, Resolved]


@pytest.mark.parametrize(
    "p",
    [
        '"t":12,"f":65,"v":"2024-01-01 10:00:00"',
        '"v":{"t":252,"f":0,"v":"Yg=="},"t":12,"f":65,"v":"2024-01-01 10:00:00"',
    ],
)
def test_a_column_may_be_called_as_a_member_of_one_that_lost_its_name(p: str) -> None:
    """wire.md 8.3: ``v`` is a text without flags, and what is left of ``n`` in ``p`` has a member of that name."""
    columns = '"id":{"t":3,"h":true,"f":11,"v":1},"v":{"t":252,"f":0,"v":"YQ=="},"n":{"t":12,"f":65,"v":null}'
    (update,) = decode(written((key(), f'{{"u":{{{columns}}},"p":{{{p}}}}}'.encode())))
    assert isinstance(update, RowChange)
    assert update.after == {"id": "1", "v": "a", "n": None}
    assert (update.before or {}).get("v") == ("b" if "Yg" in p else None)
    assert [column.name for column in update.columns if column.defect == "open-lost-name"] == ["n"]


def u(**changed: Any) -> Pair:
    return written((key(), {"u": cells(**changed)}))


def cell(**members: Any) -> Pair:
    return written((key(), {"u": {"c": members}}))


REFUSED = {
    "a number in place of a cell": (written((key(), {"u": {"id": 1}, "p": {"id": 1}})), "wrong_type"),
    "a text in place of a cell": (written((key(), {"u": {"id": "ab"}, "p": {"id": 1}})), "wrong_type"),
    "null in place of a cell": (written((key(), {"u": {"id": None}, "p": {"t": 1}})), "wrong_type"),
    "no key": ((None, UPDATE[1]), "empty"),
    "empty key": ((b"", b""), "empty"),
    "half a version": ((VERSION[:5], b""), "truncated"),
    "version 2": (((2).to_bytes(8) + framed([b"{}"]), b""), "unknown_version"),
    "null value": ((UPDATE[0], None), "truncated"),
    "watermark without its length": ((WATERMARK[0], b""), "truncated"),
    "length of 2^31": ((UPDATE[0], (1 << 31).to_bytes(8) + b"{}"), "truncated"),
    "length of 2^63": ((UPDATE[0], (1 << 63).to_bytes(8) + b"{}"), "truncated"),
    "length of 2^64 - 1": ((VERSION + b"\xff" * 8 + b"{}", UPDATE[1]), "truncated"),
    "one value too many": ((UPDATE[0], (UPDATE[1] or b"") * 2), "trailing_bytes"),
    "value without a key": ((VERSION, UPDATE[1]), "trailing_bytes"),
    "key is no object": (written((b"[]", ROW)), "wrong_type"),
    "deep key": (written((DEEP, ROW)), "wrong_type"),
    "key with more after it": (written((b'{"ts":1,"t":3} x', b"")), "trailing_bytes"),
    "unknown member of the key": (written((key(x=1), ROW)), "unknown_member"),
    "no ts": (written(({"scm": "d", "tbl": "t", "t": 1}, ROW)), "missing_member"),
    "name twice in the key": (written((b'{"ts":1,"ts":5,"t":3}', b"")), "duplicate_name"),
    "ohk twice": (written((b'{"ts":1,"scm":"d","tbl":"t","t":1,"ohk":true,"ohk":false}', ROW)), "duplicate_name"),
    "key not UTF-8": (written((b'{"ts":1,"scm":"\xe9","tbl":"t","t":1}', ROW)), "bad_json"),
    "t of 4": (written((key(t=4), ROW)), "unknown_type"),
    "row without a table": (written(({"ts": 1, "scm": "d", "t": 1}, ROW)), "missing_member"),
    "row with an empty name": (written((key(tbl=""), ROW)), "missing_member"),
    "negative ts": (written((key(ts=-1), ROW)), "out_of_range"),
    "ts of 2^63": (written((key(ts=2**63), ROW)), "out_of_range"),
    "watermark of 2^64": (written(({"ts": 2**64, "t": 3}, b"")), "out_of_range"),
    "huge ts": (written((key(ts=10**4000), ROW)), "out_of_range"),
    "ts of 1e3": (written((b'{"ts":1e3,"t":3}', b"")), "wrong_type"),
    "ptn of 2^63": (written((key(ptn=2**63), ROW)), "out_of_range"),
    "watermark with a value": (written(({"ts": 5, "t": 3}, b"{}")), "trailing_bytes"),
    "value is no JSON": (written((key(), b"hello")), "bad_json"),
    "value is a list": (written((key(), [])), "wrong_type"),
    "empty row": (written((key(), b"")), "truncated"),
    "deep value": (written((key(), b'{"u":' + DEEP + b"}")), "wrong_type"),
    "deep v": (written((key(), b'{"u":{"c":{"t":5,"f":65,"v":' + DEEP + b"}}}")), "bad_json"),
    "more after the row": (written((key(), json.dumps(ROW).encode() + b"x")), "trailing_bytes"),
    "no image": (written((key(), {})), "wrong_columns"),
    "only p": (written((key(), {"p": cells()})), "wrong_columns"),
    "u and d": (written((key(), {"u": cells(), "d": cells()})), "wrong_type"),
    "null p": (written((key(), {"u": cells(), "p": None})), "wrong_type"),
    "no columns": (written((key(), {"u": {}})), "wrong_columns"),
    "unknown member": (written((key(), ROW | {"x": {}})), "unknown_member"),
    "unknown member of a column": (cell(t=3, f=1, v=1, x=1), "unknown_member"),
    "no f": (cell(t=15, v="YWE="), "missing_member"),
    "no v": (cell(t=3, f=1), "missing_member"),
    "unknown code": (cell(t=99, f=1, v=1), "unknown_type"),
    "flags of 2^63": (cell(t=3, f=2**63, v=1), "out_of_range"),
    "column twice": (written((key(), b'{"u":{"a":{"t":3,"f":1,"v":1},"a":{"t":3,"f":1,"v":2}}}')), "duplicate_name"),
    "v twice": (written((key(), b'{"u":{"a":{"t":3,"f":1,"v":1,"v":2}}}')), "duplicate_name"),
    "u twice": (written((key(), b'{"u":{"a":{"t":3,"f":1,"v":1}},"u":{"a":{"t":3,"f":1,"v":2}}}')), "duplicate_name"),
    "p has more": (written((key(), {"u": cells(), "p": cells() | {"x": CELLS["id"]}})), "wrong_columns"),
    "p of another type": (written((key(), {"u": cells(), "p": {"id": {"t": 8, "f": 11, "v": 1}}})), "wrong_columns"),
    "loose members of no column": (written((key(), {"u": cells(), "p": {"t": 9, "f": 65, "v": 1}})), "wrong_columns"),
    "loose members that are none": (written((key(), {"u": cells(), "p": {"t": 8, "v": 1}})), "wrong_type"),
    "a loose type that is none": (written((key(), {"u": cells(), "p": {"t": "x", "f": 65, "v": 1}})), "wrong_columns"),
    "null in the key": (u(id=None), "bad_value"),
    "null in the key of p": (written((key(), {"u": cells(), "p": cells(id=None)})), "bad_value"),
    "null in the key of d": (written((key(), {"d": cells(id=None)})), "bad_value"),
    "text for a number": (u(id="1"), "wrong_type"),
    "fraction": (u(id=1.5), "wrong_type"),
    "true": (u(id=True), "wrong_type"),
    "number for a text": (u(b=1), "wrong_type"),
    "text for a float": (u(g="1"), "wrong_type"),
    "list for a float": (u(g=[1]), "wrong_type"),
    "true for a float": (u(g=True), "wrong_type"),
    "INT of 2^63": (u(id=2**63), "out_of_range"),
    "2^64": (u(n=2**64), "out_of_range"),
    "a float too large": (written((key(), b'{"u":{"g":{"t":5,"f":65,"v":1e999}}}')), "out_of_range"),
    "no float32": (cell(t=4, f=65, v=1e39), "out_of_range"),
    "a year of five digits": (cell(t=13, f=193, v=12345), "out_of_range"),
    "a value of NULL": (cell(t=6, f=0, v=1), "wrong_type"),
    "no base64": (u(b="*"), "bad_value"),
    "base64 of no UTF-8": (u(b="/w=="), "bad_utf8"),
    "raw bytes": (written((key(), b'{"u":{"c":{"t":15,"f":64,"v":"\xe9"}}}')), "bad_json"),
    "byte that TiCDC replaced": (written((key(), b'{"u":{"c":{"t":15,"f":64,"v":"caf\\ufffd"}}}')), "bad_utf8"),
    "not quoted": (u(q='"'), "bad_value"),
    "unknown escape": (u(q="\\0"), "bad_value"),
    "ASCII as a code point": (u(q="\\u005cn"), "bad_value"),
    "surrogate": (u(q="\\ud800"), "bad_value"),
    "DDL without a type": (written((key(t=2), {"q": ""})), "missing_member"),
    "DDL twice": (written((key(t=2), b'{"q":"","t":1,"t":3}')), "duplicate_name"),
    "DDL of 2^63": (written((key(t=2, ts=2**63), {"q": "", "t": 3})), "out_of_range"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_not_valid_is_refused(name: str) -> None:
    message, reason = REFUSED[name]
    assert failure(message).reason == reason
    # beside rows of the same table too
    before, refused, after = decode(UPDATE, message, UPDATE)
    assert before == after == row(UPDATE)
    assert refused == failure(message)


def test_a_fault_has_its_place_and_names_its_table() -> None:
    bad = written((key(), ROW), (key(), b'{"u":{"c":{"t":15,"f":64,"v":"\xe9"}}}'))
    found = failure(bad)
    assert (found.database, found.table, found.offset) == ("d", "t", (bad[1] or b"").index(b"\xe9"))
    other = written((key(tbl="s"), ROW), (key(), b"{}"))
    assert (failure(other).database, failure(other).table) == (None, None)
    assert failure(written((key(t=2), b"{}"))).table is None


@pytest.mark.parametrize("faults", [({"id": "x"}, {"b": 1}), ({"b": 1}, {"id": "x"})])
def test_of_several_faults_in_a_message_the_first_is_named(faults: tuple[dict[str, Any], ...]) -> None:
    first, second = ((key(), {"u": cells(**fault)}) for fault in faults)
    found = failure(written((key(), ROW), first, second, (key(t=2), {"q": ""})))
    assert found.detail == failure(written(first)).detail != failure(written(second)).detail


def test_message_may_have_no_events() -> None:
    assert decode((VERSION, b""), (VERSION, None)) == []


def test_of_a_message_with_a_fault_nothing_stays() -> None:
    bad = written((key(), ROW), (key(t=2), {"q": "", "t": 3}), (key(), {"u": cells(id="x")}))
    first, fault, last = decode(UPDATE, bad, WATERMARK)
    assert isinstance(fault, Failure)
    assert (first, last) == (row(UPDATE), Resolved(commit_ts=5))


def test_rows_keep_their_order_of_columns_among_rows_of_another() -> None:
    """After ALTER TABLE … FIRST rows from before it may come again, between those from after it."""
    images = ({"u": dict(reversed(CELLS.items()))}, {"u": CELLS}, {"u": dict(reversed(CELLS.items()))})
    messages = [written((key(ts=COMMIT_TS + ts), image)) for ts, image in zip((1, 0, 2), images, strict=True)]
    assert decode(messages[0], *messages) == [row(message) for message in (messages[0], *messages)]


@pytest.mark.parametrize("ptn", [{}, {"ptn": 7}])
def test_false_h_names_no_key(ptn: dict[str, int]) -> None:
    """``h`` alone names the key of a partition, whose flags may be stale (wire.md 8.4)."""
    no_key = written((key(**ptn), {"u": CELLS | {"id": CELLS["id"] | {"h": False, "f": 1}}}))
    with_key = written((key(**ptn), {"u": CELLS | {"id": CELLS["id"] | {"f": 1 if ptn else 11}}}))
    keys = [row(message).handle_key for message in (with_key, no_key)]
    assert keys == ['["1"]', None]
    for messages in ([with_key, no_key, with_key], [no_key, with_key, no_key]):
        assert decode(*messages) == [row(message) for message in messages]
