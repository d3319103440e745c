"""Open Protocol: values, quoting, claim checks, compression, and what the encoder refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_open_protocol_strict import CELLS, ROW, UPDATE, WATERMARK, Pair, cells, decode, failure, key, row, u, written
from well_typed import handle_key_text

from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Op, RowChange
from ticdc_codec.message import compress
from ticdc_codec.open_protocol import encode
from ticdc_codec.open_protocol.frame import framed, texts_of
from ticdc_codec.open_protocol.value import quoted, unquoted, unquoted_exactly
from ticdc_codec.options import Compression, SinkOptions, sink_options


def changed(**of: Any) -> dict[str, str | None]:
    after = row(u(**of)).after
    assert after is not None
    return {name: after[name] for name in of}


def test_values_are_read_by_type_and_flags() -> None:
    assert changed(n=2**64 - 1, id=-(2**63)) == {"n": "18446744073709551615", "id": "-9223372036854775808"}
    # A flag may be stale (wire.md 8.4): the number is the column's all the same.
    assert changed(n=-(2**63)) == {"n": "-9223372036854775808"}
    assert changed(b=None, q=None) == {"b": None, "q": None}
    assert changed(q='\\a\\"\\\\u0041é\\xe9') == {"q": (b'\a"\\u0041' + "é".encode() + b"\xe9").hex()}


@pytest.mark.parametrize(
    ("wire", "text"), [(b"0", "0"), (b"-0", "-0"), (b"-0.0", "-0"), (b" -0 ", "-0"), (b"1e-7", "1e-07"), (b"2", "2"),
     (b"1e+21", "1e+21"), (b"0.000001", "0.000001"), (b"123456789012345680000", "123456789012345680000"),
     (b"5e-324", "5e-324"), (b"null", None)],
)  # fmt: skip
def test_floats_have_the_text_that_mysql_prints(wire: bytes, text: str | None) -> None:
    assert row(written((key(), b'{"u":{"g":{"t":5,"f":65,"v":%b}}}' % wire))).after == {"g": text}


@pytest.mark.parametrize(
    ("code", "flags", "wire", "text"),
    [
        (16, 97, 2**64 - 1, "18446744073709551615"),
        (248, 64, 2**64 - 1, "18446744073709551615"),
        (248, 64, 0, "0"),
        (247, 64, 0, "0"),
        (13, 225, 0, "0000"),
        (13, 225, 2155, "2155"),
        (4, 65, 0.1, "0.1"),
        (4, 65, 3.4028235e38, "3.4028235e+38"),
        (246, 65, "-0.50", "-0.50"),
        (10, 65, "0000-00-00", "0000-00-00"),
        (11, 65, "-838:59:59.999999", "-838:59:59.999999"),
        (7, 65, "2024-01-01 08:00:00.5", "2024-01-01 08:00:00.5"),
        (245, 65, '{"a": 9007199254740993}', '{"a": 9007199254740993}'),
        (225, 65, "[1,2.5]", "[1,2.5]"),
        *((code, 64, 'a\\x00"', 'a\\x00"') for code in (15, 253, 254)),
        *((code, 65, 'a\\x00\\"', "610022") for code in (15, 253, 254)),
        *((code, 64, "w6k=", "é") for code in (249, 250, 251, 252)),
        *((code, 65, "w6k=", "c3a9") for code in (249, 250, 251, 252)),
    ],
)
def test_value_of_each_type_is_read(code: int, flags: int, wire: object, text: str) -> None:
    """wire.md 1.2.4. NULL is null, whatever the type."""
    both = {"v": {"t": code, "f": flags, "v": wire}, "n": {"t": code, "f": flags, "v": None}}
    assert row(written((key(), {"u": both}))).after == {"v": text, "n": None}


def test_missing_flags_are_a_writer_defect() -> None:
    """wire.md 8.4: an integer always has the binary flag; a text without flags may be NOT NULL, but for a partition."""

    def defect(table_key: dict[str, Any], **members: Any) -> str | None:
        return row(written((table_key, {"u": {"c": members}}))).columns[0].defect

    assert defect(key(), t=8, f=0, v=1) == defect(key(ptn=7), t=15, f=0, v="x") == "open-flags"
    assert defect(key(), t=15, f=0, v="x") is defect(key(ptn=7), t=15, f=64, v="x") is None
    assert defect(key(), t=3, f=4099, v=1) == "open-flags"


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("partition", [{}, {"ptn": 7}])
def test_h_names_the_key(rows: int, partition: dict[str, int]) -> None:
    """A partition's flags may be those from before a DDL that changed the key (wire.md 8.4), and ticdc gives the flag
    to no stored generated column."""
    image = {"a": {"t": 8, "f": 11, "v": 1}, "b": {"t": 8, "h": True, "f": 13, "v": 2}}
    before, after = ({name: image[name] | {"v": value} for name, value in (("a", 1), ("b", at))} for at in (2, 3))
    found = decode(*[written((key(**partition), {"u": after, "p": before}))] * rows)
    assert [(each.handle_key, each.old_handle_key) for each in found if isinstance(each, RowChange)] == [
        ('["3"]', '["2"]')
    ] * rows
    of_image = row(written((key(**partition), {"u": image})))
    assert [column.key for column in of_image.columns] == [False, True]
    (message,) = encode([of_image], SinkOptions())
    again = row((message.key, message.value))
    assert (again.columns, again.handle_key) == (of_image.columns, '["2"]')


def test_without_any_h_the_flag_names_the_key() -> None:
    """It is deprecated (wire.md 1.2.3)."""
    image = {"a": {"t": 8, "f": 11, "v": 1}, "b": {"t": 8, "f": 9, "v": 2}}
    assert [column.key for column in row(written((key(), {"u": image}))).columns] == [True, False]
    assert [column.key for column in row(written((key(ptn=7), {"u": image}))).columns] == [False, False]


def test_a_key_that_only_the_flag_names_is_suspect() -> None:
    """Both writers set ``h`` too: ticdc's flags may be those from before a DROP PRIMARY KEY (wire.md 8.4)."""
    image = {"a": {"t": 8, "f": 11, "v": 1}, "b": {"t": 8, "f": 9, "v": 2}}
    assert [column.defect for column in row(written((key(), {"u": image}))).columns] == ["open-flags", None]
    named = {"a": image["a"], "b": image["b"] | {"h": True}}
    assert [column.defect for column in row(written((key(), {"u": named}))).columns] == [None, None]


