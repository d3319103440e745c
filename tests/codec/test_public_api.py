"""The public API of ``ticdc_codec``. The examples in docs/codec.md and in docstrings run."""

from __future__ import annotations

import base64
import doctest
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

import ticdc_codec
import ticdc_lakehouse
from ticdc_codec import (
    Bootstrap,
    Column,
    ConfigError,
    Ddl,
    DecodeError,
    Event,
    Failure,
    Message,
    MessageDecoder,
    Op,
    Resolved,
    RowChange,
    decode,
    encode,
    inspection,
    protocols,
)
from ticdc_codec.errors import SCHEMA_MISSING
from ticdc_codec.event import NamedBy

PAGE = (Path(__file__).parents[2] / "docs" / "codec.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = [re.sub(r"^ {4}", "", text, flags=re.MULTILINE) for text in re.findall(r"\n\n((?: {4}.*\n)+)", PAGE)]

ROW = bytes.fromhex("01a091d8e18ebba7c51601010000010102060001020404746573746e756c6c021a03010c010c07")
COLUMNS = (Column(name="id", type="bigint(20)", key=True),)
INSERT = RowChange(
    op=Op.INSERT, database="d", table="t", commit_ts=9 << 18, commit_ms=9, before=None, after={"id": "1"},
    columns=COLUMNS, handle_key='["1"]', table_id=0, schema_version=7,
)  # fmt: skip
BOOTSTRAP = Bootstrap(database="d", table="t", columns=COLUMNS, schema_version=7)


def simple(*events: Event) -> list[Message]:
    return encode(events, "simple")


def test_a_bad_message_raises_alone_and_is_a_failure_among_others() -> None:
    with pytest.raises(DecodeError) as fault:
        decode(ROW[:-1], "craft")
    bad = Failure(
        reason=fault.value.reason, detail=fault.value.detail, offset=fault.value.offset, database=None, table=None
    )
    row = decode(ROW, "craft")
    assert [*decode([ROW, ROW[:-1], ROW], "craft")] == [row, (bad,), row]
    assert isinstance(row[0], RowChange)


def test_an_error_names_the_table_of_a_row() -> None:
    # The value's type: NULL, made a text that is missing.
    broken = ROW.replace(bytes.fromhex("0102060001"), bytes.fromhex("01020f0006"))
    with pytest.raises(DecodeError) as fault:
        decode(broken, "craft")
    assert (fault.value.database, fault.value.table) == ("test", "test")


def test_every_form_of_a_message_is_the_same() -> None:
    (message,) = encode([INSERT], "open-protocol")
    pair = (message.key, message.value)
    expected = decode(message, "open-protocol")
    assert len(expected) == 1
    assert decode(pair, "open_protocol") == expected
    assert [*decode([message, pair], "open-protocol")] == [expected, expected]
    assert decode((None, ROW), "craft") == decode(ROW, "craft")


def test_a_message_may_have_no_event() -> None:
    empty = ((1).to_bytes(8), b"")
    assert decode(empty, "open-protocol") == ()
    assert [*decode([empty, empty], "open-protocol")] == [(), ()]


@pytest.mark.parametrize("wrong", ["text", [ROW.hex()], [ROW, 1], [(ROW, ROW, ROW)]])
def test_what_is_no_message_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a message: bytes, \(key, value\) or Message, found "):
        [*decode(wrong, "craft")]


@pytest.mark.parametrize(
    ("protocol", "options", "said"),
    [
        ("crafty", {}, "expected one of"),
        ("debezium-avro", {}, "expected one of"),
        ("craft", {"encoding-format": "avro"}, "no option of craft"),
    ],
)
def test_a_wrong_name_is_a_config_error(protocol: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        decode(ROW, protocol, options)


def test_a_decoder_remembers_schemas() -> None:
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    decoder = MessageDecoder("simple")
    with pytest.raises(DecodeError, match="schema_missing"):
        decoder.decode(row)
    assert decoder.decode(bootstrap) == (BOOTSTRAP,)
    assert decoder.decode(row) == (INSERT,)


def test_claim_check_objects_come_from_the_folder(tmp_path: Path) -> None:
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    assert row.value is not None
    (tmp_path / "a.json").write_bytes(row.value)
    named = json.loads(row.value) | {"claimCheckLocation": "s3://bucket/a.json", "handleKeyOnly": True}
    options = {
        "large-message-handle-option": "claim-check",
        "claim-check-raw-value": True,
        "claim-check-storage-uri": f"file://{tmp_path}",
    }
    decoder = MessageDecoder("simple", options)
    decoder.decode(bootstrap)
    assert decoder.decode(json.dumps(named).encode()) == (INSERT,)


def test_messages_of_a_table_are_decoded_in_batches_of_some_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes less than 2 GiB of text in one."""
    messages = [ROW, b"no message", *[ROW] * 3]
    whole = MessageDecoder("craft").table(messages)
    monkeypatch.setattr(protocols, "_PART_BYTES", 2 * len(ROW))
    monkeypatch.setattr(protocols, "_BATCH_BYTES", 2 * len(ROW))
    in_parts = MessageDecoder("craft").table(messages)
    assert in_parts["message"].num_chunks == 2
    assert in_parts.equals(whole)
    assert in_parts["message"].to_pylist() == [0, 1, 2, 3, 4]
    assert [*MessageDecoder("craft").decode(iter(messages))] == [*decode(messages, "craft")]
    assert MessageDecoder("craft").table([]).schema == whole.schema


def test_rows_of_a_table_may_come_before_their_schema() -> None:
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    kinds = MessageDecoder("simple").table([*[row] * 5000, bootstrap])["kind"].to_pylist()
    assert (kinds.count("row"), kinds.count("bootstrap")) == (5000, 1)


@pytest.mark.parametrize("rows", [1, 15, 16, 511, 512, 5000])
@pytest.mark.parametrize("options", [{}, {"claim-check-storage-uri": "file:///nowhere"}])
def test_rows_among_many_messages_may_come_before_their_schema(rows: int, options: dict[str, str]) -> None:
    options = options and {"large-message-handle-option": "claim-check", **options}
    [watermark] = simple(Resolved(commit_ts=7))
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    events = decode([watermark, *[row] * rows, watermark, bootstrap, row], "simple", options)
    watermarks = (Resolved(commit_ts=7),)
    assert [*events] == [watermarks, *[(INSERT,)] * rows, watermarks, (BOOTSTRAP,), (INSERT,)]


def test_what_waits_for_a_schema_that_does_not_come_is_decoded_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    _, row = simple(BOOTSTRAP, INSERT)
    decoder = MessageDecoder("simple")
    counts: list[int] = []
    decode_batch = decoder._decoder.decode
    monkeypatch.setattr(
        decoder._decoder, "decode", lambda keys, values: (counts.append(len(keys)), decode_batch(keys, values))[1]
    )
    failures = [failure.reason for (failure,) in decoder.decode([row] * 20_000) if isinstance(failure, Failure)]
    assert failures == [SCHEMA_MISSING] * 20_000
    assert sum(counts) < 3 * 20_000


def test_rows_beside_one_that_waits_keep_the_schema_that_they_were_sent_with() -> None:
    """A table may take a name with the schema version that it had (a batch of CREATE TABLE, and a RENAME)."""
    other = replace(BOOTSTRAP, columns=(replace(COLUMNS[0], type="varchar(9)"),))
    first, unknown, row, second, watermark = simple(
        BOOTSTRAP, replace(INSERT, table="u"), INSERT, other, Resolved(commit_ts=7)
    )
    events = [*decode([first, unknown, row, second, *[watermark] * 2000], "simple")]
    assert isinstance(events[1][0], Failure)
    assert events[2] == (INSERT,)


def test_rows_wait_for_their_schema_in_a_limited_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    monkeypatch.setattr(protocols, "_BATCH_SIZE", 2)
    monkeypatch.setattr(protocols, "_PART_BYTES", 4 * (len(row.key or b"") + len(row.value or b"")))
    kinds = [type(event).__name__ for (event,) in decode([*[row] * 5, bootstrap, row], "simple")]
    assert kinds == [*["Failure"] * 4, "RowChange", "Bootstrap", "RowChange"]


def test_rows_whose_schema_came_are_decoded_when_there_are_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if fewer messages came than wait, after which it would not be looked for otherwise."""
    bootstrap, row, watermark = simple(BOOTSTRAP, INSERT, Resolved(commit_ts=7))
    messages = [*[row] * 4, watermark, watermark, bootstrap, watermark]
    monkeypatch.setattr(protocols, "_BATCH_SIZE", 2)
    monkeypatch.setattr(protocols, "_PART_BYTES", sum(len(m.key or b"") + len(m.value or b"") for m in messages))
    kinds = [type(event).__name__ for (event,) in decode([*messages, row], "simple")]
    assert kinds == [*["RowChange"] * 4, "Resolved", "Resolved", "Bootstrap", "Resolved", "RowChange"]


def test_only_where_schemas_come_late_many_bytes_are_decoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row repeats its columns' names and types, ten times the bytes of a message of Craft."""
    monkeypatch.setattr(protocols, "_BATCH_BYTES", 2 * len(ROW))
    assert MessageDecoder("craft").table([ROW] * 4)["message"].num_chunks == 2
    bootstrap, row = simple(BOOTSTRAP, INSERT)
    assert [*decode([row, row, bootstrap], "simple")] == [(INSERT,), (INSERT,), (BOOTSTRAP,)]


def test_messages_are_read_as_they_are_asked_for() -> None:
    (message,) = encode([Resolved(commit_ts=5)], "craft")
    taken = count()

    def endless() -> Iterator[Message]:
        while next(taken) < 10_000:
            yield message

    assert next(decode(endless(), "craft")) == (Resolved(commit_ts=5),)
    assert next(taken) <= 600


def test_the_library_is_importable_without_what_only_the_lakehouse_needs() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "delta", "yaml", "sqlglot", "rich", "ticdc_lakehouse")))
from ticdc_codec import decode, encode, inspect, Resolved
for protocol in ("craft", "open-protocol", "simple"):
    for message in encode([Resolved(commit_ts=7)], protocol):
        assert decode(message, protocol) == (Resolved(commit_ts=7),)
        assert "watermark" in str(inspect(message))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_lakehouse_offers_decode_and_inspect_without_loading_spark() -> None:
    code = "import sys; from ticdc_lakehouse import decode, inspect; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert ticdc_lakehouse.decode is decode


