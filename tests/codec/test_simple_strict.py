"""Simple that is not as TiCDC writes it: a DecodeError with the right reason, or a well-typed event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import cases

from ticdc_lakehouse.codec import Decoder
from ticdc_lakehouse.codec.compression import compress
from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.number import varint
from ticdc_lakehouse.codec.options import Compression, sink_options
from ticdc_lakehouse.codec.simple import encode
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange, events_of

COMMIT_TS, VERSION = 470613139966656514, 470613139952238593
DEEP = b"[" * 100_000 + b"]" * 100_000
AVRO = {"encoding-format": "avro"}
ZONE = {"time-zone": "Asia/Shanghai"}
COLUMNS = tuple(
    Column(name=name, type=kind, key=name == "id", by="index" if kind.startswith(("enum", "set")) else None)
    for name, kind in {
        "id": "int(11)", "b": "varbinary(8)", "f": "double", "y": "year(4)", "t": "timestamp", "e": "enum('a','b')",
        "u": "bigint(20) unsigned", "s": "varchar(9)",
    }.items()
)  # fmt: skip
KNOWN = {("d", "t", VERSION): COLUMNS}
DATA: dict[str, Any] = {
    "id": "1", "b": "/w==", "f": "0.5", "y": "0", "t": {"location": "Asia/Shanghai", "value": "2024-01-01 00:00:00"},
    "e": "2", "u": "18446744073709551615", "s": "é",
}  # fmt: skip
AFTER = {"id": "1", "b": "ff", "f": "0.5", "y": "0000", "t": "2024-01-01 00:00:00", "e": "2",
         "u": "18446744073709551615", "s": "é"}  # fmt: skip


def decode(*values: bytes | None, known: Known | None = None, **options: object) -> list[Event]:
    given_options = ZONE | {name.replace("_", "-"): value for name, value in options.items()}
    decoder = Decoder("simple", sink_options("simple", given_options), known or Known(schemas=KNOWN))
    batch = decoder.decode([None] * len(values), values)
    batch.validate(full=True)
    return [event for _, event in events_of(batch)]


def failure(value: bytes | None, **options: Any) -> Failure:
    (event,) = decode(value, **options)
    assert isinstance(event, Failure), event
    return event


def row(value: bytes, **options: Any) -> RowChange:
    (event,) = decode(value, **options)
    assert isinstance(event, RowChange), event
    return event


def message(**members: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "version": 1, "database": "d", "table": "t", "tableID": 7, "type": "UPDATE", "commitTs": COMMIT_TS,
        "buildTs": 1795246658001, "schemaVersion": VERSION, "data": DATA, "old": DATA,
    }  # fmt: skip
    return {name: value for name, value in (whole | members).items() if value is not ...}


def written(**members: Any) -> bytes:
    return json.dumps(message(**members), ensure_ascii=False, separators=(",", ":")).encode()


def with_data(**values: Any) -> bytes:
    return written(data=DATA | values)


UPDATE = written()
SCHEMA = {
    "schema": "d", "table": "n", "tableID": 7, "version": VERSION,
    "columns": [
        {"name": "id", "dataType": {"mysqlType": "int", "charset": "binary", "collate": "binary", "length": 11},
         "nullable": False, "default": None},
        {"name": "e", "dataType": {"mysqlType": "enum", "charset": "utf8mb4", "collate": "utf8mb4_bin",
                                   "elements": ["a'b", "c\\d"]}, "nullable": True, "default": "x"},
    ],
    "indexes": [{"name": "k", "unique": True, "primary": False, "nullable": False, "columns": ["id"]}],
}  # fmt: skip
BARE = dict.fromkeys(("database", "table", "tableID", "schemaVersion", "data", "old"), ...)
BOOTSTRAP = written(**BARE, type="BOOTSTRAP", commitTs=0, tableSchema=SCHEMA)
DDL = written(**BARE, type="ALTER", sql="ALTER TABLE n", tableSchema=SCHEMA, preTableSchema=SCHEMA)
WATERMARK = written(**BARE, type="WATERMARK", commitTs=5)
VALID = (UPDATE, BOOTSTRAP, DDL, WATERMARK)
AVRO_VALID = tuple(
    value.value or b"" for value in encode(decode(*VALID), sink_options("simple", AVRO | ZONE))
)  # fmt: skip
BOTH = [*[(value, "json") for value in VALID], *[(value, "avro") for value in AVRO_VALID]]


@pytest.mark.parametrize(("values", "encoding"), [(VALID, "json"), (AVRO_VALID, "avro")])
def test_the_messages_here_are_valid(values: tuple[bytes, ...], encoding: str) -> None:
    update, schema, ddl, watermark = decode(*values, encoding_format=encoding)
    assert isinstance(update, RowChange)
    assert (update.before, update.after, update.handle_key, update.table_id) == (AFTER, AFTER, '["1"]', 7)
    assert isinstance(schema, Bootstrap)
    types = [(column.name, column.type, column.key) for column in schema.columns]
    assert types == [("id", "int(11)", True), ("e", "enum('a''b','c\\\\d')", False)]
    assert isinstance(ddl, Ddl)
    assert (ddl.type, ddl.columns, ddl.schema_version) == ("ALTER", schema.columns, VERSION)
    assert watermark == Resolved(commit_ts=5)


REFUSED = {
    "no bytes": (b"", "empty"),
    "null value": (None, "empty"),
    "no object": (b"[]", "wrong_type"),
    "text": (b"hello", "bad_json"),
    "Avro": (AVRO_VALID[0], "bad_json"),
    "deep": (DEEP, "wrong_type"),
    "deep member": (UPDATE.replace(b'"f":"0.5"', b'"f":' + DEEP), "bad_json"),
    "not UTF-8": (UPDATE.replace("é".encode(), b"\xe9"), "bad_json"),
    "surrogate": (UPDATE.replace("é".encode(), b"\\ud800"), "bad_json"),
    "left over": (UPDATE + b"x", "trailing_bytes"),
    "two messages": (UPDATE + UPDATE, "trailing_bytes"),
    "version 2": (written(version=2), "unknown_version"),
    "unknown type": (written(type="UPSERT"), "unknown_type"),
    "lower case": (written(type="update"), "unknown_type"),
    "negative": (written(commitTs=-1), "out_of_range"),
    "2^63": (written(commitTs=2**63), "out_of_range"),
    "huge": (written(commitTs=10**4000), "out_of_range"),
    "table id": (written(tableID=2**63), "out_of_range"),
    "unknown member": (written(gtid=""), "unknown_member"),
    "sql in a row": (written(sql=""), "unknown_member"),
    "schema in a row": (written(tableSchema=SCHEMA), "unknown_member"),
    "no data": (written(data=...), "missing_member"),
    "null data": (written(data=None), "wrong_type"),
    "no old": (written(old=...), "missing_member"),
    "old in an insert": (written(type="INSERT"), "wrong_type"),
    "data in a delete": (written(type="DELETE"), "wrong_type"),
    "no version": (written(schemaVersion=...), "missing_member"),
    "no table": (written(table=...), "missing_member"),
    "number": (with_data(y=0), "wrong_type"),
    "text for a timestamp": (with_data(t="2024-01-01 00:00:00"), "wrong_type"),
    "timestamp for a text": (with_data(s=DATA["t"]), "wrong_type"),
    "column too many": (with_data(x="1"), "wrong_columns"),
    "key is missing": (written(data={"b": None}, old={"b": None}), "wrong_columns"),
    "old has fewer": (written(old={"id": "1"}), "wrong_columns"),
    "no base64": (with_data(b="/w="), "bad_value"),
    "no number": (with_data(f="NaN"), "bad_value"),
    "no year": (with_data(y="19x9"), "bad_value"),
    "no element": (with_data(e="c"), "bad_value"),
    "no zone": (with_data(t={"location": "Local", "value": "2024-01-01 00:00:00"}), "bad_value"),
    "no time": (with_data(t={"location": "UTC", "value": "2024-01-32 00:00:00"}), "bad_value"),
    "a path as zone": (with_data(t={"location": "../etc/passwd", "value": "2024-01-01 00:00:00"}), "bad_value"),
    "hour that comes twice": (with_data(t={"location": "Europe/Berlin", "value": "2024-10-27 02:30:00"}), "bad_value"),
    "hour that never comes": (with_data(t={"location": "Europe/Berlin", "value": "2024-03-31 02:30:00"}), "bad_value"),
    "other version": (written(schemaVersion=VERSION + 1), "schema_missing"),
    "other table": (written(table="x"), "schema_missing"),
    "watermark of a table": (written(type="WATERMARK", data=..., old=...), "unknown_member"),
    "bootstrap without": (written(**BARE, type="BOOTSTRAP"), "missing_member"),
    "DDL without SQL": (written(**BARE, type="ALTER"), "missing_member"),
    "column twice": (BOOTSTRAP.replace(b'"name":"e"', b'"name":"id"'), "duplicate_column"),
    "key of no column": (BOOTSTRAP.replace(b'["id"]', b'["x"]'), "wrong_columns"),
    "no TSO": (BOOTSTRAP.replace(str(VERSION).encode(), b"-1"), "out_of_range"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Alone, and after a message of the same table was read."""
    value, reason = REFUSED[name]
    assert failure(value).reason == reason
    last = decode(UPDATE, value)[-1]
    assert isinstance(last, Failure)
    assert last.reason == reason