def test_rows_that_name_another_key_are_read_apart() -> None:
    image = {"a": {"t": 8, "h": True, "f": 11, "v": 1}, "b": {"t": 8, "h": True, "f": 13, "v": 2}}
    other = {"a": image["a"], "b": {"t": 8, "h": False, "f": 13, "v": 2}}
    found = decode(*(written((key(), {"u": each})) for each in [image, other] * 9))
    assert [each.handle_key for each in found if isinstance(each, RowChange)] == ['["1","2"]', '["1"]'] * 9


@pytest.mark.parametrize("values", [["w6k=", "/w==", None, "w6k="], ["/w==", "w6k=", None]])
def test_base64_without_flags_that_is_no_text_is_bytes(values: list[str | None]) -> None:
    """A new BLOB of a partition (wire.md 8.4); rows before and after it are text as far as anybody can see."""
    cells = [{"t": 252, "f": 0, "v": value} for value in values]
    others = {"t": {"t": 252, "f": 64, "v": "w6k="}}
    found = decode(*(written((key(ptn=7), {"u": {"b": cell} | others})) for cell in cells))
    rows = [each for each in found if isinstance(each, RowChange)]
    assert len(rows) == len(values)
    for value, change in zip(values, rows, strict=True):
        data, column = None if value is None else base64.b64decode(value), change.columns[0]
        shown = {"text": lambda data: data.decode(), "blob": bytes.hex}[column.type]
        assert (change.after or {})["b"] == (None if data is None else shown(data))
        assert column.defect == {"text": "open-flags", "blob": None}[column.type]


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize(
    ("code", "flags", "wire", "kind", "text"),
    [
        (254, 65, "a\\n\\x00", "binary", "610a00"),
        (15, 65, "abc", "varbinary", "616263"),
        (15, 65, "\\u0378", "varbinary", "cdb8"),
        (15, 65, "\u0378", "varbinary", "cdb8"),
        *(
            (15, 65, text, "varchar", text)
            for text in ("C:\\dir", 'a"b', "a\nb", "\\x41", "\\xc3\\xa9", "\\u00e9", "\u00a0")
        ),
        (15, 64, "\\x00", "varchar", "\\x00"),
        (252, 65, "w6k=", "blob", "c3a9"),
        (252, 64, "w6k=", "text", "é"),
        (252, 64, "/w==", "blob", "ff"),
    ],
)
def test_the_binary_flag_of_a_partition_counts_unless_the_value_shows_another(
    rows: int, code: int, flags: int, wire: str, kind: str, text: str
) -> None:
    """It may be that of another column which had the name before (wire.md 8.4)."""
    cell = {"t": code, "f": flags, "v": wire}
    found = decode(*[written((key(ptn=7), {"u": {"c": cell}, "p": {"c": cell | {"v": None}}}))] * rows)
    changes = [each for each in found if isinstance(each, RowChange)]
    assert [change.after for change in changes] == [{"c": text}] * rows
    assert {(change.columns[0].type, change.columns[0].flags) for change in changes} == {(kind, flags)}
    shown = ("binary" in kind or "blob" in kind) != bool(flags & 1)
    assert {change.columns[0].defect for change in changes} == {"open-flags" if shown else None}


