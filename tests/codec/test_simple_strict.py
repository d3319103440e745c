"""Simple that is not as TiCDC writes it: a DecodeError with the right reason."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

import pytest
from simple_messages import (
    AFTER,
    AVRO,
    AVRO_VALID,
    BARE,
    BOOTSTRAP,
    COLUMNS,
    COMMIT_TS,
    DATA,
    DDL,
    DEEP,
    SCHEMA,
    UPDATE,
    VALID,
    VERSION,
    WATERMARK,
    ZONE,
    decode,
    failure,
    row,
    with_data,
    written,
)
from vectors import cases

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange, events_of
from ticdc_codec.message import compress
from ticdc_codec.options import Compression, sink_options
from ticdc_codec.protocols import Decoder
from ticdc_codec.simple import encode
from ticdc_codec.simple.avro_message import AvroWriter
from ticdc_codec.simple.checksum import checksum_of
from ticdc_codec.simple.message import Checksum, read_envelope


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
    "text as start of the transaction": (written(startTs="470613139966656513"), "wrong_type"),
    "start of a transaction in a DDL": (written(**BARE, type="ALTER", sql="", startTs=1), "unknown_member"),
    "schema in a row": (written(tableSchema=SCHEMA), "unknown_member"),
    "no data": (written(data=...), "missing_member"),
    "null data": (written(data=None), "wrong_type"),
    "no old": (written(old=...), "missing_member"),
    "old in an insert": (written(type="INSERT"), "wrong_type"),
    "data in a delete": (written(type="DELETE"), "wrong_type"),
    "no version": (written(schemaVersion=...), "missing_member"),
    "no table": (written(table=...), "missing_member"),
    "byte that TiCDC replaced": (with_data(s="a-z").replace(b"a-z", b"caf\\ufffd"), "bad_utf8"),
    "byte behind a backslash": (with_data(s="a-z").replace(b"a-z", b"\\\\\\ufffd"), "bad_utf8"),
    "number": (with_data(y=0), "wrong_type"),
    "text for a timestamp": (with_data(t="2024-01-01 00:00:00"), "wrong_type"),
    "timestamp for a text": (with_data(s=DATA["t"]), "wrong_type"),
    "column too many": (with_data(x="1"), "wrong_columns"),
    "old has fewer": (written(old={"id": "1"}), "wrong_columns"),
    "no base64": (with_data(b="/w="), "bad_value"),
    "no number": (with_data(f="NaN"), "bad_value"),
    "no year": (with_data(y="19x9"), "bad_value"),
    "no float64": (with_data(f="1e320"), "out_of_range"),
    "index of 2^64": (with_data(e=str(2**64)), "bad_value"),
    "index with a zero before it": (with_data(e="01"), "bad_value"),
    "no element": (with_data(e="c"), "bad_value"),
    "no zone": (with_data(t={"location": "Local", "value": "2024-01-01 00:00:00"}), "bad_value"),
    "no time": (with_data(t={"location": "UTC", "value": "2024-01-32 00:00:00"}), "bad_value"),
    "time before all others": (with_data(t={"location": "Europe/Berlin", "value": "0001-01-01 00:00:00"}), "bad_value"),
    "time after all others": (with_data(t={"location": "UTC", "value": "9999-12-31 23:59:59.9"}), "bad_value"),
    "day of a week": (with_data(t={"location": "UTC", "value": "2024-W01-1T00:00:00"}), "bad_value"),
    "seven digits of a second": (with_data(t={"location": "UTC", "value": "2024-01-01 00:00:00.1234567"}), "bad_value"),
    "a path as zone": (with_data(t={"location": "../etc/passwd", "value": "2024-01-01 00:00:00"}), "bad_value"),
    "hour that comes twice": (with_data(t={"location": "Europe/Berlin", "value": "2024-10-27 02:30:00"}), "bad_value"),
    "hour that never comes": (with_data(t={"location": "Europe/Berlin", "value": "2024-03-31 02:30:00"}), "bad_value"),
    "other version": (written(schemaVersion=VERSION + 1), "schema_missing"),
    "other table": (written(table="x"), "schema_missing"),
    "watermark of a table": (written(type="WATERMARK", data=..., old=...), "unknown_member"),
    "bootstrap without": (written(**BARE, type="BOOTSTRAP"), "missing_member"),
    "DDL without SQL": (written(**BARE, type="ALTER"), "missing_member"),
    "column twice": (BOOTSTRAP.replace(b'"name":"e"', b'"name":"id"'), "duplicate_column"),
    "no type of TiDB": (BOOTSTRAP.replace(b'"mysqlType":"int"', b'"mysqlType":"ind"'), "unknown_type"),
    "key of no column": (BOOTSTRAP.replace(b'["id"]', b'["x"]'), "wrong_columns"),
    "no TSO": (BOOTSTRAP.replace(str(VERSION).encode(), b"-1"), "out_of_range"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_not_valid_is_refused(name: str) -> None:
    """Alone, and after a message of the same table was read."""
    value, reason = REFUSED[name]
    assert failure(value).reason == reason
    last = decode(UPDATE, value)[-1]
    assert isinstance(last, Failure)
    assert last.reason == reason


def test_a_message_that_begins_as_rows_do_need_not_be_one() -> None:
    begun = WATERMARK.replace(b'{"version":1,', b'{"version":1,"database":null,')
    assert decode(UPDATE, begun, UPDATE) == [row(UPDATE), Resolved(commit_ts=5), row(UPDATE)]


def test_a_true_replacement_character_is_read() -> None:
    """Go writes it as it is; an escape stands for another byte. Neither is a backslash before ``ufffd``."""
    for text in ("\ufffd", r"\ufffd", "\ufffd\\\\ufffd"):
        rows = decode(*[with_data(s=text)] * 3)
        assert [each.after["s"] for each in rows if isinstance(each, RowChange) and each.after] == [text] * 3


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


@pytest.mark.parametrize("name", ["column twice", "no type of TiDB", "key of no column", "no TSO"])
def test_a_bootstrap_without_a_valid_schema_names_its_table(name: str) -> None:
    """Its rows alone need the schema: other tables and the watermark continue."""
    bootstrap = REFUSED[name][0] or b""
    in_avro = AvroWriter(sink_options("simple", AVRO)).control(read_envelope(bootstrap))
    for fault in (failure(bootstrap), failure(in_avro, encoding_format="avro")):
        assert (fault.database, fault.table) == ("d", "n")


def test_timestamp_of_another_zone_is_converted() -> None:
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
def test_columns_may_have_any_name(encoding: str) -> None:
    texts: dict[str, str | None] = {name: f'{name}":' for name in ODD_NAMES}
    columns = tuple(Column(name=name, type="varchar(9)", key=name < "a") for name in ODD_NAMES)
    event = RowChange(op=Op.INSERT, database="d", table="o", commit_ts=COMMIT_TS, commit_ms=0, before=None, after=texts,
                      columns=columns)  # fmt: skip
    values = [m.value for m in encode([event, event], sink_options("simple", {"encoding-format": encoding}))]
    events = decode(*values, encoding_format=encoding)
    assert [e.after for e in events if isinstance(e, RowChange)] == [texts, texts]


def checked(value: bytes, change: tuple[bytes, bytes], **options: Any) -> Event:
    return decode(value.replace(*change), context=DecoderContext(schemas=SUMMED_SCHEMAS), **options)[0]


SUMMED = next(case for case in cases("ticdc-simple-json-checksum") if case.name == "defaults.update.to_null")
SUMMED_SCHEMAS = {
    (event.database, event.table, event.schema_version or 0): event.columns
    for event in decode(*SUMMED.values) if isinstance(event, Bootstrap)
}  # fmt: skip


def test_a_checksum_follows_the_order_of_the_schema() -> None:
    """In ticdc that of the table, where an ADD COLUMN … FIRST has put the newest column first."""
    columns = tuple(Column(name=name, type="int") for name in ("newest", "id"))
    assert checksum_of(columns, ["2", "1"], ZoneInfo("UTC")) == crc32(struct.pack("<QQ", 2, 1))


def test_row_with_a_wrong_checksum_is_refused() -> None:
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
        # 0 is none: a row of a split update has one side only (wire.md 1.3.4)
        assert isinstance(checked(value, (wrong[0], f'"{name}":0'.encode())), RowChange)
    corrupted = checked(value, (b'"corrupted":false', b'"corrupted":true'))
    assert isinstance(corrupted, Failure)
    assert corrupted.reason == "checksum_mismatch"


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize(("level", "reason"), [("warn", None), ("error", "checksum_mismatch")])
def test_only_level_error_refuses_a_row_with_a_wrong_checksum(encoding: str, level: str, reason: str | None) -> None:
    mark = {"version": 2, "corrupted": False, "current": 4711, "previous": 0}
    message = written(checksum=mark)
    if encoding == "avro":
        message = AvroWriter(sink_options("simple", AVRO)).row(row(UPDATE), COMMIT_TS, VERSION, Checksum(**mark), None)
    (found,) = decode(message, encoding_format=encoding, corruption_handle_level=level)
    assert (found.reason if isinstance(found, Failure) else None) == reason


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("timestamp", {"location": "Europe/Berlin", "value": "2024-10-27 01:30:00"}, "checksum_mismatch"),
        # Which of the two instants TiDB had is unknown, and so is the checksum.
        ("timestamp", {"location": "Europe/Berlin", "value": "2024-10-27 02:30:00"}, None),
        ("vector(2)", "[1,2]", "checksum_mismatch"),
        ("vector(2)", "[1,b]", "bad_value"),
        ("vector(2)", "[1,1e60]", "bad_value"),
    ],
)
def test_a_value_may_have_no_checksum(kind: str, value: object, reason: str | None) -> None:
    columns = (COLUMNS[0], Column(name="c", type=kind))
    mark = {"version": 2, "corrupted": False, "current": 4711, "previous": 0}
    message = written(type="INSERT", old=..., data={"id": "1", "c": value}, checksum=mark)
    context = DecoderContext(schemas={("d", "t", VERSION): columns})
    (found,) = decode(message, context=context, time_zone="Europe/Berlin")
    assert (found.reason if isinstance(found, Failure) else None) == reason


def test_row_of_its_handle_key_alone_is_refused_if_ticdc_found_it_corrupted() -> None:
    """A DELETE would remove the row of another key. Its checksum is the whole row's, and is not computed."""
    for corrupted in (False, True):
        mark = {"version": 2, "corrupted": corrupted, "current": 0, "previous": 4711}
        delete = written(type="DELETE", data=..., old={"id": "1"}, handleKeyOnly=True, checksum=mark)
        found = row(written(type="DELETE", data=..., old={"id": "1"}, handleKeyOnly=True))
        in_avro = AvroWriter(sink_options("simple", AVRO)).row(found, COMMIT_TS, VERSION, Checksum(**mark), None)
        for events in (decode(delete), decode(in_avro, encoding_format="avro")):
            reasons = [each.reason if isinstance(each, Failure) else None for each in events]
            assert reasons == ["checksum_mismatch" if corrupted else None]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_timestamp_whose_text_is_read_as_another_one_is_refused(encoding: str) -> None:
    """Berlin sets its clocks back at 01:00 UTC: 02:30 comes twice, and is read as the second."""
    rows = [with_data(t={"location": "UTC", "value": f"2024-10-27 0{hour}:30:00"}) for hour in (0, 1, 2)]
    if encoding == "avro":
        rows = [each.value or b"" for each in encode(decode(*rows, time_zone="UTC"), sink_options("simple", AVRO))]
    first, second, third = decode(*rows, time_zone="Europe/Berlin", encoding_format=encoding)
    assert [(each.after or {})["t"] for each in (second, third) if isinstance(each, RowChange)] == [
        "2024-10-27 02:30:00", "2024-10-27 03:30:00"
    ]  # fmt: skip
    assert isinstance(first, Failure)
    assert (first.reason, first.table) == ("bad_value", "t")
    assert "of its own in Europe/Berlin" in first.detail