@pytest.mark.parametrize("change", [(b'"tableID":', b'"tableID":1,"tableID":'), (b'"data":{', b'"data":{"f":null,'),
                                    (b'"data":{', b'"data":{"\\u0066":"2",'), (b'"old":{', b'"old":{"s":"\\"\\\\",'),
                                    (b'"location":', b'"location":"UTC","location":')])  # fmt: skip
@pytest.mark.parametrize("known", [False, True])
def test_a_name_twice_is_refused(change: tuple[bytes, bytes], known: bool) -> None:
    doubled = UPDATE.replace(*change)
    last = decode(*([UPDATE] if known else []), doubled)[-1]
    assert isinstance(last, Failure)
    assert last.reason == "duplicate_name"


@pytest.mark.parametrize("value", [BOOTSTRAP, DDL, WATERMARK])
def test_a_name_twice_is_refused_outside_of_rows(value: bytes) -> None:
    assert failure(value.replace(b'"commitTs":', b'"commitTs":1,"commitTs":')).reason == "duplicate_name"


def test_a_fault_in_a_row_names_its_table() -> None:
    for value, encoding in ((UPDATE.replace(b'"0.5"', b"5"), "json"), (AVRO_VALID[0] + b"x", "avro")):
        found = failure(value, encoding_format=encoding)
        assert (found.database, found.table) == ("d", "t")
    assert failure(DDL + b"x").table is None


