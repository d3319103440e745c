"""``ticdc-lake generate`` into files."""

from __future__ import annotations

import time
from base64 import b64decode
from pathlib import Path

import orjson
import pytest
import yaml

from ticdc_codec.event import Op, RowChange
from ticdc_codec.options import CraftFloat
from ticdc_codec.protocols import MessageDecoder
from ticdc_lakehouse.config.feed import FEED_NAME, load_feed
from ticdc_lakehouse.policy import Mode
from ticdc_local.cli import main, parsed
from ticdc_local.cli.decode import decoded_lines
from ticdc_local.cli.generate import next_command, paced
from ticdc_testkit.workload.stream import Interval

ROW = RowChange(op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, before=None, after={}, columns=())


def generate(*arguments: object) -> int:
    return main(["generate", "--workload", "shop", "--rows", "50", *map(str, arguments)])


@pytest.mark.parametrize("protocol", ["craft", "canal-json", "debezium", "open-protocol", "simple"])
def test_the_feed_file_reads_what_was_written(protocol: str, tmp_path: Path) -> None:
    """Every line decodes with the feed's own options, and watermarks are in every partition."""
    stream, feed_file = tmp_path / "stream.jsonl", tmp_path / "feeds" / "shop_made.yml"
    assert generate("--protocol", protocol, "--partitions", 2, "--file", stream, "--feed-file", feed_file) == 0
    feed = load_feed(feed_file)
    options = yaml.safe_load(feed_file.read_text())["options"]
    written = [orjson.loads(line) for line in stream.read_bytes().splitlines()]
    decoded = dict(decoded_lines(MessageDecoder(feed.protocol, options), stream.read_bytes().splitlines()))
    assert feed.topics == ("shop",)
    assert {line["topic"] for line in written} == {"shop"}
    for partition in (0, 1):
        own = [(number, line) for number, line in enumerate(written, start=1) if line["partition"] == partition]
        assert [line["offset"] for _, line in own] == [*range(len(own))]
        kinds = {event["kind"] for number, _ in own for event in decoded[number]["events"]}  # type: ignore[attr-defined]
        assert {"row", "resolved"} <= kinds


@pytest.mark.parametrize(
    ("topic", "given", "expected"),
    [
        ("crm", [], "feed new crm --protocol simple --topic crm --bootstrap-servers h:1"),
        (
            "2026.Crm",
            ["encoding-format=avro", "time-zone=Asia/Shanghai"],
            "feed new feed_2026_crm --protocol simple --topic 2026.Crm --bootstrap-servers h:1 "
            "--option encoding-format=avro --time-zone Asia/Shanghai",
        ),
    ],
)
def test_the_feed_that_is_proposed_reads_the_stream(topic: str, given: list[str], expected: str) -> None:
    options = [part for pair in given for part in ("--option", pair)]
    stream = ("--workload", "shop", "--protocol", "simple", "--bootstrap-servers", "h:1")
    assert next_command(parsed(["generate", *stream, *options]), topic) == f"ticdc-lake {expected}"
    name = parsed(expected.split()).name
    assert FEED_NAME.fullmatch(name)


def test_with_a_schema_file_the_tables_existed_before(tmp_path: Path) -> None:
    stream, schema, feed_file = tmp_path / "stream.jsonl", tmp_path / "sql" / "shop.sql", tmp_path / "shop.yml"
    given = ("--protocol", "open-protocol", "--file", stream, "--schema-file", schema, "--feed-file", feed_file)
    assert generate(*given) == 0
    assert [table.table for table in load_feed(feed_file).schema_tables] == [
        "customers",
        "stock",
        "orders",
        "order_items",
    ]
    decoded = decoded_lines(MessageDecoder("open_protocol"), stream.read_bytes().splitlines())
    kinds = {event["kind"] for _, line in decoded for event in line["events"]}  # type: ignore[attr-defined]
    assert kinds == {"row", "resolved"}


def test_options_reach_the_bytes_and_the_feed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed_file = tmp_path / "shop.yml"
    option = ("--option", "enable-tidb-extension=false", "--option", "time-zone=Asia/Tokyo")
    assert generate("--protocol", "canal-json", "--file", "-", "--feed-file", feed_file, *option) == 0
    out, err = capsys.readouterr()
    messages = len(out.splitlines())
    assert f"{messages} messages, {messages - 5} row changes" in err  # and five DDLs: no watermarks
    feed = load_feed(feed_file)
    options = feed.sink_options
    assert (options.enable_tidb_extension, options.time_zone.key) == (False, "Asia/Tokyo")
    assert feed.gold.mode is Mode.EVENTUAL


def test_an_existing_feed_file_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed_file = tmp_path / "shop.yml"
    feed_file.write_text("# by hand")
    given = ("--protocol", "craft", "--file", tmp_path / "f", "--feed-file", feed_file)
    assert generate(*given) == 2
    assert f"--feed-file: {feed_file}: exists already; --force overwrites it" in capsys.readouterr().err
    assert feed_file.read_text() == "# by hand"
    assert generate(*given, "--force") == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"wrote {feed_file}"
    assert load_feed(feed_file).protocol == "craft"


