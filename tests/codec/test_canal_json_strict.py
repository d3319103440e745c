"""Canal-JSON that is not as TiCDC writes it: a DecodeError with the right reason, or a well-typed event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from canal_json_messages import (
    COMMIT_TS,
    DDL,
    DEEP,
    DOUBLED,
    UPDATE,
    VALID,
    WATERMARK,
    decode,
    failure,
    message,
    row,
    without,
    written,
)
from vectors import cases
from well_typed import handle_key_text

from ticdc_codec.event import Ddl, Event, Failure, Op, Resolved, RowChange
from ticdc_codec.message import compress
from ticdc_codec.options import Compression


def test_the_messages_here_are_valid() -> None:
    update, ddl, watermark = decode(*VALID)
    assert isinstance(update, RowChange)
    assert update.before == {"id": "1", "b": "ff", "f": "0.5", "y": "0000"}
    assert update.after == {"id": "1", "b": "00", "f": None, "y": "1999"}
    assert (update.handle_key, update.old_handle_key) == ('["1"]', None)
    assert isinstance(ddl, Ddl)
    assert (ddl.type, ddl.query) == ("CREATE", "CREATE TABLE t (id INT)")
    assert watermark == Resolved(commit_ts=5)


@pytest.mark.parametrize("name", ["CREATE", "RENAME", "CINDEX", "DINDEX", "ALTER", "ERASE", "TRUNCATE", "QUERY"])
def test_every_type_of_ddl_is_read(name: str) -> None:
    """wire.md 1.4.4."""
    (ddl,) = decode(written(isDdl=True, type=name, table="", sql="x", pkNames=None, sqlType=None, mysqlType=None,
                            old=None, data=None))  # fmt: skip
    assert isinstance(ddl, Ddl)
    assert (ddl.type, ddl.database, ddl.table) == (name, "d", None)


def test_the_text_null_is_no_null() -> None:
    """wire.md 1.4.4: ticdc v8.5.4 wrote the first as the second."""
    types = {"id": "int", "a": "varchar", "b": "varchar"}
    image = {"id": "1", "a": "null", "b": None}
    found = row(written(type="INSERT", sqlType={"id": 4, "a": 12, "b": 12}, mysqlType=types, old=None, data=[image]))
    assert found.after == image


def test_old_is_a_null_row_in_an_insert_from_before_5_4() -> None:
    """wire.md 1.4.1. Among rows of now, too, in any order."""
    before, now = written(type="INSERT", old=[None]), written(type="INSERT", old=None)
    (expected,) = decode(now)
    assert decode(before, before) == [expected] * 2
    assert decode(now, before, now, before) == [expected] * 4
    for kind in ("UPDATE", "DELETE"):
        assert failure(written(type=kind, old=[None])).reason == "wrong_type"


def typed(**types: str) -> bytes:
    return written(mysqlType=message()["mysqlType"] | types, data=[message()["data"][0] | {"y": "1x"}])


TEXTS = written(
    type="INSERT", sqlType={"a": 12}, mysqlType={"a": "varchar"}, pkNames=None, old=None, data=[{"a": "a-z"}]
)
REFUSED = {
    "no bytes": (b"", "empty"),
    "null value": (None, "empty"),
    "no object": (b"[]", "wrong_type"),
    "text": (b"hello", "bad_json"),
    "deep": (DEEP, "wrong_type"),
    "deep member": (UPDATE.replace(b'{"y":"year"', b'{"x":' + DEEP + b',"y":"year"'), "bad_json"),
    "deep data": (UPDATE.replace(b'"data":[{', b'"data":[{"x":' + DEEP + b","), "bad_json"),
    "not UTF-8": (written(database="é").replace("é".encode(), b"\xe9"), "bad_json"),
    "not UTF-8 in data": (UPDATE.replace(b'"1999"', b'"\xe9"'), "bad_json"),
    "surrogate in data": (UPDATE.replace(b'"1999"', b'"\\ud800"'), "bad_json"),
    "byte that TiCDC replaced": (TEXTS.replace(b'"a-z"', b'"caf\\ufffd"'), "bad_utf8"),
    "encoded surrogate": (UPDATE.replace(b'"1999"', b'"\xed\xa0\x80"'), "bad_json"),
    "surrogate in a name": (UPDATE.replace(b'"database":"d"', b'"database":"\\udc00"'), "bad_json"),
    "left over": (UPDATE + b"x", "trailing_bytes"),
    "two messages": (UPDATE + UPDATE, "trailing_bytes"),
    "unknown type": (written(type="UPSERT"), "unknown_type"),
    "a row's type on a DDL": (written(isDdl=True), "unknown_type"),
    "a DDL's type on a row": (written(type="CREATE"), "unknown_type"),
    "lower case": (written(type="update"), "unknown_type"),
    "negative": (written(_tidb={"commitTs": -1}), "out_of_range"),
    "2^63": (written(_tidb={"commitTs": 2**63}), "out_of_range"),
    "2^64": (written(_tidb={"commitTs": 2**64}), "out_of_range"),
    "huge": (written(_tidb={"commitTs": 10**4000}), "out_of_range"),
    "no extension": (without("_tidb"), "no_extension"),
    "null extension": (written(_tidb=None), "no_extension"),
    "no commitTs": (written(_tidb={}), "missing_member"),
    "watermark without": (WATERMARK.replace(b',"_tidb":{"watermarkTs":5}', b""), "no_extension"),
    "unknown member": (written(gtid=""), "unknown_member"),
    "unknown in _tidb": (written(_tidb={"commitTs": 1, "onlySomeColumns": True}), "unknown_member"),
    "watermark in a row": (written(_tidb={"commitTs": 1, "watermarkTs": 1}), "unknown_member"),
    "statement in a row": (written(sql="DROP TABLE t"), "wrong_type"),
    "no table": (written(table=""), "wrong_type"),
    "no rows": (written(data=[]), "wrong_type"),
    "two rows": (written(data=message()["data"] * 2), "wrong_type"),
    "null row": (written(data=[None]), "wrong_type"),
    "no data": (written(data=None), "wrong_type"),
    "no old": (written(old=None), "wrong_type"),
    "old in an insert": (written(type="INSERT"), "wrong_type"),
    "other old in a delete": (written(type="DELETE"), "wrong_type"),
    "row in a DDL": (DDL.replace(b'"data":null', b'"data":[{}]'), "wrong_type"),
    "number": (UPDATE.replace(b'"1999"', b"1999"), "wrong_type"),
    "object": (UPDATE.replace(b'"1999"', b"{}"), "wrong_type"),
    "null in the primary key": (written(data=[message()["data"][0] | {"id": None}]), "bad_value"),
    "null in the primary key before": (written(old=[message()["old"][0] | {"id": None}]), "bad_value"),
    "column missing": (written(data=[{"id": "1", "b": "", "f": "1"}]), "wrong_columns"),
    "column too many": (written(data=[*[message()["data"][0] | {"x": "1"}]]), "wrong_columns"),
    "old has more": (written(old=[{"x": "1"}]), "wrong_columns"),
    "types differ": (written(mysqlType={"id": "int"}), "wrong_columns"),
    "no types": (written(mysqlType=None), "wrong_columns"),
    "key is no column": (written(pkNames=["x"]), "wrong_columns"),
    "key twice": (written(pkNames=["id", "id"]), "wrong_columns"),
    "above a byte": (written(data=[message()["data"][0] | {"b": "Ā"}]), "bad_value"),
    "no number": (written(data=[message()["data"][0] | {"f": "NaN"}]), "bad_value"),
    "no float64": (written(data=[message()["data"][0] | {"f": "1e320"}]), "out_of_range"),
    "no float32": (
        written(mysqlType=message()["mysqlType"] | {"f": "float"}, data=[message()["data"][0] | {"f": "3.5e38"}]),
        "out_of_range",
    ),
    "no index of an ENUM": (typed(y="enum"), "bad_value"),
    "no type of TiDB": (typed(f="doubles"), "unknown_type"),
    "a type that goes on": (typed(y="year9"), "unknown_type"),
    "not UTF-8 where nothing is read": (WATERMARK.replace(b'"sqlType":null', b'"sqlType":"\xff"'), "bad_json"),
    "no year": (written(data=[message()["data"][0] | {"y": "19x9"}]), "bad_value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_not_valid_is_refused(name: str) -> None:
    value, reason = REFUSED[name]
    assert failure(value).reason == reason


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_row_leaves_the_others_of_its_table_alone(name: str) -> None:
    """Rows that begin as one before are read together, by what is known of their table."""
    value, reason = REFUSED[name]
    (sound,) = decode(UPDATE)
    before, wrong, after = decode(UPDATE, value, UPDATE)
    assert isinstance(wrong, Failure)
    assert (before, wrong.reason, after) == (sound, reason, sound)


@pytest.mark.parametrize("name", DOUBLED)
@pytest.mark.parametrize("known", [False, True])
def test_a_name_twice_is_refused(name: str, known: bool) -> None:
    """Also after a message of the same table was read."""
    doubled = UPDATE.replace(*DOUBLED[name])
    assert doubled != UPDATE
    last = decode(*([UPDATE] if known else []), doubled)[-1]
    assert isinstance(last, Failure)
    assert last.reason == "duplicate_name"
    assert (last.database, last.table) == ("d", "t")


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_number_has_the_same_text_beside_others_that_are_written_anew(kind: str) -> None:
    texts = {
        "0": "0",
        "-0": "-0",
        "0.0000000": "0",
        "0.000001": "0.000001",
        "0.0000001": "1e-07",
        "9" * 21: "9" * 21,
        f"1{0:021}": "1e+21",
    }
    values = [written(mysqlType=message()["mysqlType"] | {"f": kind}, data=[message()["data"][0] | {"f": text}])
              for text in texts]  # fmt: skip
    together = [event for event in decode(*values) if isinstance(event, RowChange)]
    assert [(event.after or {})["f"] for event in together] == [*texts.values()]
    assert together == [row(value) for value in values]


def test_a_float_in_the_key_has_one_text() -> None:
    """tiflow up to 6.5.1 writes the digits of a float64, in keys of rows that later versions write as below."""
    texts = {
        "3.140000104904175": "3.14",
        "3.14": "3.14",
        "0.00000010000000116860974": "1e-07",
        "134217728": "134217730",
        "1048576.25": "1048576.2",
        "-0": "-0",
        "0": "0",
        "9" * 21: "1e+21",
    }
    values = [
        written(
            mysqlType=message()["mysqlType"] | {"id": "float"}, data=[message()["data"][0] | {"id": text}], **others
        )
        for text in texts
        for others in ({"type": "INSERT", "old": None}, {"type": "UPDATE", "old": [{"id": text}]})
    ]
    together = [event for event in decode(*values) if isinstance(event, RowChange)]
    expected = [text for text in texts.values() for _ in range(2)]
    assert [(each.after or {})["id"] for each in together] == expected
    assert [each.handle_key for each in together] == [f'["{text}"]' for text in expected]
    assert {each.old_handle_key for each in together} == {None}
    assert together == [row(value) for value in values]


def test_a_float_of_a_table_without_primary_key_has_one_text() -> None:
    """It may be in the handle key, a unique one, which rows do not name."""
    of_float = message()["mysqlType"] | {"f": "float"}
    values = [
        written(mysqlType=of_float, data=[message()["data"][0] | {"f": text}], pkNames=keys, type="INSERT", old=None)
        for text in ("0.10000000149011612", "0.1")
        for keys in (None, [], ["id"])
    ]
    texts = [(each.after or {})["f"] for each in decode(*values) if isinstance(each, RowChange)]
    assert texts == ["0.1", "0.1", "0.10000000149011612", "0.1", "0.1", "0.1"]


@pytest.mark.parametrize("value", [DDL, WATERMARK])
def test_a_name_twice_is_refused_outside_of_rows(value: bytes) -> None:
    assert failure(value.replace(b'"ts":', b'"ts":1,"ts":')).reason == "duplicate_name"


def test_a_fault_in_a_row_names_its_table() -> None:
    found = failure(UPDATE.replace(b'"1999"', b"1999"))
    assert (found.database, found.table) == ("d", "t")
    found = failure(DDL.replace(b'"data":null', b'"data":[{}]'))
    assert (found.database, found.table) == (None, None)


@pytest.mark.parametrize(
    ("change", "offset"),
    [((b'"1999"', b'"\xe9"'), 1), ((b'"1999"', b'"19\\q"'), 4), ((b'"1999"', b'"\0"'), 1)],
)
def test_a_fault_in_an_image_names_its_offset(change: tuple[bytes, bytes], offset: int) -> None:
    value = UPDATE.replace(*change)
    found = failure(value)
    assert (found.reason, found.offset) == ("bad_json", value.index(change[1]) + offset)


@pytest.mark.parametrize("tail", [b"\r\n", b"\n", b" "])
def test_white_space_at_the_end(tail: bytes) -> None:
    """tiflow #11707."""
    assert decode(UPDATE + tail) == decode(UPDATE)


