"""Debezium that is not as TiCDC writes it: a DecodeError with the right reason, or a well-typed event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from single import single

from ticdc_codec.batch import DecoderContext
from ticdc_codec.debezium import encode
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange, events_of
from ticdc_codec.message import compress
from ticdc_codec.options import Compression, sink_options
from ticdc_codec.protocols import Decoder

COMMIT_TS = 470613139966656514
DEEP = b"[" * 100_000 + b"]" * 100_000
FIELDS = (
    {"type": "int32", "optional": False, "field": "id", "tidb_type": "int"},
    {"type": "string", "optional": True, "field": "b", "tidb_type": "varbinary", "default": "x"},
    {"type": "int64", "optional": True, "field": "u", "tidb_type": "bigint unsigned"},
    {"type": "double", "optional": True, "field": "f", "tidb_type": "double"},
    {"type": "double", "optional": True, "field": "m", "tidb_type": "decimal"},
    {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "field": "d", "tidb_type": "date"},
    {"type": "int64", "optional": True, "name": "io.debezium.time.MicroTime", "field": "t", "tidb_type": "time"},
    {"type": "string", "optional": True, "name": "io.debezium.time.ZonedTimestamp", "field": "z"},
    {"type": "bytes", "optional": True, "name": "io.debezium.data.Bits", "parameters": {"length": "10"}, "field": "x"},
)
IMAGE = {
    "id": 1, "b": "AP8=", "u": -1, "f": 0.5, "m": 1.5, "d": 1, "t": 1, "z": "2024-01-01T00:00:00Z", "x": "AQI="
}  # fmt: skip


def source(**members: Any) -> dict[str, Any]:
    whole = {
        "version": "2.4.0.Final", "connector": "TiCDC", "name": "default", "ts_ms": 1795246658000, "snapshot": "false",
        "db": "d", "table": "t", "server_id": 0, "gtid": None, "file": "", "pos": 0, "row": 0, "thread": 0,
        "query": None, "commit_ts": COMMIT_TS, "cluster_id": "default",
    }  # fmt: skip
    return whole | members


def text(message: object) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def schema(fields: object = FIELDS) -> dict[str, Any]:
    images = [{"type": "struct", "optional": True, "field": image, "fields": fields} for image in ("before", "after")]
    return {"type": "struct", "optional": False, "name": "default.d.t.Envelope", "version": 1, "fields": images}


def value(*, fields: object = FIELDS, typed: bool = True, **members: Any) -> bytes:
    payload = {"source": source(), "ts_ms": 1, "transaction": None, "op": "c", "before": None, "after": IMAGE} | members
    return text({"payload": {name: member for name, member in payload.items() if member is not ...}}
                | ({"schema": schema(fields)} if typed else {}))  # fmt: skip


def after(**values: Any) -> bytes:
    return value(after=IMAGE | values)


KEY = text({"payload": {"id": 1}})
INSERT = value()
UPDATE = value(op="u", before=IMAGE | {"b": None})
DELETE = value(op="d", before=IMAGE, after=None)
BARE = value(typed=False)
DDL = text({
    "payload": {"source": source(), "ts_ms": 1, "databaseName": "d", "schemaName": None, "ddl": "DROP TABLE `t`",
                "tableChanges": [{"type": "DROP", "id": '"d"."t"', "table": None}]}
})  # fmt: skip
WATERMARK = value(typed=False, op="m", source=source(db="", table="", commit_ts=5), before=..., after=...)
VALID = (INSERT, UPDATE, DELETE, BARE, DDL, WATERMARK)


def decode(
    *messages: bytes | None, key: bytes | None = KEY, context: DecoderContext | None = None, **options: object
) -> list[Event]:
    given_options = {name.replace("_", "-"): option for name, option in options.items()}
    decoder = Decoder("debezium", sink_options("debezium", given_options), context or DecoderContext())
    batch = decoder.decode([key] * len(messages), messages)
    batch.validate(full=True)
    return [event for _, event in events_of(batch)]


def failure(message: bytes | None, **options: Any) -> Failure:
    return single(decode(message, **options), Failure)


def row(message: bytes, **options: Any) -> RowChange:
    return single(decode(message, **options), RowChange)


def test_the_messages_here_are_valid() -> None:
    insert, update, delete, bare, ddl, watermark = decode(*VALID, time_zone="Asia/Shanghai")
    assert isinstance(insert, RowChange)
    assert insert.after == {
        "id": "1", "b": "00ff", "u": "18446744073709551615", "f": "0.5", "m": "1.5", "d": "1970-01-02",
        "t": "00:00:00.000001", "z": "2024-01-01 08:00:00", "x": "513",
    }  # fmt: skip
    defects = {column.name: column.defect for column in insert.columns if column.defect}
    assert defects == {"b": "debezium-default", "m": "debezium-decimal", "d": "debezium-date"}
    assert isinstance(update, RowChange)
    assert (update.before, update.old_handle_key) == ({**insert.after, "b": None}, None)
    assert isinstance(delete, RowChange)
    assert (delete.op, delete.before, delete.after, delete.handle_key) == (Op.DELETE, insert.after, None, '["1"]')
    assert isinstance(bare, RowChange)
    assert {column.type for column in bare.columns} == {"unknown"}
    assert bare.after is not None
    assert bare.after == {name: str(found) for name, found in IMAGE.items()}
    assert isinstance(ddl, Ddl)
    assert (ddl.database, ddl.table, ddl.type, ddl.query) == ("d", "t", "DROP", "DROP TABLE `t`")
    assert watermark == Resolved(commit_ts=5)


@pytest.mark.parametrize(
    ("zone", "own", "text", "other"),
    [
        ("America/New_York", "2024-11-03T05:30:00Z", "2024-11-03 01:30:00", "2024-11-03T06:30:00Z"),
        ("Europe/Berlin", "2024-10-27T01:30:00Z", "2024-10-27 02:30:00", "2024-10-27T00:30:00Z"),
        ("Australia/Lord_Howe", "2024-04-06T15:15:00Z", "2024-04-07 01:45:00", "2024-04-06T14:45:00Z"),
    ],
)
def test_a_timestamp_whose_text_is_read_as_another_one_is_kept_as_sent(
    zone: str, own: str, text: str, other: str
) -> None:
    """Clocks are set back in the feed's zone: two rows, or two keys, would be one. A server in this zone sends only the
    one as which TiDB reads the text."""
    assert (row(after(z=own), time_zone=zone).after or {})["z"] == text
    assert (row(after(z=other), time_zone=zone).after or {})["z"] == other
    for sent in (own, other):
        assert (row(after(z=sent), time_zone="UTC").after or {})["z"] == sent[:-1].replace("T", " ")


REFUSED = {
    "no bytes": (b"", "empty"),
    "null value": (None, "empty"),
    "no object": (b"[]", "wrong_type"),
    "text": (b"hello", "bad_json"),
    "debezium-avro": (bytes.fromhex("00 00000007 02 0a"), "bad_json"),  # wire.md 1.5.4
    "deep": (DEEP, "wrong_type"),
    "deep member": (INSERT.replace(b'{"payload":{', b'{"payload":{"x":' + DEEP + b","), "bad_json"),
    "deep image": (INSERT.replace(b'"after":{', b'"after":{"x":' + DEEP + b","), "bad_json"),
    "deep schema": (INSERT.replace(b'"schema":{', b'"schema":{"x":' + DEEP + b","), "bad_json"),
    "not UTF-8": (BARE.replace(b'"AP8="', b'"\xe9"'), "bad_json"),
    "a type with sizes": (INSERT.replace(b'_type":"decimal"', b'_type":"decimal(9,900000000)"'), "wrong_type"),
    "not UTF-8 in the schema": (INSERT.replace(b"default.d.t.", b"\xe9"), "bad_json"),
    "encoded surrogate": (BARE.replace(b'"AP8="', b'"\xed\xa0\x80"'), "bad_json"),
    "left over": (INSERT + b"x", "trailing_bytes"),
    "two messages": (BARE + BARE, "trailing_bytes"),
    "unknown member": (value(_tidb={}), "unknown_member"),
    "unknown member of source": (value(source=source(sequence=None)), "unknown_member"),
    "unknown member beside": (BARE[:-1] + b',"headers":{}}', "unknown_member"),
    "missing member": (value(ts_ms=...), "missing_member"),
    "no source": (value(source=...), "missing_member"),
    "another connector": (value(source=source(connector="mysql")), "bad_value"),
    "no commit_ts": (value(source={k: v for k, v in source().items() if k != "commit_ts"}), "missing_member"),
    "commit_ts is text": (value(source=source(commit_ts="1")), "wrong_type"),
    "commit_ts below 0": (value(source=source(commit_ts=-1)), "out_of_range"),
    "commit_ts of 2^63": (value(source=source(commit_ts=1 << 63)), "out_of_range"),
    "watermark of 2^64": (WATERMARK.replace(b'"commit_ts":5', b'"commit_ts":18446744073709551616'), "out_of_range"),
    "huge watermark": (WATERMARK.replace(b'"commit_ts":5', b'"commit_ts":' + b"9" * 4000), "out_of_range"),
    "watermark with a row": (value(op="m"), "unknown_member"),
    "snapshot read": (value(op="r"), "unknown_type"),
    "neither op nor ddl": (value(op=...), "unknown_type"),
    "insert without after": (value(after=None), "wrong_type"),
    "insert with before": (value(before=IMAGE), "wrong_type"),
    "update without after": (value(op="u", before=IMAGE, after=None), "wrong_type"),
    "delete without before": (value(op="d", before=None, after=None), "wrong_type"),
    "delete with after": (value(op="d", before=IMAGE), "wrong_type"),
    "image is a list": (value(after=[IMAGE]), "wrong_type"),
    "column too few": (value(op="u", before={"id": 1}), "wrong_columns"),
    "column too many": (value(op="u", before=IMAGE | {"q": 1}), "wrong_columns"),
    "not in the schema": (value(after=IMAGE | {"q": 1}), "wrong_columns"),
    "text for INT": (after(id="1"), "wrong_type"),
    "float for INT": (after(id=1.5), "wrong_type"),
    "INT of 2^31": (after(id=1 << 31), "out_of_range"),
    "BIGINT of 2^63": (after(u=1 << 63), "out_of_range"),
    "number for VARBINARY": (after(b=1), "wrong_type"),
    "no base64": (after(b="AP8"), "bad_value"),
    "BIT in too few bytes": (after(x="AQ=="), "bad_value"),
    "BIT of 11 bits": (after(x="AQQ="), "bad_value"),
    "text for DOUBLE": (after(f="1"), "wrong_type"),
    "true for DOUBLE": (after(f=True), "wrong_type"),
    "list for DOUBLE": (after(f=[]), "wrong_type"),
    "DOUBLE of 1e400": (INSERT.replace(b'"f":0.5', b'"f":1e400'), "out_of_range"),
    "DECIMAL of 1e400": (INSERT.replace(b'"m":1.5', b'"m":1e400'), "out_of_range"),
    "date in year 10000": (after(d=2_932_897), "out_of_range"),
    "date before year 1": (after(d=-719_163), "out_of_range"),
    "time of 839 hours": (after(t=839 * 3_600_000_000), "out_of_range"),
    "time without zone": (after(z="2024-01-01T00:00:00"), "bad_value"),
    "time in another zone": (after(z="2024-01-01T00:00:00+01:00"), "bad_value"),
    "month 13": (after(z="2024-13-01T00:00:00Z"), "bad_value"),
    "object of unknown type": (value(typed=False, after={"id": 1, "q": {}}), "wrong_type"),
    "key of another row": (after(id=2), "key_mismatch"),
    "fields differ": (INSERT.replace(b'"type":"int32"', b'"type":"int16"', 1), "bad_schema"),
    "no field list": (INSERT.replace(b'"field":"after"', b'"field":"later"'), "bad_schema"),
    "unknown Connect type": (value(fields=[FIELDS[0], {**FIELDS[1], "type": "map"}, *FIELDS[2:]]), "bad_schema"),
    "type against tidb_type": (value(fields=[{**FIELDS[0], "type": "int64"}, *FIELDS[1:]]), "bad_schema"),
    "member twice": (INSERT.replace(b'"op":"c"', b'"op":"c","op":"c"'), "duplicate_name"),
    "database twice": (INSERT.replace(b'"db":"d"', b'"db":"d","db":"d"'), "duplicate_name"),
    "column twice": (INSERT.replace(b'"id":1', b'"id":1,"id":1'), "duplicate_name"),
    "column twice, spaced": (BARE.replace(b'"id":1', b'"id" : 1,"id":1'), "duplicate_name"),
    "schema twice": (INSERT[:-1] + b',"schema":{}}', "duplicate_name"),
    "not UTF-8 where nothing is read": (WATERMARK[:-1] + b',"schema":{"x":"\xff"}}', "bad_json"),
    "DDL without changes": (DDL.replace(b',"tableChanges"', b',"changes"'), "unknown_member"),
    "DDL of numbers": (DDL.replace(b'"DROP TABLE `t`"', b"5"), "wrong_type"),
    "DDL member twice": (DDL.replace(b'"ts_ms":1,', b'"ts_ms":1,"ts_ms":1,'), "duplicate_name"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_not_valid_is_refused(name: str) -> None:
    message, reason = REFUSED[name]
    assert failure(message).reason == reason


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_row_leaves_the_others_of_its_table_alone(name: str) -> None:
    """Also when its table is known and its neighbours are read together."""
    message, reason = REFUSED[name]
    found = decode(INSERT, BARE, *[INSERT] * 9, message, *[UPDATE] * 9, BARE)
    assert [event.reason for event in found if isinstance(event, Failure)] == [reason]
    assert len(found) == 22


def test_a_fault_in_a_row_names_its_table() -> None:
    for message in (after(id="1"), after(b="AP8"), value(after=None), value(_tidb={})):
        assert (failure(message).database, failure(message).table) == ("d", "t")
    nameless = value(source=source(table=""), after=IMAGE | {"id": "1"})
    for message in (
        nameless,
        INSERT.replace(b'"id":1', b'"id":1,"id":1'),
        DDL.replace(b'"ts_ms":1,', b""),
        WATERMARK[:-1],
    ):
        assert failure(message).table is None


def test_a_row_that_is_not_utf8_names_its_table() -> None:
    """A latin1 column may have any bytes, and so may the default of a BIT column in the schema (tiflow 8.5.0)."""
    bits = ({**FIELDS[8], "default": "?"},)
    faulty = [message.replace(b'"AP8="', b'"caf\xe9"') for message in (INSERT, UPDATE, DELETE, BARE)]
    faulty += [value(fields=[*FIELDS[:8], *bits]).replace(b'"default":"?"', b'"default":"\x80"')]
    faulty += [INSERT.replace(b'"b":"AP8="', b'"b":"gA==","b":"\x80"')]  # a NULL, as tiflow writes it
    for message in faulty:
        found = [event for event in decode(INSERT, BARE, message, INSERT) if isinstance(event, Failure)]
        assert [(each.reason, each.database, each.table) for each in found] == [("bad_json", "d", "t")]
    nameless = [INSERT.replace(name, b'"\xe9"', 1) for name in (b'"d"', b'"t"', b'"c"')]
    nameless += [DDL.replace(b"DROP", b"\xe9"), WATERMARK.replace(b'"cluster_id":"default"', b'"cluster_id":"\xe9"')]
    for message in (*nameless, value(source=source(table="")).replace(b'"AP8="', b'"\xe9"')):
        assert (failure(message).reason, failure(message).database, failure(message).table) == ("bad_json", None, None)


KEYS = {
    "left over": (KEY + b"x", "trailing_bytes"),
    "truncated": (KEY[:-1], "truncated"),
    "no object": (b"[]", "wrong_type"),
    "column twice": (b'{"payload":{"id":1,"id":1}}', "duplicate_name"),
    "another type": (b'{"payload":{"id":"1"}}', "wrong_type"),
    "another row": (b'{"payload":{"id":2}}', "key_mismatch"),
    "unknown member": (b'{"payload":{"id":1},"x":1}', "unknown_member"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_is_not_valid_is_refused(name: str) -> None:
    key, reason = KEYS[name]
    found = [failure(message, key=key).reason for message in (INSERT, BARE)]
    assert found in ([reason] * 2, [reason, "key_mismatch"])  # a column of unknown type has no wrong type


def test_a_key_without_columns_names_no_handle_key() -> None:
    assert row(INSERT, key=None).handle_key is None
    assert row(INSERT, key=b'{"payload":{}}').handle_key is None
    assert row(INSERT, key=b' {"payload" : { "id":1}} ').handle_key == '["1"]'


def test_a_null_that_tiflow_writes_as_two_defaults_is_null() -> None:
    twice = INSERT.replace(b'"b":"AP8="', b'"b":"YWI=","b":"ab"')
    assert (row(twice).after or {})["b"] is None
    assert (row(twice.replace(b'"f":0.5', b'"f":-0')).after or {})["f"] == "-0"
    assert failure(twice.replace(b'"YWI="', b'"YWJj"')).reason == "duplicate_name"
    assert (row(twice.replace(b'"f":0.5', b'"f":5E-1')).after or {})["f"] == "0.5"
    assert failure(twice.replace(b'"f":0.5', b'"f":1e99999999999999999999')).reason == "bad_value"


def test_numbers_keep_their_digits() -> None:
    for wire, text_ in (("-0", "-0"), ("1e-07", "1e-07"), ("1E5", "100000"), ("100000000000000000000", "1" + 20 * "0"),
                        ("1e+21", "1e+21"), ("0.0000001", "1e-07"), ("1e+35", "1e+35")):  # fmt: skip
        image = row(INSERT.replace(b'"f":0.5,"m":1.5', f'"f":{wire},"m":{wire}'.encode())).after or {}
        assert image["f"] == text_
        assert "e" not in str(image["m"])


def test_white_space_and_order_mean_nothing() -> None:
    message = json.loads(INSERT)
    reordered = {"schema": message["schema"], "payload": dict(reversed(message["payload"].items()))}
    (plain, *others) = decode(INSERT, json.dumps(message, indent=2).encode() + b"\r\n", text(reordered))
    assert others == [plain, plain]


def test_a_definition_gives_digits_and_types() -> None:
    types = {"id": "int(11)", "b": "varbinary(9)", "u": "bigint(20) unsigned", "f": "double", "m": "decimal(10,2)",
             "d": "date", "t": "time(6)", "z": "timestamp(3)", "x": "bit(10)"}  # fmt: skip
    context = DecoderContext(
        schemas={("d", "t", 0): tuple(Column(name=n, type=t, key=n == "id") for n, t in types.items())}
    )
    typed, bare = (row(message, context=context) for message in (INSERT, BARE))
    assert (typed.after, typed.handle_key) == (bare.after, bare.handle_key)
    assert (bare.after or {})["m"] == "1.50"
    assert [column.type for column in bare.columns] == [*types.values()]
    assert row(BARE, key=None, context=context).handle_key == '["1"]'


def test_a_definition_is_found_by_names_in_any_case() -> None:
    columns = Column(name="ID", type="int(11)", key=True), Column(name="U", type="bigint(20) unsigned")
    found = row(BARE, key=None, context=DecoderContext(schemas={("D", "T", 0): columns}))
    types = {column.name: column.type for column in found.columns}
    assert (types["id"], types["u"], found.handle_key) == ("int(11)", "bigint(20) unsigned", '["1"]')


@pytest.mark.parametrize(("name", "shorter"), [("m", "decimal(9,0)"), ("t", "time"), ("d", "datetime(2)")])
def test_a_value_with_more_digits_than_its_definition_has_is_refused(name: str, shorter: str) -> None:
    context = DecoderContext(schemas={("d", "t", 0): (Column(name=name, type=shorter),)})
    assert failure(BARE, context=context).reason == "bad_value"


@pytest.mark.parametrize(
    ("name", "older"), [("u", "bigint(20)"), ("b", "text"), ("f", "decimal(9,2)"), ("m", "double")]
)
def test_a_definition_of_another_type_than_the_message_says_is_not_used(name: str, older: str) -> None:
    """From before a DDL, and of the same Connect type: ``tidb_type`` is right."""
    context = DecoderContext(schemas={("d", "t", 0): (Column(name=name, type=older),)})
    assert (row(INSERT, context=context).after, row(INSERT, context=context).columns) == (
        row(INSERT).after,
        row(INSERT).columns,
    )


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_compressed_messages_decode_to_the_same(compression: str) -> None:
    kind = Compression(compression)
    assert row(compress(INSERT, kind), key=compress(KEY, kind), large_message_handle_compression=kind).op is Op.INSERT
    for broken in (INSERT, b"\xff\xff\xff\xff\x07" + b"x" * 20, compress(INSERT, kind)[:-5], b"\x04\x22\x4d\x18"):
        found = failure(broken, key=compress(KEY, kind), large_message_handle_compression=kind)
        assert found.reason in ("bad_compression", "too_large", "truncated", "bad_json")
    bare_key = failure(compress(INSERT, kind), key=KEY, large_message_handle_compression=kind)
    assert bare_key.reason in ("bad_compression", "too_large")


def test_what_cannot_be_encoded() -> None:
    (bare,) = decode(BARE)
    options = sink_options("debezium", {"enable-tidb-extension": True})
    connect = row(value(fields=[{"type": "int64", "optional": True, "field": "id"}], after={"id": 1}))
    for event in (bare, connect, Bootstrap(database="d", table="t")):
        with pytest.raises(ConfigError):
            encode([event], options)
    with pytest.raises(ConfigError):
        encode([], sink_options("debezium", {"debezium-include-start-ts": True}))
    assert encode([Resolved(commit_ts=5)], sink_options("debezium", {})) == []


@pytest.mark.parametrize(
    ("name", "length", "scale", "found"),
    [
        ("VARCHAR", None, None, "varchar(5)"),
        ("VARCHAR", 60, None, "varchar(60)"),
        ("DOUBLE", None, 4, "double(22,4)"),
        ("DOUBLE", None, None, "double"),
        ("FLOAT", None, 2, "float(12,2)"),
        ("DECIMAL", 12, 4, "decimal(12,4)"),
    ],
)
def test_a_length_that_is_left_out_is_the_types_own(
    name: str, length: int | None, scale: int | None, found: str
) -> None:
    column = dict.fromkeys(("nativeType", "comment", "defaultValueExpression", "enumValues", "charsetName")) | {
        "name": "c", "jdbcType": 12, "typeName": name, "typeExpression": name, "length": length, "scale": scale,
        "position": 1, "optional": True, "autoIncremented": False, "generated": False,
    }  # fmt: skip
    table = {"defaultCharsetName": "", "primaryKeyColumnNames": [], "columns": [column], "comment": None}
    ddl = json.loads(DDL)
    ddl["payload"] |= {"tableChanges": [{"type": "CREATE", "id": '"d"."t"', "table": table}]}
    (event,) = decode(text(ddl))
    assert isinstance(event, Ddl)
    assert [each.type for each in event.columns] == [found]
    table["columns"] = [column, column]
    (failure,) = decode(text(ddl))
    assert getattr(failure, "reason", None) == "duplicate_column"