def test_times_of_another_zone() -> None:
    berlin = with_data(t={"location": "Europe/Berlin", "value": "2024-10-27 01:59:59.5"})
    after = row(berlin).after
    assert after is not None
    assert after["t"] == "2024-10-27 07:59:59.5"
    zero = row(with_data(t={"location": "UTC", "value": "0000-00-00 00:00:00"})).after
    assert zero is not None
    assert zero["t"] == "0000-00-00 00:00:00"


def test_names_of_an_enum_are_numbers_here() -> None:
    assert [row(with_data(e=text)).after["e"] for text in ("b", "a", "", "1")] == ["2", "1", "0", "1"]  # type: ignore[index]


ODD_NAMES = ['a"b', "a\\", "\n", "<&>", "名", "", "\x01"]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_any_column_name(encoding: str) -> None:
    texts: dict[str, str | None] = {name: f'{name}":' for name in ODD_NAMES}
    columns = tuple(Column(name=name, type="varchar(9)", key=name < "a") for name in ODD_NAMES)
    event = RowChange(op=Op.INSERT, database="d", table="o", commit_ts=COMMIT_TS, commit_ms=0, before=None, after=texts,
                      columns=columns)  # fmt: skip
    values = [m.value for m in encode([event, event], sink_options("simple", {"encoding-format": encoding}))]
    events = decode(*values, encoding_format=encoding)
    assert [e.after for e in events if isinstance(e, RowChange)] == [texts, texts]


def checked(value: bytes, change: tuple[bytes, bytes], **options: Any) -> Event:
    return decode(value.replace(*change), known=Known(schemas=SUMMED_SCHEMAS), **options)[0]


SUMMED = next(case for case in cases("ticdc-simple-json-checksum") if case.name == "defaults.update.to_null")
SUMMED_SCHEMAS = {
    (event.database, event.table, event.schema_version or 0): event.columns
    for event in decode(*SUMMED.values) if isinstance(event, Bootstrap)
}  # fmt: skip


