"""What is shown of a message, as text and as HTML."""

from __future__ import annotations

import gzip
import json
import random
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from textwrap import indent

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Op, Resolved, RowChange
from ticdc_codec.inspection import Inspector, shown
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_codec.recognition import Recognised
from ticdc_lakehouse import inspect
from ticdc_testkit.recorded_streams import base64_bytes

PAGE = (Path(__file__).parents[2] / "docs" / "codec.md").read_text(encoding="utf-8")
VECTORS = Path(__file__).parents[1] / "data" / "vectors"
EXTENSION = {"enable-tidb-extension": True}
HOSTILE = '<script>alert("&")</script>\x1b[31m\u202e'
TSO = 470613127470252033
COLUMNS = (Column(name="id", type="bigint(20)", key=True), Column(name="v", type="varchar(9)"))
UPDATE = RowChange(
    op=Op.UPDATE, database="shop", table="t", commit_ts=TSO, commit_ms=TSO >> 18, before={"id": "1", "v": "a"},
    after={"id": "1", "v": None}, columns=COLUMNS, schema_version=7,
)  # fmt: skip


def written(protocol: str, event: Event, **options: object) -> Message:
    [message] = PROTOCOLS[protocol].encode([event], sink_options(protocol, options))
    return message


@lru_cache
def vectors(file: str) -> list[tuple[bytes | None, bytes | None]]:
    with gzip.open(VECTORS / f"{file}.jsonl.gz") as lines:
        messages = [message for line in [*lines][1:] for message in json.loads(line)["messages"]]
    return [(base64_bytes(message["key"]), base64_bytes(message["value"])) for message in messages]


def vector(file: str, number: int = 0) -> tuple[bytes | None, bytes | None]:
    return vectors(file)[number]


def test_update_is_shown_as_text() -> None:
    found = inspect(written("craft", UPDATE))
    assert found.decoded
    assert str(found).splitlines() == [
        "message key null, value 59 bytes",
        "├── protocol craft the value begins with version 1 and ends with size tables that fill it: 1 event of Craft",
        f"├── update shop.t commit_ts {TSO}, 2026-11-21 07:36:50.528 UTC",
        "│   ├── id bigint KEY '1'",
        "│   └── v varchar 'a' → NULL",
        "└── bytes of the value 59 version 1, header 13, body 0 23, term dictionary 13, size tables 8, "
        "length of the size tables 1",
    ]
    assert indent(str(found), "    ") in PAGE


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (Resolved(commit_ts=TSO), [f"├── watermark commit_ts {TSO}, 2026-11-21 07:36:50.528 UTC"]),
        (
            Ddl(database="shop", table="t", commit_ts=TSO, commit_ms=0, query="DROP TABLE t", type="4"),
            [f"├── DDL shop.t commit_ts {TSO}, 2026-11-21 07:36:50.528 UTC type 4", "│   └── DROP TABLE t"],
        ),
    ],
)
def test_other_events_are_shown_as_text(event: Event, lines: list[str]) -> None:
    assert str(inspect(written("craft", event))).splitlines()[2:-1] == lines


def test_a_map_of_what_does_not_decode_is_made_only_to_explain() -> None:
    zeros = (None, bytes(64))
    assert inspect(zeros, "open-protocol").maps == ()
    assert len(inspect(zeros, "open-protocol", explain=True).maps) == 2


def test_row_decodes_once_its_schema_was_inspected() -> None:
    inspector = Inspector()
    bootstrap = Bootstrap(database="shop", table="t", columns=COLUMNS, schema_version=7)
    row = inspector.inspect(written("simple", UPDATE), "row")
    assert not row.decoded
    assert str(row).splitlines()[3].startswith("└── does not decode schema_missing: ")
    assert str(row).splitlines()[3].endswith("a row of shop.t")
    assert str(inspector.inspect(written("simple", bootstrap))).splitlines()[3:-1] == [
        "├── schema shop.t version 7",
        "│   ├── id bigint(20) KEY",
        "│   └── v varchar(9)",
    ]
    after = inspector.inspect(written("simple", UPDATE))
    assert after.decoded
    assert str(after).splitlines()[-2] == "│   └── v varchar(9) 'a' → NULL"
    assert "schema version 7" in str(after)


def test_missing_columns_and_suspect_values_are_shown() -> None:
    key_only = inspect(vector("tiflow-open_protocol-large-handle-key-only"))
    assert key_only.decoded
    float_row = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=TSO, commit_ms=0, before=None, after={"f": "1"},
        columns=(Column(name="f", type="float"),),
    )  # fmt: skip
    assert "└── f float suspect: craft-float '1'\n" in str(inspect(written("craft", float_row)))


def test_a_given_protocol_is_used_and_a_difference_is_shown() -> None:
    message = written("craft", UPDATE)
    assert inspect(message, "craft").reason == "as given"
    wrong = inspect(message, "canal-json", EXTENSION)
    assert wrong.reason.startswith("as given, although the value begins with version 1")
    assert (wrong.protocol, wrong.decoded) == ("canal_json", False)


def test_options_that_the_bytes_show_are_used_after_given_ones() -> None:
    key, value = vector("tiflow-simple-avro-snappy")
    found = inspect((key, value), "simple", {"time-zone": "Asia/Shanghai"})
    assert found.decoded
    assert found.options == {
        "encoding-format": "avro",
        "large-message-handle-compression": "snappy",
        "time-zone": "Asia/Shanghai",
    }
    assert not inspect(value or b"", "simple", {"encoding-format": "json"}).decoded


