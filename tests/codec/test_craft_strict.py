"""Craft bytes that are wrong: one clean error each, whatever is cut, added or changed."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vectors import cases
from well_typed import handle_key_text

from ticdc_codec.craft import encode
from ticdc_codec.event import Column, Ddl, Event, Failure, Op, Resolved, RowChange, events_of
from ticdc_codec.number import delta_varints, uvarint, varint
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder

OPTIONS = sink_options("craft", {"craft-float": "trust"})


def decode(*values: bytes | None) -> list[tuple[int, Event]]:
    return list(events_of(Decoder("craft", OPTIONS).decode([None] * len(values), values)))


def failure(value: bytes | None) -> Failure:
    ((_, event),) = decode(value)
    assert isinstance(event, Failure), event
    return event


def message(
    *,
    commit_ts: bytes = b"\x05",
    header: bytes = b"\x01\x01\x00\x02",
    bodies: tuple[bytes, ...] = (bytes.fromhex("01 01 04 03 00 02 02"),),
    dictionary: bytes = b"\x03\x01\x01\x01dtc",
    groups: tuple[tuple[int, ...], ...] | None = None,
    version: bytes = b"\x01",
    after: bytes = b"",
) -> bytes:
    """A message of one event (an insert into d.t of c = 1) but for the parts given."""
    groups = tuple((len(body),) for body in bodies) if groups is None else groups
    head = commit_ts + header
    tables = [(len(head), len(dictionary)), [len(body) for body in bodies], *groups]
    sizes = b"".join(uvarint(len(table)) + delta_varints(table) for table in tables) + after
    return version + head + b"".join(bodies) + dictionary + sizes + uvarint(len(sizes))[::-1]


def test_the_message_that_is_changed_is_valid() -> None:
    ((_, row),) = decode(message())
    assert isinstance(row, RowChange)
    assert (row.op, row.database, row.table, row.commit_ts, row.after) == (Op.INSERT, "d", "t", 5, {"c": "1"})


WRONG = {
    "version 0": (message(version=b"\x00"), "unknown_version"),
    "version 2": (message(version=b"\x02"), "unknown_version"),
    "event type 4": (message(header=b"\x04\x01\x00\x02"), "out_of_range"),
    "partition -2": (message(header=b"\x01\x03\x00\x02"), "out_of_range"),
    "database id past the dictionary": (message(header=b"\x01\x01\x06\x02"), "out_of_range"),
    "table id past the dictionary": (message(header=b"\x01\x01\x00\x06"), "out_of_range"),
    "a row without a table": (message(header=b"\x01\x01\x00\x01"), "out_of_range"),
    "a header number too many": (message(header=b"\x01\x01\x00\x02\x00"), "bad_size"),
    "a header number too few": (message(header=b"\x01\x01\x00"), "bad_size"),
    "commit_ts of 65 bits": (message(commit_ts=b"\xff" * 9 + b"\x02"), "out_of_range"),
    "commit_ts of 11 bytes": (message(commit_ts=b"\x80" * 10 + b"\x00"), "out_of_range"),
    "commit_ts above a TSO": (message(commit_ts=b"\xff" * 9 + b"\x01"), "out_of_range"),
    "column id past the dictionary": (message(bodies=(bytes.fromhex("01 01 06 03 00 02 02"),)), "out_of_range"),
    "column id -1": (message(bodies=(bytes.fromhex("01 01 01 03 00 02 02"),)), "out_of_range"),
    "flags of 2^63": (
        message(bodies=(bytes.fromhex("01 01 04 03") + uvarint(1 << 63) + bytes.fromhex("02 02"),)),
        "out_of_range",
    ),
    "unknown column type": (message(bodies=(bytes.fromhex("01 01 04 11 00 02 02"),)), "unknown_type"),
    "no columns": (message(bodies=(b"\x01\x00",)), "out_of_range"),
    "2^31 columns": (message(bodies=(b"\x01" + uvarint(1 << 31) + b"\x00\x00\x00\x00",)), "out_of_range"),
    "a column twice": (message(bodies=(bytes.fromhex("01 02 04 00 03 03 00 00 02 02 02 02"),)), "duplicate_column"),
    "group type 3": (message(bodies=(bytes.fromhex("03 01 04 03 00 02 02"),)), "bad_group"),
    "Old before New": (
        message(bodies=(bytes.fromhex("02 01 04 03 00 02 02 01 01 04 03 00 02 02"),), groups=((7, 7),)),
        "bad_group",
    ),
    "a half of the key in Old": (
        message(
            bodies=(bytes.fromhex("01 02 04 02 03 03 02 02 02 02 02 02 02 01 04 03 02 02 04"),),
            dictionary=b"\x04\x01\x01\x01\x01dtce",
            groups=((12, 7),),
        ),
        "bad_group",
    ),
    "three groups": (message(bodies=(bytes.fromhex("01 01 04 03 00 02 02") * 3,), groups=((7, 7, 7),)), "bad_size"),
    "groups shorter than the body": (message(groups=((6,),)), "bad_size"),
    "groups longer than the body": (message(groups=((8,),)), "bad_size"),
    "an empty group": (message(groups=((7, 0),)), "bad_size"),
    "a byte after the values": (message(bodies=(bytes.fromhex("01 01 04 03 00 02 02 00"),)), "trailing_bytes"),
    "a byte after the number": (message(bodies=(bytes.fromhex("01 01 04 03 00 04 02 02"),)), "bad_value"),
    "values too short": (message(bodies=(bytes.fromhex("01 01 04 03 00 04 02"),)), "truncated"),
    "a length of -2": (message(bodies=(bytes.fromhex("01 01 04 03 00 03 02"),)), "out_of_range"),
    "a length above 2^31": (
        message(bodies=(bytes.fromhex("01 01 04 03 00") + varint(1 << 31) + b"\x02",)),
        "out_of_range",
    ),
    "no lengths": (message(bodies=(bytes.fromhex("01 01 04 03 80"),)), "out_of_range"),
    "an endless length": (message(bodies=(bytes.fromhex("01 01 04 03 00 82"),)), "truncated"),
    "an endless number": (message(bodies=(bytes.fromhex("01 01 04 03 00 02 82"),)), "bad_value"),
    "an empty number": (message(bodies=(bytes.fromhex("01 01 04 03 00 00"),)), "bad_value"),
    "a number of 65 bits": (message(bodies=(bytes.fromhex("01 01 04 08 00 14") + b"\xff" * 9 + b"\x02",)), "bad_value"),
    "a double of 4 bytes": (message(bodies=(bytes.fromhex("01 01 04 05 00 08 00 00 00 00"),)), "bad_value"),
    "NaN": (message(bodies=(bytes.fromhex("01 01 04 05 00 10 00 00 00 00 00 00 f8 7f"),)), "bad_value"),
    "infinity": (message(bodies=(bytes.fromhex("01 01 04 04 00 10 00 00 00 00 00 00 f0 ff"),)), "bad_value"),
    "a year of five digits": (message(bodies=(bytes.fromhex("01 01 04 0d 80 01 06 a0 9c 01"),)), "bad_value"),
    "a negative year": (message(bodies=(bytes.fromhex("01 01 04 0d 80 01 02 01"),)), "bad_value"),
    "text that is no UTF-8": (message(bodies=(bytes.fromhex("01 01 04 0f 00 02 ff"),)), "bad_value"),
    "a null that has bytes": (message(bodies=(bytes.fromhex("01 01 04 06 00 02 02"),)), "bad_value"),
    "a name that is no UTF-8": (message(dictionary=b"\x03\x01\x01\x01dt\xff"), "bad_utf8"),
    "a byte after the dictionary": (message(dictionary=b"\x03\x01\x01\x01dtc!"), "trailing_bytes"),
    "a dictionary too short": (message(dictionary=b"\x03\x01\x01\x02dtc"), "truncated"),
    "2^31 terms": (message(dictionary=uvarint(1 << 31) + b"\x01dtc"), "out_of_range"),
    "no dictionary": (message(dictionary=b""), "out_of_range"),
    "a number after the size tables": (message(after=b"\x00"), "trailing_bytes"),
    "a DDL of a table of groups": (message(header=b"\x02\x01\x00\x02", bodies=(b"\x03\x01x",)), "trailing_bytes"),
    "a query too short": (message(header=b"\x02\x01\x00\x02", bodies=(b"\x03\x02x",), groups=()), "truncated"),
    "a byte after the query": (
        message(header=b"\x02\x01\x00\x02", bodies=(b"\x03\x01xy",), groups=()),
        "trailing_bytes",
    ),
    "a query that is no UTF-8": (message(header=b"\x02\x01\x00\x02", bodies=(b"\x03\x01\xff",), groups=()), "bad_utf8"),
    "a watermark with a body": (message(header=b"\x03\x01\x01\x01", bodies=(b"\x00",), groups=()), "trailing_bytes"),
    "no bytes": (b"", "truncated"),
    "no value": (None, "truncated"),
    "one byte": (b"\x01", "out_of_range"),
    "2^31 events in 20 bytes": (
        b"\x01\x05\x01\x01\x00\x02" + (t := b"\x02\x0a\x00" + uvarint(1 << 31) + b"\x00") + bytes([len(t)]),
        "bad_size",
    ),
}


@pytest.mark.parametrize(("value", "reason"), WRONG.values(), ids=WRONG)
def test_a_message_that_is_not_valid_is_refused(value: bytes | None, reason: str) -> None:
    found = failure(value)
    assert found.reason == reason
    assert found.offset is not None
    assert 0 <= found.offset <= len(value or b"")


def test_the_table_is_named_where_it_is_the_only_one() -> None:
    for name in ("column id -1", "an empty number", "groups shorter than the body", "values too short"):
        found = failure(WRONG[name][0])
        assert (found.database, found.table) == ("d", "t")
    assert failure(WRONG["a query too short"][0]).table is None


def test_events_of_several_kinds_in_one_message_keep_their_order() -> None:
    row, ddl = bytes.fromhex("01 01 04 03 00 02 02"), b"\x03\x01x"
    mixed = message(
        commit_ts=b"\x05\x01\x01\x01\x01",
        header=bytes.fromhex("02 01 03 01 02  01 00 00 00 00  00 00 00 00 00  02 00 00 00 00"),
        bodies=(ddl, row, b"", row, ddl),
        groups=((7,), (7,)),
    )
    wanted = [Ddl, RowChange, Resolved, RowChange, Ddl]
    for values in ([mixed], [b"", mixed, message(), b"\x01", mixed, message(version=b"\x02")]):
        batch = Decoder("craft", OPTIONS).decode([None] * len(values), values)
        found = [(number, type(event), event) for number, event in events_of(batch)]
        for number, value in enumerate(values):
            kinds = [kind for place, kind, _ in found if place == number]
            assert kinds == (wanted if value is mixed else [RowChange] if value == message() else [Failure])
            if value is mixed:
                assert [event.commit_ts for place, _, event in found if place == number] == [5, 6, 7, 8, 9]
        for place, index in zip(batch["message"].to_pylist(), batch["index"].to_pylist(), strict=True):
            assert index < (5 if values[place] is mixed else 1)


def test_no_messages_give_no_events() -> None:
    assert decode() == []


@pytest.mark.parametrize("above", [b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01"])
def test_only_a_watermark_may_have_64_bits(above: bytes) -> None:
    number = (1 << 63) if above[0] == 0x80 else (1 << 64) - 1
    ((_, event),) = decode(message(commit_ts=above, header=b"\x03\x01\x01\x01", bodies=(b"",), groups=()))
    assert event == Resolved(commit_ts=number)
    for header, body in (
        (b"\x01\x01\x00\x02", bytes.fromhex("01 01 04 03 00 02 02")),
        (b"\x02\x01\x00\x02", b"\x03\x01x"),
    ):
        groups = ((len(body),),) if header[0] == 1 else ()
        assert failure(message(commit_ts=above, header=header, bodies=(body,), groups=groups)).reason == "out_of_range"


def test_batch_is_decoded_as_its_messages_one_by_one() -> None:
    """A message's neighbours begin as it does, so that heads of column groups are compared many at a time."""
    (value,) = next(case for case in cases("tiflow-craft") if "benchmark" in case.name).values
    assert value is not None
    changed = [value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in range(0, len(value), 2)]
    assert decode(*changed) == [(number, event) for number, each in enumerate(changed) for _, event in decode(each)]