def test_every_public_name_of_the_library_exists() -> None:
    assert all(hasattr(ticdc_codec, name) for name in ticdc_codec.__all__)


@pytest.mark.parametrize("module", [protocols, inspection])
def test_the_examples_in_docstrings_run(module: ModuleType) -> None:
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("protocol", ["craft", "open-protocol", "simple", "canal-json", "debezium"])
def test_encoded_events_decode_to_the_same_values(protocol: str) -> None:
    options = {"enable-tidb-extension": True} if protocol == "canal-json" else None
    # Without a version, Simple's encoder sends the row's schema first.
    messages = encode([replace(INSERT, schema_version=None)], protocol, options)
    rows = [event for events in decode(messages, protocol, options) for event in events if isinstance(event, RowChange)]
    assert [(row.op, row.after, row.before) for row in rows] == [(INSERT.op, INSERT.after, INSERT.before)]


@pytest.mark.parametrize("protocol", ["craft", "simple"])
def test_an_event_that_the_protocol_cannot_carry_is_a_config_error(protocol: str) -> None:
    with pytest.raises(ConfigError, match="commit_ts"):
        encode([Ddl(database="d", table="t", commit_ts=None, commit_ms=9, query="DROP TABLE t", type="4")], protocol)


@pytest.mark.parametrize("protocol", ["craft", "open-protocol", "canal-json", "debezium", "simple"])
def test_a_failure_is_not_encoded(protocol: str) -> None:
    failure = Failure(reason="bad_size", detail="as decoded", offset=None, database=None, table=None)
    with pytest.raises(ConfigError, match=r"as decoded|found Failure"):
        encode([failure], protocol)