def test_an_existing_schema_file_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "shop.sql"
    schema.write_text("-- by hand")
    given = ("--protocol", "craft", "--file", tmp_path / "f", "--schema-file", schema)
    assert generate(*given) == 2
    assert f"--schema-file: {schema}: exists already; --force overwrites it" in capsys.readouterr().err
    assert schema.read_text() == "-- by hand"
    assert generate(*given, "--force") == 0
    assert "CREATE TABLE" in schema.read_text()


@pytest.mark.parametrize(
    ("feed_file", "more"),
    [("shop.yml", ()), ("made.yml", ("--topic", "no/topic")), ("made.yml", ("--file", ".")), ("folder.yml", ())],
)
def test_no_schema_file_is_written_where_generate_refuses(
    feed_file: str, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one changed that --force would overwrite."""
    monkeypatch.chdir(tmp_path)
    Path("shop.yml").write_text("# by hand")
    Path("folder.yml").mkdir()
    Path("old.sql").write_text("-- by hand")
    given = ("--protocol", "craft", "--file", "f", "--feed-file", feed_file, *more)
    assert generate(*given, "--schema-file", "new.sql") == 2
    if feed_file != "shop.yml":
        assert generate(*given, "--schema-file", "old.sql", "--force") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.yml", "old.sql", "shop.yml"]
    assert (Path("old.sql").read_text(), Path("shop.yml").read_text()) == ("-- by hand", "# by hand")


def test_a_run_is_the_next_command_only_where_it_finds_the_feed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    feeds = tmp_path / "resources" / "feeds"
    (tmp_path / "databricks.yml").touch()

    def following(feed_file: object) -> str | None:
        stream = ("--workload", "shop", "--protocol", "craft", "--bootstrap-servers", "h:1")
        return next_command(parsed(["generate", *stream, "--feed-file", str(feed_file)]), "shop")

    assert following(feeds / "made.yml") == following("resources/feeds/made.yml") == "ticdc-lake run --feed made"
    assert following("made.yml") is None
    (tmp_path / "databricks.yml").unlink()
    assert following("resources/feeds/made.yml") is None


def test_a_feed_file_that_cannot_be_read_does_not_take_the_place_of_one_that_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed_file = tmp_path / "shop.yml"
    feed_file.write_text("# by hand")
    given = ("--protocol", "craft", "--file", tmp_path / "f", "--feed-file", feed_file, "--topic", "no/topic")
    assert generate(*given, "--force") == 2
    assert "topic" in capsys.readouterr().err
    assert feed_file.read_text() == "# by hand"


def test_decode_fails_with_a_message_that_does_unless_it_is_lenient(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines").write_text('{"key": null, "value": "e30="}\n')
    assert main(["decode", "--protocol", "craft", str(tmp_path / "lines")]) == 1
    out, err = capsys.readouterr()
    assert '"error":{' in out
    inspect = f"ticdc-lake inspect {tmp_path / 'lines'}"
    assert err == f"1 message does not decode\nWhich protocol and options the bytes show: {inspect}\n"
    assert main(["decode", "--protocol", "craft", "--lenient", str(tmp_path / "lines")]) == 0


@pytest.mark.parametrize(("workload", "least"), [("shop", 20), ("sysbench", 100)])
def test_the_help_says_how_many_rows_the_first_transaction_has(
    workload: str, least: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["generate", "--workload", workload, "--protocol", "craft", "--file", "-", "--rows", "1"]) == 0
    assert f" {least} row changes, 1 transaction," in capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    assert f"{least} of {workload}" in capsys.readouterr().out


def test_no_faster_than_the_rate() -> None:
    interval = Interval(events={0: [ROW] * 5}, messages={}, transactions=1)
    started = time.monotonic()
    assert list(paced([interval] * 4, 100)) == [interval] * 4
    assert time.monotonic() - started >= 0.2


def test_an_option_that_is_called_null_is_written_as_a_word(tmp_path: Path) -> None:
    feed_file = tmp_path / "shop.yml"
    option = ("--option", "craft-float=null", "--option", "max-batch-size=4")
    assert generate("--protocol", "craft", "--file", tmp_path / "f", "--feed-file", feed_file, *option) == 0
    options = load_feed(feed_file).sink_options
    assert (options.craft_float, options.max_batch_size) == (CraftFloat.NULL, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--feed-file", "Bad Name.yml"], "expected a file name of at most 40 letters"),
        (["--feed-file", "good.yml", "--topic", "a b"], "expected topic names of letters"),
    ],
)
def test_a_feed_that_no_job_could_read_is_not_left_behind(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate("--protocol", "craft", "--file", "f", *arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        (
            "127.0.0.1:1",
            "brokers do not answer (127.0.0.1:1: Connection refused); start them, or correct --bootstrap-servers",
        ),
        ("localhost", "--bootstrap-servers: expected host:port, a list of them or comma text, found 'localhost'"),
    ],
)
def test_brokers_that_do_not_answer_are_reported_at_once(
    servers: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    given = ("--protocol", "craft", "--bootstrap-servers", servers, "--feed-file", tmp_path / "f.yml")
    assert generate(*given) == 2
    assert time.monotonic() - began < 5
    assert capsys.readouterr().err == f"ticdc-lake generate: {said}\n"
    assert [*tmp_path.iterdir()] == []


def test_a_feed_file_that_no_command_would_find_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--protocol", "craft", "--file", "-", "--feed-file", tmp_path / "f.yaml") == 2
    assert "f.yaml: expected the ending .yml" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--file", "--feed-file", "--schema-file"])
def test_a_file_that_cannot_be_written_is_named(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = ("--file", "-") if option != "--file" else ()
    folder = tmp_path / "folder.yml"
    folder.mkdir()
    assert generate("--protocol", "craft", *others, option, folder) == 2
    stderr = capsys.readouterr().err
    assert stderr == f"ticdc-lake generate: {option}: {folder}: cannot be written: Is a directory\n"


def test_a_closed_output_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)  # as Python has it after >&-
    assert generate("--protocol", "craft", "--file", "-") == 2
    stderr = capsys.readouterr().err
    assert stderr == "ticdc-lake generate: --file: -: cannot be written: standard output is closed\n"


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
def test_a_wrong_number_is_explained(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate("--protocol", "craft", "--file", "-", "--rate", number)
    assert f"argument --rate: expected a whole number, 1 or more, found '{number}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--protocol", "crafty"], "protocol: expected one of craft"),
        (["--protocol", "craft", "--workload", "bank"], "workload: expected one of shop, sysbench, found 'bank'"),
        (["--protocol", "craft", "--option", "encoding-format=avro"], "encoding-format: no option of craft"),
    ],
)
def test_a_wrong_argument_is_one_line_and_leaves_nothing(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate("--file", tmp_path / "f", "--feed-file", tmp_path / "g.yml", *arguments) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"ticdc-lake generate: {said}")
    assert stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


LARGE = {
    "canal-json": {"max-message-bytes": 549},
    "open-protocol": {"max-message-bytes": 423},
    "simple": {"max-message-bytes": 286, "encoding-format": "avro"},
}
"""Limits between the shortest and the longest rows of sysbench."""


def sysbench(protocol: str, file: str, *arguments: object, **options: object) -> int:
    given = {name.replace("_", "-"): value for name, value in options.items()} | LARGE[protocol]
    pairs = [part for name, value in given.items() for part in ("--option", f"{name}={value}")]
    before = ("--schema-file", "sysbench.sql", "--force", "--workload", "sysbench")
    return generate("--protocol", protocol, "--file", file, *before, *arguments, *pairs)


@pytest.mark.parametrize("protocol", LARGE)
def test_claim_check_objects_lie_where_the_feed_looks_for_them(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are those of the same stream without them."""
    monkeypatch.chdir(tmp_path)
    claim_check = {"large_message_handle_option": "claim-check", "claim_check_storage_uri": "claims"}
    assert sysbench(protocol, "whole", "--feed-file", "whole.yml") == 0
    assert sysbench(protocol, "large", "--feed-file", "large.yml", **claim_check) == 0

    def rows(name: str) -> list[object]:
        feed, lines = load_feed(Path(f"{name}.yml")), Path(name).read_bytes().splitlines()
        options = yaml.safe_load(Path(f"{name}.yml").read_text())["options"]
        decoded = decoded_lines(MessageDecoder(feed.protocol, options), lines)
        return [event for _, line in decoded for event in line["events"] if event["kind"] != "bootstrap"]  # type: ignore[attr-defined]

    assert 0 < len([*Path("claims").iterdir()]) < 100
    assert rows("large") == rows("whole")


def test_a_stream_of_handle_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sysbench("canal-json", "keys", large_message_handle_option="handle-key-only") == 0
    values = [b64decode(orjson.loads(line)["value"]) for line in Path("keys").read_bytes().splitlines()]
    marked = [b'"onlyHandleKey":true' in value for value in values]
    assert 0 < sum(marked) < len(marked)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"large_message_handle_option": "claim-check"}, "claim-check-storage-uri: missing"),
        (
            {"large_message_handle_option": "claim-check", "claim_check_storage_uri": "taken/claims"},
            "claim-check-storage-uri: cannot write into taken/claims",
        ),
    ],
)
def test_a_place_that_cannot_take_claim_checks_is_named(
    options: dict[str, object],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    assert sysbench("open-protocol", "-", **options) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"ticdc-lake generate: {said}")
    assert stderr.count("\n") == 1