@pytest.mark.parametrize(
    ("file", "reasons"),
    [
        ("tiflow-craft-batch-4", set()),
        ("ticdc-open_protocol-snappy", set()),
        ("ticdc-debezium-start-ts", set()),
        ("tiflow-canal_json-ext-lz4", set()),
        ("tiflow-simple-json-large-claim-check", {"claim_check_missing"}),
        ("ticdc-simple-avro-claim-check", {"claim_check_missing"}),
        ("ticdc-simple-avro-lz4", set()),
    ],
)
def test_messages_of_a_file_decode_one_after_another(file: str, reasons: set[str]) -> None:
    inspector = Inspector(options={"time-zone": "Asia/Shanghai"})
    found = [inspector.inspect(message) for message in vectors(file)]
    failed = {event.reason for each in found for event in each.events if isinstance(event, Failure)}
    assert failed == reasons
    assert {each.decoded for each in found} == ({True, False} if reasons else {True})


def test_what_no_protocol_fits() -> None:
    found = inspect(b"\x00hello")
    assert (found.protocol, found.decoded, found.events) == (None, False, ())
    assert "protocol none fits the value's 6 bytes begin with 00 68 65" in str(found)
    others = Recognised(protocol="craft", reason="")
    assert Inspector(others=others).inspect(b"\x00hello").reason.startswith("as the other messages are, although ")


def test_wrong_names_are_config_errors() -> None:
    with pytest.raises(ConfigError, match="expected one of"):
        inspect(b"", "crafty")
    with pytest.raises(ConfigError, match="no option of craft"):
        inspect(written("craft", UPDATE), options=EXTENSION)


def test_each_byte_is_explained_only_if_that_is_asked_for() -> None:
    message = written("craft", Resolved(commit_ts=TSO))
    assert str(inspect(message)).endswith(
        "└── bytes of the value 20 version 1, header 13, size tables 5, length of the size tables 1"
    )
    lines = str(inspect(message, explain=True)).splitlines()
    assert lines[3:5] == ["└── bytes of the value 20", "    ├──  0 01 version = 1 uvarint"]
    assert lines[-1] == "    └── 19 05 length of the size tables = 5 uvarint, its bytes backwards"
    value = message.value or b""
    cut = str(inspect(value[:10] + value[11:], "craft", explain=True))
    assert "not read" in cut
    assert cut.splitlines()[-1].strip(" └─").startswith("bad_size at byte ")


def test_the_map_that_the_page_shows() -> None:
    row = bytes.fromhex("01a091d8e18ebba7c51601010000010102060001020404746573746e756c6c021a03010c010c07")
    assert "\n".join(str(inspect(row, explain=True)).splitlines()[5:10]) + "\n" in PAGE


class Checked(HTMLParser):
    """Refuses all that a page may not have, and gathers its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"div", "span", "details", "summary"}
        assert {name for name, _ in attrs} <= {"style", "open"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(html: str) -> str:
    checked = Checked()
    checked.feed(html)
    checked.close()
    assert checked.open == []
    return checked.text


@pytest.mark.parametrize("protocol", ["craft", "canal_json", "debezium", "open_protocol"])
def test_hostile_names_and_values_are_harmless(protocol: str) -> None:
    row = RowChange(
        op=Op.INSERT, database=HOSTILE, table=HOSTILE, commit_ts=TSO, commit_ms=0, before=None,
        after={HOSTILE: HOSTILE}, columns=(Column(name=HOSTILE, type="varchar"),),
    )  # fmt: skip
    options = EXTENSION if protocol in {"canal_json", "debezium"} else {}
    for event in (row, Ddl(database=HOSTILE, table=HOSTILE, commit_ts=TSO, commit_ms=0, query=HOSTILE, type="QUERY")):
        if isinstance(event, Ddl) and protocol != "canal_json":
            continue
        found = inspect(written(protocol, event, **options), explain=True)
        assert found.decoded
        text = page(found._repr_html_())
        assert '<script>alert("&")</script>\\x1b[31m\\u202e' in text
        assert text.isprintable()
        assert str(found).replace("\n", "").isprintable()


def test_the_type_of_a_ddl_is_harmless_too() -> None:
    ddl = Ddl(database="d", table="t", commit_ts=TSO, commit_ms=0, query="DROP TABLE t", type="4")
    message = written("debezium", ddl, **EXTENSION)
    changes = json.dumps([{"type": HOSTILE, "id": "", "table": None}]).encode()
    value = (message.value or b"").replace(b'"tableChanges":[]', b'"tableChanges":' + changes)
    found = inspect((message.key, value))
    assert found.decoded
    assert "\\x1b[31m" in str(found)
    assert str(found).replace("\n", "").isprintable()


def test_html_says_what_the_text_says() -> None:
    found = inspect(written("craft", UPDATE), explain=True)
    text = page(found._repr_html_())
    for line in str(found).splitlines():
        assert line.lstrip(" │├└─") in text


def test_long_values_are_cut() -> None:
    assert shown("x" * 300) == "x" * 200 + "… (300 characters)"


@pytest.mark.parametrize(
    "file", ["tiflow-craft", "ticdc-open_protocol", "ticdc-simple-avro", "ticdc-simple-json", "ticdc-canal_json-ext",
             "ticdc-debezium", "ticdc-canal_json-snappy"],
)  # fmt: skip
def test_whatever_the_bytes_are_something_is_shown(file: str) -> None:
    randomly = random.Random(file)
    inspector = Inspector(explain=True)
    for number in (0, 3, 40):
        key, value = vector(file, number)
        for _ in range(10):
            at = randomly.randrange(len(value or b""))
            broken = (value or b"")[:at] + randomly.randbytes(randomly.randrange(4)) + (value or b"")[at + 1 :]
            found = inspector.inspect((key, broken))
            assert str(found).startswith("message key ")
            page(found._repr_html_())
