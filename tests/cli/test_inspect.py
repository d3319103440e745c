"""``ticdc-lake inspect``: the forms of input it knows, and its exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ticdc_codec.event import Resolved
from ticdc_codec.message import Message
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_local.cli import main
from ticdc_testkit.recorded_streams import base64_text

EXTENSION = {"enable-tidb-extension": True}


def watermark(protocol: str, commit_ts: int = 5) -> Message:
    options = sink_options(protocol, EXTENSION if protocol == "canal_json" else {})
    [message] = PROTOCOLS[protocol].encode([Resolved(commit_ts=commit_ts)], options)
    return message


CRAFT, CANAL, OPEN = (watermark(protocol) for protocol in ("craft", "canal_json", "open_protocol"))


def line(message: Message) -> bytes:
    return json.dumps({"key": base64_text(message.key), "value": base64_text(message.value), "partition": 0}).encode()


def printed(message: Message) -> bytes:
    members = {"topic": "t", "partition": 0, "offset": 1, "key": None, "payload": (message.value or b"").decode()}
    return json.dumps(members).encode()


FORMS = {
    "JSON lines": (line(CRAFT) + b"\n\n" + line(OPEN) + b"\n", ["craft", "open-protocol"]),
    "kcat -J": (printed(CANAL) + b"\n" + printed(CANAL), ["canal-json"] * 2),
    "JSON values, one a line": ((CANAL.value or b"") + b"\n" + (CANAL.value or b"") + b"\n", ["canal-json"] * 2),
    "one JSON value": (CANAL.value, ["canal-json"]),
    "one binary value": (CRAFT.value, ["craft"]),
    "a value with line ends": (watermark("craft", 10).value, ["craft"]),
}


@pytest.mark.parametrize(("content", "protocols"), FORMS.values(), ids=FORMS)
def test_inspect_finds_the_protocol_in_each_form_of_input(
    content: bytes, protocols: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["inspect", str(tmp_path / "file")]) == 0
    output = capsys.readouterr().out.splitlines()
    assert [part.split()[2] for part in output if part.startswith("├── protocol")] == protocols
    assert next(part for part in output if part.startswith("message")).startswith("message 1 key ")
    assert sum("watermark" in part for part in output) == len(protocols)


def test_a_key_beside_the_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "value").write_bytes(OPEN.value or b"")
    (tmp_path / "key").write_bytes(OPEN.key or b"")
    for key in (f"@{tmp_path / 'key'}", str(base64_text(OPEN.key))):
        assert main(["inspect", str(tmp_path / "value"), "--key", key]) == 0
    assert main(["inspect", str(tmp_path / "value")]) == 1
    assert "but its key is missing" in capsys.readouterr().out


@pytest.mark.parametrize("named", [(), ("-",)], ids=["not named", "as -"])
def test_inspect_reads_standard_input(
    named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(CRAFT.value or b"")))
    assert main(["inspect", *named, "--explain"]) == 0
    assert " version = 1 uvarint\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00nothing", "protocol none fits"),
        ((CRAFT.value or b"")[:-1], "does not decode"),
        (b"\n".join([*[line(CRAFT)] * 9, line(Message(key=None, value=b"\x02"))]), "as the other messages are"),
    ],
)
def test_what_does_not_decode_is_exit_code_1(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["inspect", "--explain", str(tmp_path / "file")]) == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    assert said in shown.out


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (b"[]", "found a list"),
        (b"7", "found a number"),
        (b'{"key": null}', 'found no "value"'),
        (b'{"key": null, "value": 7}', 'found a number as "value"'),
        (b'{"key": {}, "value": null}', 'found an object as "key"'),
        (b'{"key": null, "value": "a?\\n"}', """found "value" that is no base64: 'a?\\n'"""),
        (b'{"key": null, "value": "\xc3\xa4"}', """found "value" that is no base64: '\u00e4'"""),
    ],
)
def test_a_line_that_is_no_message_is_reported_with_what_was_expected_and_found(
    wrong: bytes, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(line(CRAFT) + b"\n" + wrong)
    assert main(["inspect", str(tmp_path / "file")]) == 2
    expected = '{"key": base64 or null, "value": base64 or null}'
    assert capsys.readouterr().err == f"ticdc-lake inspect: line 2: expected {expected}; {found}\n"


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (b"[]", "found a list"),
        (b'{"topic": "t", "key": null}', 'found no "payload"'),
        (b'{"payload": ["a"]}', 'found a list as "payload"'),
        (b'{"key": true, "payload": "a"}', 'found a boolean as "key"'),
    ],
)
def test_a_line_that_kcat_does_not_print_is_reported_with_what_was_expected_and_found(
    wrong: bytes, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(printed(CANAL) + b"\n" + wrong)
    assert main(["inspect", str(tmp_path / "file")]) == 2
    expected = "what kcat -J prints, with key and payload"
    assert capsys.readouterr().err == f"ticdc-lake inspect: line 2: expected {expected}; {found}\n"


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (line(CRAFT) + b"\n{}", [], "line 2: expected {"),
        (
            line(CRAFT) + b"\nx",
            [],
            'line 2: expected {"key": base64 or null, "value": base64 or null}; found no JSON: ',
        ),
        (printed(CANAL) + b"\n[]", [], "line 2: expected what kcat -J prints"),
        (CRAFT.value, ["--protocol", "crafty"], "expected one of craft"),
        (CRAFT.value, ["--option", "encoding-format"], "--option: expected name=value"),
        (CRAFT.value, ["--option", "encoding-format=avro"], "no option of craft"),
        (CRAFT.value, ["--key", "!"], "--key: expected base64 or @"),
        (CRAFT.value, ["--key", "@/no/such"], "--key: expected base64 or @"),
    ],
)
def test_a_wrong_argument_is_one_line_and_code_2(
    content: bytes, arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["inspect", str(tmp_path / "file"), *arguments]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("ticdc-lake inspect: ")
    assert said in stderr
    assert stderr.count("\n") == 1


def test_colours_only_where_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(CRAFT.value or b"")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, colours in ((None, False), ("FORCE_COLOR", True), ("NO_COLOR", False)):
        if name is not None:
            monkeypatch.setenv(name, "1")
        assert main(["inspect", str(tmp_path / "file")]) == 0
        assert ("\x1b[36m" in capsys.readouterr().out) is colours