INTEGERS = {"tinyint": 7, "smallint": 15, "mediumint": 23, "int": 31, "bigint": 63}
TEXT = st.text(max_size=12)


def values_of(kind: str) -> st.SearchStrategy[str]:
    name, _, unsigned = kind.partition(" ")
    if name in INTEGERS:
        bits = INTEGERS[name]
        least, most = (0, (2 << bits) - 1) if unsigned else (-(1 << bits), (1 << bits) - 1)
        return st.integers(least, most).map(str)
    if name in ("varbinary", "blob"):
        return st.binary(max_size=12).map(bytes.hex)
    if name in ("bit", "enum", "set"):
        return st.integers(0, (1 << 64) - 1).map(str)
    if name == "year":
        return st.integers(0, 9999).map("{:04d}".format)
    return TEXT


KINDS = [*INTEGERS, *(f"{name} unsigned" for name in INTEGERS), "varbinary", "blob", "bit", "enum", "set", "year"]
KINDS += ["varchar", "text", "char", "json", "decimal", "datetime", "vector"]


@st.composite
def rows(draw: st.DrawFn) -> RowChange:
    names = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    columns = []
    for name in names:
        kind, key = draw(st.sampled_from(KINDS)), draw(st.booleans())
        flags = 0x02 * key | 0x80 * ("unsigned" in kind) | (kind in ("varbinary", "blob"))
        by = "index" if kind in ("enum", "set") else None
        columns.append(Column(name=name, type=kind, key=key, flags=flags, by=by))
    image = st.fixed_dictionaries({c.name: st.none() | values_of(c.type) for c in columns})
    op = draw(st.sampled_from(Op))
    before = None if op is Op.INSERT else draw(image)
    after = None if op is Op.DELETE else draw(image)
    new, old = (_key(columns, x) for x in (before if after is None else after, before))
    commit_ts = draw(st.integers(0, (1 << 63) - 1))
    return RowChange(
        op=op,
        database=draw(TEXT),
        table=draw(TEXT),
        commit_ts=commit_ts,
        commit_ms=commit_ts >> 18,
        before=before,
        after=after,
        columns=tuple(columns),
        handle_key=new,
        old_handle_key=old if op is Op.UPDATE and old != new else None,
        table_id=draw(st.none() | st.integers(0, (1 << 63) - 1)),
    )