def test_a_text_under_a_binary_flag_costs_no_other_row_of_its_message() -> None:
    image = {"c": {"t": 15, "f": 65, "v": "C:\\dir"}}
    found = decode(written((key(ptn=7), {"u": image}), (key(tbl="s"), ROW)))
    assert [type(each) for each in found] == [RowChange, RowChange]
    assert failure(written((key(), {"u": image}))).reason == "bad_value"


ODD_NAMES = ['a"b', "a\\", "\n", "<&>", "名", "", "\x01"]


def test_columns_may_have_any_name() -> None:
    image = {name: {"t": 15, "f": 66, "v": name} for name in ODD_NAMES}
    found = row(written((key(), {"u": image, "p": {"<&>": image["<&>"] | {"v": "x"}}})))
    assert found.after == {name: name for name in ODD_NAMES}
    assert found.before == {"<&>": "x"}
    assert found.handle_key == handle_key_text({name: name for name in ODD_NAMES})
    first, second = decode(*[written((key(), {"u": image}))] * 2)
    assert first == second


@given(st.binary())
def test_quoting_is_undone(data: bytes) -> None:
    assert unquoted(quoted(data)) == data


def test_quotes_as_go_does() -> None:
    assert quoted(b"\x89PNG\r\n\x1a\n\x7f\0") == "\\x89PNG\\r\\n\\x1a\\n\\x7f\\x00"
    assert quoted("é\u00a0\U000e0001\ufffd".encode()) == "é\\u00a0\\U000e0001\ufffd"
    with pytest.raises(DecodeError, match="bad_value"):
        unquoted("\\U00110000")


@given(st.binary() | st.text().map(str.encode))
def test_what_go_quotes_is_unquoted_exactly(data: bytes) -> None:
    assert unquoted_exactly(quoted(data)) == data


@given(st.text(alphabet=r'\\xu0afn"c3é' "\u00a0\n"))
def test_what_is_unquoted_exactly_is_as_go_quotes_it(text: str) -> None:
    try:
        assert quoted(unquoted_exactly(text)) == text
    except DecodeError:
        assert text != quoted(text.encode())


PLACE = "file:///claims/1.json"