def test_checksums() -> None:
    value = SUMMED.values[-1] or b""
    sums = json.loads(value)["checksum"]
    assert isinstance(checked(value, (b"", b"")), RowChange)
    for name, change in (("current", b'"data"'), ("previous", b'"old"')):
        wrong = (f'"{name}":{sums[name]}'.encode(), f'"{name}":4711'.encode())
        found = checked(value, wrong)
        assert isinstance(found, Failure), change
        assert found.reason == "checksum_mismatch"
        assert "4711" in found.detail
        assert str(sums[name]) in found.detail
        assert isinstance(checked(value, wrong, corruption_handle_level="warn"), RowChange)
    corrupted = checked(value, (b'"corrupted":false', b'"corrupted":true'))
    assert isinstance(corrupted, Failure)
    assert corrupted.reason == "checksum_mismatch"


HOSTILE = {
    "name of 2^31": varint(2**31 - 1), "name of 2^63": varint(2**63 - 1), "negative size": varint(-1),
    "no end": b"\xff" * 9, "65 bits": b"\xff" * 9 + b"\x02", "endless": b"\xff" * 20,
}  # fmt: skip
PREFIX = bytes.fromhex("16060602") + b"\x02d\x02t\x0e\x00" + varint(COMMIT_TS) + b"\x02" + varint(VERSION) + b"\0\0\0"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", [PREFIX[:4], PREFIX + b"\x02", PREFIX + b"\x02\x02", PREFIX + b"\x02\x02\x02s\x08",
                                   b"\x16\x04\x04\x02\x00", b"\x16\x02\x02\x02\x02\x02d\x02t\x02\x02"])  # fmt: skip
def test_sizes_that_no_message_has(name: str, place: bytes) -> None:
    assert failure(place + HOSTILE[name], encoding_format="avro").reason in ("truncated", "out_of_range")


def test_blocks() -> None:
    """Several blocks, and counts below zero with the size of the block."""
    rest = b"\0\0"
    one, two = b"\x04id\x02\x02", b"\x02s\x08\x02x"
    plain = PREFIX + b"\x02\x04" + one + two + rest
    expected = row(plain, encoding_format="avro")
    assert expected.after == {"id": "1", "s": "x"}
    sized = PREFIX + b"\x02" + varint(-1) + varint(len(one)) + one + varint(-1) + varint(len(two)) + two + rest
    assert row(PREFIX + b"\x02\x02" + two + b"\x02" + one + rest, encoding_format="avro") == expected
    assert row(sized, encoding_format="avro") == expected
    wrong = PREFIX + b"\x02" + varint(-1) + varint(len(one) + 1) + one + rest
    assert failure(wrong, encoding_format="avro").reason == "wrong_type"
    twice, keyless = PREFIX + b"\x02\x04" + one + one + rest, PREFIX + b"\x02\x02" + two + rest
    bad, worse, good = decode(twice, keyless, plain, encoding_format="avro")
    assert isinstance(bad, Failure)
    assert isinstance(worse, Failure)
    assert (bad.reason, worse.reason, good) == ("duplicate_name", "wrong_columns", expected)


PLACE = "file:///claim-check"


@pytest.mark.parametrize("file", ["ticdc-simple-json-claim-check", "ticdc-simple-avro-claim-check"])
def test_claim_check_objects_that_are_not_right(file: str) -> None:
    case = next(case for case in cases(file) if case.name == "large.insert")
    ((name, text),) = case.content["claim_check"].items()
    content = base64.b64decode(text)
    other = base64.b64encode(case.values[0] or b"").decode()

    def claimed(stored: dict[str, bytes], **options: object) -> Event:
        encoding = "avro" if "avro" in file else "json"
        known = Known(objects={f"{PLACE}/{at}": value for at, value in stored.items()})
        return decode(*case.values, known=known, encoding_format=encoding, **options)[-1]

    def reason(content: bytes | None, **options: object) -> str:
        found = claimed({} if content is None else {name: content}, **options)
        assert isinstance(found, Failure)
        assert (found.database, found.table) == ("vec", "large")
        return found.reason

    assert isinstance(claimed({name: content}), RowChange)
    assert reason(None) == "claim_check_missing"
    assert reason(content[:-1]) == "truncated"
    assert reason(b'{"key":null,"value":"*"}') == "bad_value"
    assert reason(content, claim_check_raw_value=True) in ("missing_member", "unknown_member", "claim_check_mismatch")
    assert reason(json.dumps({"key": None, "value": other}).encode()) == "claim_check_mismatch"


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.SNAPPY])
def test_compression(compression: Compression) -> None:
    assert decode(compress(UPDATE, compression), large_message_handle_compression=compression) == decode(UPDATE)
    assert failure(UPDATE, large_message_handle_compression=compression).reason in ("bad_compression", "too_large")