def _key(columns: list[Column], image: dict[str, str | None] | None) -> str | None:
    keys = [column.name for column in columns if column.key]
    return handle_key_text({name: image[name] for name in keys}) if keys and image is not None else None


# The machine may be slow; what is tested is not.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(rows(), max_size=8))
def test_what_is_encoded_decodes_again(events: list[RowChange]) -> None:
    messages = encode(events, sink_options("craft", {"max-batch-size": 3}))
    assert len(messages) == -(-len(events) // 3)
    assert [event for _, event in decode(*(message.value for message in messages))] == events


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back_as_the_same_numbers(double: float, single: float) -> None:
    body = bytes.fromhex("01 02 04 01 05 04 00 00 10 10") + struct.pack("<dd", double, single)
    ((_, row),) = decode(message(bodies=(body,)))
    assert isinstance(row, RowChange)
    assert row.after is not None
    wide, narrow = row.after["c"], row.after["t"]
    assert wide is not None
    assert narrow is not None
    assert struct.pack("<d", float(wide)) == struct.pack("<d", double)
    assert struct.pack("<f", float(narrow)) == struct.pack("<f", single)
    assert wide == plain(repr(double))


@pytest.mark.parametrize("text", ["9.7e-280", "3.5e+38", "3.1400001049161634", "5.06e-321", "1e-45", "3.4028235e+38"])
def test_a_float_that_8_2_has_spoilt_is_written_as_it_was(text: str) -> None:
    body = bytes.fromhex("01 01 04 04 00 10") + struct.pack("<d", float(text))
    ((_, row),) = decode(message(bodies=(body,)))
    assert isinstance(row, RowChange)
    assert row.after == {"c": text}
    assert decode(*(message.value for message in encode([row], OPTIONS))) == [(0, row)]


@pytest.mark.parametrize(
    ("option", "found"),
    [({}, "0xfff0000012345678"), ({"craft-float": "null"}, None), ({"craft-float": "trust"}, Failure)],
)
def test_a_float_that_8_2_has_made_no_number_spoils_no_other_row(option: dict[str, str], found: object) -> None:
    """wire.md 8.1: the next value's bytes are its exponent. The message may hold rows of other tables."""
    spoilt = bytes.fromhex("01 02 04 01 04 04 00 00 10 10 00000000a01f0040 785634120000f0ff")
    batch = Decoder("craft", sink_options("craft", option)).decode([None], [message(bodies=(spoilt,))])
    ((_, event),) = events_of(batch)
    if found is Failure:
        assert isinstance(event, Failure)
    else:
        assert isinstance(event, RowChange)
        assert event.after is not None
        assert event.after["t"] == found
        assert {column.defect for column in event.columns} == ({None} if option else {"craft-float"})


def plain(text: str) -> str:
    """What ``event`` says of a double's text, from Python's own."""
    number = Decimal(text)
    if number == 0 or Decimal("1e-6") <= abs(number) < Decimal("1e21"):
        text = format(number, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (-0.0, "-0"), (1e-6, "0.000001"), (1e-7, "1e-07"), (1.5e-7, "1.5e-07"), (1e20, "1" + "0" * 20),
     (1e21, "1e+21"), (1.5e300, "1.5e+300"), (1e16, "1" + "0" * 16), (123456.75, "123456.75"), (5e-324, "5e-324")],
)  # fmt: skip
def test_doubles_have_the_text_that_mysql_prints(number: float, text: str) -> None:
    ((_, row),) = decode(message(bodies=(bytes.fromhex("01 01 04 05 00 10") + struct.pack("<d", number),)))
    assert isinstance(row, RowChange)
    assert row.after == {"c": text}