def test_white_space_and_order_mean_nothing() -> None:
    shuffled = json.dumps(dict(reversed(message().items())), indent=1).encode()
    assert [event_without_order(event) for event in decode(shuffled)] == [
        event_without_order(e) for e in decode(UPDATE)
    ]


def event_without_order(event: Event) -> Any:
    assert isinstance(event, RowChange)
    return (event.before, event.after, set(event.columns), event.handle_key, event.commit_ts)


def test_a_watermark_may_have_all_64_bits_and_no_more() -> None:
    (case,) = [case for case in cases("tiflow-canal_json-ext") if case.name == "resolved.max"]
    assert decode(case.values[0]) == [Resolved(commit_ts=(1 << 64) - 1)]
    beyond = case.values[0].replace(b"18446744073709551615", b"18446744073709551616")
    assert failure(beyond).reason == "out_of_range"


def test_commit_ts_is_used_whatever_the_option_says() -> None:
    assert row(UPDATE, enable_tidb_extension=False).commit_ts == COMMIT_TS
    bare = row(without("_tidb"), enable_tidb_extension=False)
    assert (bare.commit_ts, bare.commit_ms) == (None, 1795246658000)
    assert failure(written(_tidb=None, es=2**50), enable_tidb_extension=False).reason == "out_of_range"
    assert failure(written(_tidb=None, es=-1), enable_tidb_extension=False).reason == "out_of_range"