@pytest.mark.parametrize("protocol", ["craft", "open-protocol"])
def test_a_ddl_without_the_number_of_its_type_is_a_config_error(protocol: str) -> None:
    """Canal-JSON, Debezium and Simple have a name instead, which several of TiDB's types may share."""
    for kind in ("ALTER", None):
        with pytest.raises(ConfigError, match=r"needs .*TiDB's number of"):
            encode([Ddl(database="d", table="t", commit_ts=9, commit_ms=9, query="DROP TABLE t", type=kind)], protocol)


@pytest.mark.parametrize(
    ("protocol", "by"), [("craft", "name"), ("open-protocol", "name"), ("canal-json", "name"), ("debezium", "index")]
)
def test_names_of_an_enum_become_numbers_only_by_a_type_that_lists_them(protocol: str, by: NamedBy) -> None:
    columns = (Column(name="e", type="enum", by=by),)
    with pytest.raises(ConfigError, match="'enum' does not list"):
        encode([replace(INSERT, after={"e": "1"}, columns=columns)], protocol)


def run(example: str, **given: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example", **given}
    exec(compile(example, "docs/codec.md", "exec"), names)
    return names


def test_examples_of_one_message_and_of_columns_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(EXAMPLES[1])
    assert capsys.readouterr().out == PRINTED[0]
    run(EXAMPLES[4], value=names["value"])
    assert capsys.readouterr().out == PRINTED[1]


def test_example_of_encoding_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    run(EXAMPLES[5])
    assert capsys.readouterr().out == PRINTED[2]


def test_example_of_inspecting_runs() -> None:
    (message,) = encode([INSERT], "craft")
    run(EXAMPLES[6], key=None, value=message.value)


def test_example_of_a_file_prints_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {
        "id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": "INSERT", "es": 9, "ts": 9,
        "sql": "", "sqlType": {"id": 4}, "mysqlType": {"id": "int"}, "old": None, "data": [{"id": "1"}],
        "_tidb": {"commitTs": 9 << 18},
    }  # fmt: skip
    texts = (json.dumps(value).encode(), b"{")
    lines = [json.dumps({"key": None, "value": base64.b64encode(text).decode()}) for text in texts]
    (tmp_path / "messages.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    run(EXAMPLES[2])
    assert capsys.readouterr().out.startswith("insert t {'id': '1'}\nskipped: truncated ")


def test_example_of_kafka_prints_its_events(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = iter([simple(BOOTSTRAP), simple(INSERT)])

    def record(message: Message) -> SimpleNamespace:
        read = {"key": message.key, "value": message.value, "error": None, "partition": 2, "offset": 17}
        return SimpleNamespace(**{name: lambda found=found: found for name, found in read.items()})

    class Consumer:
        def __init__(self, options: dict[str, str]) -> None:
            assert options["bootstrap.servers"]

        def subscribe(self, topics: list[str]) -> None:
            assert topics

        def consume(self, most: int, timeout: float) -> list[SimpleNamespace]:
            assert (most, timeout) == (500, 1.0)
            return [record(message) for message in next(batches)]

    monkeypatch.setattr(confluent_kafka, "Consumer", Consumer)
    with pytest.raises(StopIteration):
        run(EXAMPLES[3])
    assert capsys.readouterr().out == f"2 17 {BOOTSTRAP}\n2 17 {INSERT}\n"


def test_every_example_of_the_page_is_run_here() -> None:
    assert len(EXAMPLES) == 7
    assert EXAMPLES[0] == "from ticdc_codec import decode, encode, inspect\n"


_ROW = RowChange(
    op=Op.INSERT, database="d", table="t", commit_ts=470613127470252033, commit_ms=1795246610528, before=None,
    after={"id": "1", "n": "1.5", "b": "3", "s": "a"},
    columns=(
        Column(name="id", type="bigint", key=True), Column(name="n", type="decimal(5,2)"),
        Column(name="b", type="bit(4)"), Column(name="s", type="varchar(9)"),
    ),
)  # fmt: skip
_NULL = (Column(name="x", type="null"),)
_CHECKED = {"integrity-check-level": "correctness"}
_AVRO = {"encoding-format": "avro"}
UNFIT: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "an image is missing": ("craft", {}, {"after": None}),
    "an image is missing for Canal-JSON": ("canal_json", {}, {"after": None}),
    "an update without its row before, for Canal-JSON": ("canal_json", {}, {"op": Op.UPDATE}),
    "an image is missing for Debezium": ("debezium", {}, {"after": None}),
    "an image is missing for Open Protocol": ("open_protocol", {}, {"after": None}),
    "an image is missing for the checksum": ("simple", _CHECKED, {"after": {}}),
    "a column too many": ("open-protocol", {}, {"after": {"id": "1", "z": "1"}}),
    "a column too many for Canal-JSON": ("canal-json", {}, {"after": {"id": "1", "z": "1"}}),
    "a column too many for Debezium": ("debezium", {}, {"after": {"id": "1", "z": "1"}}),
    "no columns": ("open-protocol", {}, {"columns": ()}),
    "a key column is missing": ("debezium", {}, {"after": {"s": "a"}}),
    "a column of the checksum is missing": ("simple", _CHECKED, {"after": {"id": "1"}}),
    "a lone surrogate": ("open-protocol", {}, {"after": {"id": "1", "s": "\ud800"}}),
    "a commit_ts of 65 bits": ("simple", _AVRO, {"commit_ts": 1 << 64}),
    "a table id of 65 bits": ("simple", _AVRO, {"table_id": 1 << 64}),
    "a number out of range": ("debezium", {}, {"after": {"id": "1", "n": "1e400"}}),
    "too many bits": ("debezium", {}, {"after": {"id": "1", "b": "9" * 400}}),
    "a negative number of bits": ("debezium", {}, {"after": {"id": "1", "b": "-1"}}),
    "a checksum of no number": ("simple", _CHECKED, {"after": {"id": "x", "n": None, "b": None, "s": None}}),
    "infinity": ("open_protocol", {}, {"after": {"x": "inf"}, "columns": (Column(name="x", type="double"),)}),
    "a value of the type NULL": ("craft", {}, {"after": {"x": "1"}, "columns": _NULL}),
    "a value of the type NULL for Open Protocol": ("open_protocol", {}, {"after": {"x": "1"}, "columns": _NULL}),
}


@pytest.mark.parametrize(("protocol", "options", "members"), UNFIT.values(), ids=UNFIT)
def test_an_event_that_does_not_fit_is_a_config_error(
    protocol: str, options: dict[str, str], members: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=f"^({protocol}|integrity-check-level): "):
        encode([replace(_ROW, **members)], protocol, options)


def test_the_error_about_an_unknown_column_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^open-protocol: an image .* other columns than its row: KeyError\('z'\)$"):
        encode([replace(_ROW, after={"id": "1", "z": "1"})], "open-protocol")