def claim(content: Pair | bytes | None, *, members: Iterable[str] = ROW, **options: Any) -> list[Event]:
    text = content
    if isinstance(content, tuple):
        texts = [None if part is None else base64.b64encode(part).decode() for part in content]
        text = json.dumps(dict(zip(("key", "value"), texts, strict=True))).encode()
    stored = {PLACE: text} if isinstance(text, bytes) else {}
    shortened = json.dumps(key(ccl=PLACE)).replace('"ccl"', '"ohk":true,"ohk":false,"ccl"').encode()
    return decode(written((shortened, {member: {"id": CELLS["id"]} for member in members})), stored=stored, **options)


def test_claim_check_gives_the_whole_row_or_the_fault_of_its_object() -> None:
    assert claim(UPDATE) == decode(UPDATE)
    for content, reason in (
        (None, "claim_check_missing"),
        (b"{}", "missing_member"),
        (b'{"key":"*","value":""}', "bad_value"),
        ((None, UPDATE[1]), "empty"),
        (written((key(ts=1), ROW)), "claim_check_mismatch"),
        (written((key(), {"u": cells()})), "claim_check_mismatch"),
        (written((key(), ROW), (key(), ROW)), "claim_check_mismatch"),
        (written((key(ccl=PLACE), ROW)), "claim_check_mismatch"),
        (written((key(), ROW | {"u": cells(id="x")})), "wrong_type"),
    ):
        (found,) = claim(content)
        assert isinstance(found, Failure)
        assert (found.reason, found.database, found.table) == (reason, "d", "t")


def test_a_claimed_row_may_have_an_old_image_that_its_handle_key_has_not() -> None:
    """tiflow with only-output-updated-columns, where the key did not change (wire.md 1.2.3)."""
    assert claim(UPDATE, members="u") == decode(UPDATE)
    for content, members in ((UPDATE, "d"), (written((key(), {"d": cells()})), "u")):
        (found,) = claim(content, members=members)
        assert isinstance(found, Failure)
        assert found.reason == "claim_check_mismatch"


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.SNAPPY])
def test_compressed_messages_decode_to_the_same(compression: Compression) -> None:
    def compressed(message: Pair) -> Pair:
        return message[0], framed([compress(text, compression) for text in texts_of(message[1] or b"")])

    options = {"large_message_handle_compression": compression}
    assert decode(compressed(UPDATE), WATERMARK, **options) == decode(UPDATE, WATERMARK)
    assert failure(UPDATE, **options).reason in ("bad_compression", "too_large")
    bomb = UPDATE[0], framed([compress(bytes(300 << 20), compression)])
    assert failure(bomb, **options).reason == "too_large"


def test_encode_refuses_what_it_cannot_write() -> None:
    odd = Column(name="c", type="geometry2")
    for event in (
        Bootstrap(database="d", table="t"),
        Ddl(database="d", table="t", commit_ts=1, commit_ms=0, query="", type="CREATE"),
        RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None, after={"c": "x"},
                  columns=(odd,)),
        RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None, after={"c": "x"},
                  columns=(Column(name="c", type="int"),)),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            encode([event], SinkOptions())


def test_batches_keep_to_the_options() -> None:
    update = row(UPDATE)
    assert [len(texts_of(m.value or b"")) for m in encode([update] * 40, SinkOptions())] == [16, 16, 8]
    small = sink_options("open_protocol", {"max-message-bytes": 900})
    assert all(len(m.key or b"") + len(m.value or b"") <= 900 for m in encode([update] * 9, small))


def test_columns_of_other_protocols_have_no_defect() -> None:
    columns = (Column(name="id", type="int(11)", key=True), Column(name="n", type="bigint(20) unsigned"))
    event = RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
                      after={"id": "1", "n": "2"}, columns=columns)  # fmt: skip
    (message,) = encode([event], SinkOptions())
    assert [column.defect for column in row((message.key, message.value)).columns] == [None, None]


def test_names_of_an_enum_become_numbers() -> None:
    columns = (Column(name="e", type="enum('a','b')", by="name"), Column(name="s", type="set('a','b','c')", by="name"))
    named = RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None,
                      after={"e": "b", "s": "a,c"}, columns=columns)  # fmt: skip
    (message,) = encode([named], SinkOptions())
    assert row((message.key, message.value)).after == {"e": "2", "s": "5"}