def test_delete_before_5_4_repeats_data_in_old() -> None:
    deleted = row(written(type="DELETE", old=message()["data"]))
    assert (deleted.op, deleted.before, deleted.after) == (
        Op.DELETE,
        {"id": "1", "b": "00", "f": None, "y": "1999"},
        None,
    )


def test_old_image_may_have_only_changed_columns() -> None:
    assert row(written(old=[{}])).before == {}
    same = row(written(old=[{"f": "2"}]))
    assert (same.before, same.old_handle_key) == ({"f": "2"}, None)
    moved = row(written(old=[{"id": "0"}]))
    assert (moved.handle_key, moved.old_handle_key) == ('["1"]', '["0"]')


def test_the_word_null_is_no_null() -> None:
    texts = {"id": "1", "b": "null", "f": None, "y": None}
    assert row(written(data=[texts])).after == {"id": "1", "b": b"null".hex(), "f": None, "y": None}


def test_a_key_is_in_the_form_of_events() -> None:
    keyed = written(pkNames=["id", "b", "f"], data=[{"id": '"\u2028', "b": "ÿ", "f": "0." + "0" * 6 + "1", "y": None}])
    assert row(keyed).handle_key == handle_key_text({"id": '"\u2028', "b": "ff", "f": "1e-07"})


