"""Canal-JSON that is not as TiCDC writes it: a DecodeError with the right reason, or a well-typed event."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import cases

from ticdc_lakehouse.codec import Decoder
from ticdc_lakehouse.codec.canal_json import encode
from ticdc_lakehouse.codec.compression import compress
from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.options import Compression, sink_options
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import (
    Bootstrap,
    Column,
    Ddl,
    Event,
    Failure,
    Op,
    Resolved,
    RowChange,
    events_of,
    handle_key_text,
)

EXTENSION = {"enable-tidb-extension": True}
COMMIT_TS = 470613139966656514
DEEP = b"[" * 100_000 + b"]" * 100_000


def decode(*values: bytes | None, stored: dict[str, bytes] | None = None, **options: object) -> list[Event]:
    given_options = EXTENSION | {name.replace("_", "-"): value for name, value in options.items()}
    batch = Decoder("canal_json", sink_options("canal_json", given_options), Known(objects=stored or {})).decode(
        [None] * len(values), values
    )
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
        "id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": "UPDATE",
        "es": 1795246658000, "ts": 1795246658001, "sql": "",
        "sqlType": {"id": 4, "b": 2004, "f": 8, "y": 12},
        "mysqlType": {"y": "year", "id": "int", "b": "varbinary", "f": "double"},
        "old": [{"id": "1", "b": "ÿ", "f": "0.5", "y": "0"}], "data": [{"id": "1", "b": "\0", "f": None, "y": "1999"}],
        "_tidb": {"commitTs": COMMIT_TS},
    }  # fmt: skip
    return whole | members


def written(**members: Any) -> bytes:
    return json.dumps(message(**members), ensure_ascii=False, separators=(",", ":")).encode()


def without(*names: str) -> bytes:
    return json.dumps({name: value for name, value in message().items() if name not in names}).encode()


UPDATE = written()
DDL = written(
    isDdl=True, type="CREATE", sql="CREATE TABLE t (id INT)", pkNames=None, sqlType=None, mysqlType=None,
    old=None, data=None
)  # fmt: skip
WATERMARK = written(
    database="", table="", type="TIDB_WATERMARK", pkNames=None, sqlType=None, mysqlType=None, old=None, data=None,
    _tidb={"watermarkTs": 5},
)  # fmt: skip
VALID = (UPDATE, DDL, WATERMARK)


def test_the_messages_here_are_valid() -> None:
    update, ddl, watermark = decode(*VALID)
    assert isinstance(update, RowChange)
    assert update.before == {"id": "1", "b": "ff", "f": "0.5", "y": "0000"}
    assert update.after == {"id": "1", "b": "00", "f": None, "y": "1999"}
    assert (update.handle_key, update.old_handle_key) == ('["1"]', None)
    assert isinstance(ddl, Ddl)
    assert (ddl.type, ddl.query) == ("CREATE", "CREATE TABLE t (id INT)")
    assert watermark == Resolved(commit_ts=5)


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
    "column missing": (written(data=[{"id": "1", "b": "", "f": "1"}]), "wrong_columns"),
    "column too many": (written(data=[*[message()["data"][0] | {"x": "1"}]]), "wrong_columns"),
    "old has more": (written(old=[{"x": "1"}]), "wrong_columns"),
    "types differ": (written(mysqlType={"id": "int"}), "wrong_columns"),
    "no types": (written(mysqlType=None), "wrong_columns"),
    "key is no column": (written(pkNames=["x"]), "wrong_columns"),
    "key twice": (written(pkNames=["id", "id"]), "wrong_columns"),
    "above a byte": (written(data=[message()["data"][0] | {"b": "Ā"}]), "bad_value"),
    "no number": (written(data=[message()["data"][0] | {"f": "NaN"}]), "bad_value"),
    "no year": (written(data=[message()["data"][0] | {"y": "19x9"}]), "bad_value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    value, reason = REFUSED[name]
    assert failure(value).reason == reason


DOUBLED = {
    "top": (b'"ts":', b'"ts":1,"ts":'),
    "top, spaces": (b'"ts":', b'"ts" : 1 ,"ts":'),
    "data": (b'"data":[{', b'"data":[{"id":"2",'),
    "data, spaces": (b'"data":[{', b'"data":[{"id" :"2",'),
    "data, null": (b'"data":[{', b'"data":[{"f":null,'),
    "data, escaped": (b'"data":[{', b'"data":[{"\\u0069d":"2",'),
    "data, quotes in a text": (b'"data":[{', b'"data":[{"id":"\\":\\\\",'),
    "old": (b'"old":[{', b'"old":[{"f":"2",'),
    "types": (b'"mysqlType":{', b'"mysqlType":{"id":"int",'),
    "sql types": (b'"sqlType":{', b'"sqlType":{"id":4,'),
    "extension": (b'"_tidb":{', b'"_tidb":{"commitTs":7,'),
}


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


@pytest.mark.parametrize("value", [DDL, WATERMARK])
def test_a_name_twice_is_refused_outside_of_rows(value: bytes) -> None:
    assert failure(value.replace(b'"ts":', b'"ts":1,"ts":')).reason == "duplicate_name"


def test_a_fault_in_a_row_names_its_table() -> None:
    found = failure(UPDATE.replace(b'"1999"', b"1999"))
    assert (found.database, found.table) == ("d", "t")
    found = failure(DDL.replace(b'"data":null', b'"data":[{}]'))
    assert (found.database, found.table) == (None, None)


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


def test_old_of_changed_columns_only() -> None:
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
    assert row(keyed).handle_key == handle_key_text(['"\u2028', "ff", "1e-07"])


ODD_NAMES = ['a"b', "a\\", "\n", "<&>", "名", "", "\x01"]


def test_any_column_name() -> None:
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
     ("0.0000000", "0")],
)  # fmt: skip
def test_floats(wire: str, text: str) -> None:
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
    assert claim({location: content}, claim_check_raw_value=True).reason in ("missing_member", "unknown_member")
    assert claim({location: b'{"key":null,"value":"*"}'}).reason == "bad_value"
    other = base64.b64encode(UPDATE).decode()
    assert claim({location: json.dumps({"key": None, "value": other}).encode()}).reason == "claim_check_mismatch"


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.SNAPPY])
def test_compression(compression: Compression) -> None:
    assert decode(compress(UPDATE, compression), large_message_handle_compression=compression) == decode(UPDATE)
    assert failure(UPDATE, large_message_handle_compression=compression).reason in ("bad_compression", "too_large")
    ((location, content),) = objects().items()
    inner = compress(base64.b64decode(json.loads(content)["value"]), compression)
    stored = {location: json.dumps({"key": None, "value": base64.b64encode(inner).decode()}).encode()}
    value = LARGE["large.insert"].values[0]
    assert value is not None
    options = {"large_message_handle_option": "claim-check", "large_message_handle_compression": compression}
    assert row(compress(value, compression), stored=stored, **options).after is not None


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


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.lists(TEXT, min_size=1, max_size=6, unique=True)
VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint unsigned": st.integers(0, 2**64 - 1).map(str),
    "varchar(8)": TEXT,
    "varbinary(8)": st.binary(max_size=8).map(bytes.hex),
    "enum('a','b')": st.integers(0, 2).map(str),
    "year(4)": st.integers(0, 2155).map(lambda year: f"{year:04d}"),
    "double": st.sampled_from(["0", "-0", "1e-07", "1.5", "-1e+300", "5e-324", "123456789012345680000", "1e+21"]),
    "json": st.sampled_from(['{"a": "b\\"\\\\"}', "[]", "1"]),
}


@st.composite
def rows(draw: st.DrawFn) -> RowChange:
    names = draw(NAMES)
    types = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    keys = draw(st.integers(0, len(names)))
    columns = tuple(
        Column(name=name, type=kind, key=at < keys, by="index" if kind.startswith("enum") else None)
        for at, (name, kind) in enumerate(zip(names, types, strict=True))
    )

    def image() -> dict[str, str | None]:
        return {
            column.name: draw(VALUES[column.type] if column.key else st.none() | VALUES[column.type])
            for column in columns
        }

    op = draw(st.sampled_from(Op))
    before = None if op is Op.INSERT else image()
    after = None if op is Op.DELETE else image()
    key, old_key = (
        handle_key_text([i[n] for n in names[:keys]]) if i and keys else None for i in (after or before, before)
    )
    commit_ts = draw(st.integers(0, 2**63 - 1))
    return RowChange(
        op=op, database=draw(TEXT), table=draw(TEXT.filter(bool)), commit_ts=commit_ts, commit_ms=commit_ts >> 18,
        before=before, after=after, columns=columns, handle_key=key,
        old_handle_key=old_key if op is Op.UPDATE and old_key != key else None,
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(rows(), max_size=4))
def test_round_trip(events: list[RowChange]) -> None:
    """With the content-compatible types, and so with the changed columns alone in ``old``."""
    options = sink_options("canal_json", EXTENSION | {"content-compatible": True})
    messages = encode(events, options)
    batch = Decoder("canal_json", options).decode([m.key for m in messages], [m.value for m in messages])
    found = [event for _, event in events_of(batch)]
    assert [as_whole(event) for event in found] == events


def as_whole(event: Event) -> Event:
    """An update with the columns that ``before`` leaves out, because they have not changed."""
    if not isinstance(event, RowChange) or event.op is not Op.UPDATE:
        return event
    assert event.before is not None
    assert event.after is not None
    members = {name: getattr(event, name) for name in event.__slots__}
    return RowChange(**members | {"before": {**event.after, **event.before}})


def test_encode_refuses_what_it_cannot_write() -> None:
    update = row(UPDATE)
    for given_options in ({"large-message-handle-option": "handle-key-only"}, {"output-row-key": True}):
        with pytest.raises(ConfigError):
            encode([update], sink_options("canal_json", EXTENSION | given_options))
    bare = row(without("_tidb"), enable_tidb_extension=False)
    with pytest.raises(ConfigError, match="enable-tidb-extension"):
        encode([bare], sink_options("canal_json", EXTENSION))
    with pytest.raises(ConfigError):
        encode([Bootstrap(database="d", table="t")], sink_options("canal_json", EXTENSION))


def test_no_watermarks_without_the_extension() -> None:
    assert encode([Resolved(commit_ts=5)], sink_options("canal_json", {})) == []


def test_names_of_an_enum_become_numbers() -> None:
    columns = (Column(name="e", type="enum('a','b')", by="name"), Column(name="s", type="set('a','b','c')", by="name"))
    named = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
        after={"e": "b", "s": "a,c"}, columns=columns
    )  # fmt: skip
    (written_message,) = encode([named], sink_options("canal_json", EXTENSION))
    assert written_message.value is not None
    assert row(written_message.value).after == {"e": "2", "s": "5"}