@pytest.mark.parametrize("time_zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_text_that_is_no_timestamp_is_refused_also_in_the_feeds_own_zone(encoding: str, time_zone: str) -> None:
    value = with_data(t={"location": "UTC", "value": "2024-10-27 00:30:59"})
    if encoding == "avro":
        (value,) = (each.value or b"" for each in encode(decode(value, time_zone="UTC"), sink_options("simple", AVRO)))
    for wrong in (b"2024-10-27 00:30:5x", b"2024-10-27T00:30:59", b"0000-00-00 00:00:0x"):
        changed = value.replace(b"2024-10-27 00:30:59", wrong)
        assert changed != value
        (found,) = decode(changed, time_zone=time_zone, encoding_format=encoding)
        assert isinstance(found, Failure)
        assert (found.reason, found.table) == ("bad_value", "t")
        assert found.detail.removeprefix("column t: ") == f"expected a TIMESTAMP, found {wrong.decode()!r}"


PLACE = "file:///claim-check"


@pytest.mark.parametrize("file", ["ticdc-simple-json-claim-check", "ticdc-simple-avro-claim-check"])
def test_claim_check_objects_that_are_not_right(file: str) -> None:
    case = next(case for case in cases(file) if case.name == "large.insert")
    ((name, text),) = case.content["claim_check"].items()
    content = base64.b64decode(text)
    other = base64.b64encode(case.values[0] or b"").decode()

    def claimed(stored: dict[str, bytes], **options: object) -> Event:
        encoding = "avro" if "avro" in file else "json"
        context = DecoderContext(objects={f"{PLACE}/{at}": value for at, value in stored.items()})
        return decode(*case.values, context=context, encoding_format=encoding, **options)[-1]

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
def test_compressed_messages_decode_to_the_same(compression: Compression) -> None:
    assert decode(compress(UPDATE, compression), large_message_handle_compression=compression) == decode(UPDATE)
    assert failure(UPDATE, large_message_handle_compression=compression).reason in ("bad_compression", "too_large")


@pytest.mark.parametrize(
    ("sql", "database", "expected"),
    [
        ("DROP DATABASE `a``b`", "", "a`b"),
        ("DROP DATABASE `d`", "d", "d"),
        ("CREATE VIEW `v` AS SELECT 1", "d", "d"),
        ("CREATE VIEW `v` AS SELECT 1", "", None),
    ],
)
def test_an_empty_schema_of_a_ddl_is_none(sql: str, database: str, expected: str | None) -> None:
    """wire.md 1.3.3: DDLs of databases and views may have one."""
    empty = {"schema": database, "table": "", "tableID": 0, "version": 0, "columns": None, "indexes": None}
    message = written(**BARE, type="QUERY", sql=sql, tableSchema=empty, preTableSchema=empty)
    in_avro = AvroWriter(sink_options("simple", AVRO)).control(read_envelope(message))
    wanted = Ddl(database=expected, table=None, commit_ts=COMMIT_TS, commit_ms=COMMIT_TS >> 18, query=sql, type="QUERY")
    assert decode(message) == decode(in_avro, encoding_format="avro") == [wanted]


TEXTS, BINARY = (
    written(**BARE, type="BOOTSTRAP", commitTs=0, tableSchema=SCHEMA | {"columns": [SCHEMA["columns"][0], column]})
    for column in (
        {"name": "s", "dataType": {"mysqlType": "varchar", "charset": charset, "collate": charset, "length": 9},
         "nullable": True, "default": None}
        for charset in ("utf8mb4", "binary")
    )
)  # fmt: skip
"""Two schemas of one name and version: names may change their tables, and RENAME TABLE keeps the version."""
ROW_OF_BOTH = written(table="n", type="INSERT", data={"id": "1", "s": "YWI="}, old=...)


def values_of_s(decoder: Decoder, *messages: bytes | None) -> list[str | None]:
    found = [event for _, event in events_of(decoder.decode([None] * len(messages), messages))]
    return [(event.after or {})["s"] for event in found if isinstance(event, RowChange)]


def test_the_newest_schema_of_a_version_holds() -> None:
    """For rows of a known prefix too."""
    decoder = Decoder("simple", sink_options("simple", ZONE))
    assert values_of_s(decoder, TEXTS, *[ROW_OF_BOTH] * 3) == ["YWI="] * 3
    assert values_of_s(decoder, BINARY) == []
    assert values_of_s(decoder, *[ROW_OF_BOTH] * 3) == ["6162"] * 3


def test_rows_before_another_schema_have_the_one_that_an_earlier_run_learned() -> None:
    [texts] = decode(TEXTS)
    assert isinstance(texts, Bootstrap)
    decoder = Decoder(
        "simple", sink_options("simple", ZONE), DecoderContext(schemas={("d", "n", VERSION): texts.columns})
    )
    assert values_of_s(decoder, ROW_OF_BOTH, BINARY, ROW_OF_BOTH, TEXTS, ROW_OF_BOTH) == ["YWI=", "6162", "YWI="]


def test_the_schema_after_a_ddl_holds_where_it_has_the_version_of_the_one_before() -> None:
    before, after = (json.loads(each)["tableSchema"] for each in (TEXTS, BINARY))
    ddl = written(**BARE, type="ALTER", sql="ALTER TABLE `d`.`n`", tableSchema=after, preTableSchema=before)
    decoder = Decoder("simple", sink_options("simple", ZONE))
    assert values_of_s(decoder, ddl, ROW_OF_BOTH) == ["6162"]
    in_avro = AvroWriter(sink_options("simple", AVRO)).control(read_envelope(ddl))
    assert decode(in_avro, encoding_format="avro") == decode(ddl)


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_rows_have_the_schema_that_their_name_had_before_they_came(encoding: str) -> None:
    """Of one batch too, though its rows are decoded after its schemas."""
    messages: list[bytes | None] = [TEXTS, WATERMARK, ROW_OF_BOTH, BINARY, BINARY, ROW_OF_BOTH, TEXTS, ROW_OF_BOTH]
    options = sink_options("simple", ZONE | {"encoding-format": encoding})
    alone = Decoder("simple", sink_options("simple", ZONE))
    events = [event for each in messages for _, event in events_of(alone.decode([None], [each]))]
    decoder = Decoder("simple", options)
    batch = decoder.decode([None] * len(messages), [message.value for message in encode(events, options)])
    assert [*events_of(batch)] == [*enumerate(events)]
    assert [event.after["s"] for event in events if isinstance(event, RowChange) and event.after] == [
        "YWI=", "6162", "YWI=",
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_schema_is_found_in_every_spelling_of_its_tables_name(encoding: str) -> None:
    """The newest one holds, and rows keep their own spelling: tiflow writes a database in lower case after a RENAME,
    and in that of the CREATE again after a restart (wire.md 8.14)."""
    options = sink_options("simple", ZONE | {"encoding-format": encoding})
    capital, small = ROW_OF_BOTH.replace(b'"d"', b'"D"'), ROW_OF_BOTH.replace(b'"n"', b'"N"')
    messages = [TEXTS.replace(b'"d"', b'"D"'), ROW_OF_BOTH, capital, BINARY, capital, ROW_OF_BOTH, small]
    read = Decoder("simple", sink_options("simple", ZONE))
    events = [event for each in messages for _, event in events_of(read.decode([None], [each]))]
    decoder = Decoder("simple", options)
    batch = decoder.decode([None] * len(messages), [message.value for message in encode(events, options)])
    rows = [event for _, event in events_of(batch) if isinstance(event, RowChange)]
    assert [(each.database, each.table, (each.after or {})["s"]) for each in rows] == [
        ("d", "n", "YWI="), ("D", "n", "YWI="), ("D", "n", "6162"), ("d", "n", "6162"), ("d", "N", "6162"),
    ]  # fmt: skip