ODD_NAMES = ['a"b', "a\\", "\n", "<&>", "名", "", "\x01"]


def test_columns_may_have_any_name() -> None:
    types = dict.fromkeys(ODD_NAMES, "varchar")
    texts = {name: f'{name}":' for name in ODD_NAMES}
    value = written(pkNames=ODD_NAMES[:2], sqlType=dict.fromkeys(types, 12), mysqlType=types, data=[texts], old=[texts])
    assert row(value).after == texts
    doubled = value.replace(b'"data":[{', b'"data":[{"a\\\\":"x",')
    assert failure(doubled).reason == "duplicate_name"
    assert failure(written(sqlType=dict.fromkeys(types, 12), mysqlType=types, pkNames=[])).reason == "wrong_columns"


def test_a_table_that_changes_back_and_forth() -> None:
    wider = written(sqlType=message()["sqlType"] | {"id": -5}, mysqlType=message()["mysqlType"] | {"id": "bigint"})
    types = [event.columns[0].type for event in decode(UPDATE, wider, UPDATE, wider) if isinstance(event, RowChange)]
    assert types == ["int", "bigint", "int", "bigint"]
    same_numbers = written(mysqlType=message()["mysqlType"] | {"f": "float"})
    types = [event.columns[2].type for event in decode(UPDATE, same_numbers, UPDATE) if isinstance(event, RowChange)]
    assert types == ["double", "float", "double"]