@pytest.mark.parametrize(("value", "encoding"), BOTH)
def test_every_truncation_and_what_is_left(value: bytes, encoding: str) -> None:
    for event in decode(*[value[:size] for size in range(len(value))], value + b"\0", encoding_format=encoding):
        assert isinstance(event, Failure)


@pytest.mark.parametrize(("value", "encoding"), BOTH)
def test_any_byte_may_be_any_other(value: bytes, encoding: str) -> None:
    """Alone and together with others it is the same error or event."""
    octets = (0, 1, 2, 3, 0x0C, 0x22, 0x5B, 0x7F, 0x80, 0xFE, 0xFF)
    changed = [value[:at] + bytes([octet]) + value[at + 1 :] for at in range(len(value)) for octet in octets]
    together = decode(*changed, encoding_format=encoding, known=Known(schemas=KNOWN))
    assert len(together) == len(changed)
    for one, event in [*zip(changed, together, strict=True)][::97]:
        if not isinstance(event, RowChange | Failure):
            continue
        assert decode(one, encoding_format=encoding) == [event]


WRONG: tuple[Any, ...] = (None, 0, -1, 2**63, 2**64, 1.5, True, "", "x", "\0", [], [[]], ["id"], {}, {"id": None})


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for name, member in inner for place in places(member, (*path, name))]]


def replaced(value: bytes, path: tuple[Any, ...], text: str) -> bytes:
    """The message with the member at ``path`` written as ``text``."""
    whole = holder = {"": json.loads(value)}
    for name in ("", *path)[:-1]:
        holder = holder[name]
    holder[("", *path)[-1]] = "@@@"
    return json.dumps(whole[""]).replace('"@@@"', text).encode()


@pytest.mark.parametrize("value", VALID)
def test_any_member_may_be_anything(value: bytes) -> None:
    """An error or an event whose columns hold their types: ``decode`` validates the batch."""
    texts = [*map(json.dumps, WRONG), "[" * 2000 + "]" * 2000, "1e999", "NaN", "", '"\\ud800"']
    changed = [replaced(value, at, text) for at in places(json.loads(value)) for text in texts]
    assert len(decode(*changed)) == len(changed)


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


@settings(max_examples=200, deadline=None)
@given(
    st.lists(rows(), max_size=4, unique_by=lambda e: (e.database, e.table, e.schema_version)),
    st.sampled_from(["json", "avro"]),
)
def test_round_trip(events: list[RowChange], encoding: str) -> None:
    options = sink_options("simple", ZONE | {"encoding-format": encoding, "integrity-check-level": "correctness"})
    values = [message.value for message in encode(events, options)]
    schemas = {(event.database, event.table, event.schema_version or 0): event.columns for event in events}
    found = decode(*values, known=Known(schemas=schemas), encoding_format=encoding)
    keyless = [{name: getattr(event, name) for name in event.__slots__} for event in found]
    plain = {"handle_key": None, "old_handle_key": None}
    assert [RowChange(**members | plain) for members in keyless] == events


def test_encode_refuses_what_it_cannot_write() -> None:
    with pytest.raises(ConfigError):
        encode(decode(UPDATE), sink_options("simple", {"large-message-handle-option": "claim-check"}))
    with pytest.raises(ConfigError):
        encode([Failure(reason="x", detail="x", offset=None, database=None, table=None)], sink_options("simple", {}))
    bare = {name: getattr(row(UPDATE), name) for name in RowChange.__slots__} | {"commit_ts": None}
    with pytest.raises(ConfigError, match="commit_ts"):
        encode([RowChange(**bare)], sink_options("simple", {}))