@pytest.mark.parametrize(
    ("wire", "text"),
    [("0", "0"), ("-0", "-0"), ("1.50", "1.50"), ("0.000001", "0.000001"), ("0.0000001", "1e-07"),
     ("0." + "0" * 9 + "12", "1.2e-10"),
     ("-0.00000025", "-2.5e-07"), ("123456789012345680000", "123456789012345680000"), ("1" + "0" * 21, "1e+21"),
     ("-34028235" + "0" * 31, "-3.4028235e+38"), ("1e3", "1000"), ("5e-324", "5e-324"),
     ("0." + "0" * 323 + "5", "5e-324"),
     ("0.0000000", "0"), ("-0.0000000", "-0")],
)  # fmt: skip
def test_floats_have_the_text_that_mysql_prints(wire: str, text: str) -> None:
    after = row(written(data=[message()["data"][0] | {"f": wire}])).after
    assert after is not None
    assert after["f"] == text


LARGE = {case.name: case for case in cases("ticdc-canal_json-claim-check")}
PLACE = "file:///claim-check"


def claim(stored: dict[str, bytes], **options: object) -> Failure:
    value = LARGE["large.insert"].values[0]
    assert value is not None
    return failure(
        value,
        stored=stored,
        large_message_handle_option="claim-check",
        claim_check_storage_uri=PLACE,
        **options,
    )


def objects() -> dict[str, bytes]:
    stored = LARGE["large.insert"].content["claim_check"]
    return {f"{PLACE}/{name}": base64.b64decode(content) for name, content in stored.items()}


def test_claim_check_objects_that_are_not_right() -> None:
    missing = claim({})
    assert (missing.reason, missing.database, missing.table) == ("claim_check_missing", "vec", "large")
    ((location, content),) = objects().items()
    assert claim({location: content[:-1]}).reason == "truncated"
    raw = base64.b64decode(json.loads(content)["value"])
    for is_raw, other in ((True, content), (False, raw)):
        wrong = claim({location: other}, claim_check_raw_value=is_raw)
        assert wrong.reason == "claim_check_mismatch"
        assert f"claim-check-raw-value is {str(not is_raw).lower()} in the changefeed" in wrong.detail
    assert claim({location: b'{"key":null,"value":"*"}'}).reason == "bad_value"
    whole = json.loads(raw)
    bare = {name: member for name, member in whole.items() if name != "_tidb"}
    for other in (UPDATE, WATERMARK, json.dumps(bare).encode(), json.dumps(whole | {"isDdl": True}).encode()):
        stored = {"key": None, "value": base64.b64encode(other).decode()}
        assert claim({location: json.dumps(stored).encode()}).reason == "claim_check_mismatch"


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.SNAPPY])
def test_compressed_messages_decode_to_the_same(compression: Compression) -> None:
    assert decode(compress(UPDATE, compression), large_message_handle_compression=compression) == decode(UPDATE)
    assert failure(UPDATE, large_message_handle_compression=compression).reason in ("bad_compression", "too_large")
    ((location, content),) = objects().items()
    inner = compress(base64.b64decode(json.loads(content)["value"]), compression)
    stored = {location: json.dumps({"key": None, "value": base64.b64encode(inner).decode()}).encode()}
    value = LARGE["large.insert"].values[0]
    assert value is not None
    options = {"large_message_handle_option": "claim-check", "large_message_handle_compression": compression}
    assert row(compress(value, compression), stored=stored, **options).after is not None
