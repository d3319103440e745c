"""Which recorded files ``verify-stream`` takes, and what it prints of them; without Spark."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_local.cli import main
from ticdc_local.cli.verify_stream import Result, chosen, state, summary
from ticdc_local.kafka import recorded_messages
from ticdc_local.verify_stream import Verdict, mode_of, write_feed
from ticdc_testkit.comparison import LOST, differences
from ticdc_testkit.recorded_streams import RecordedStream, answers, recorded_stream, recorded_streams

STREAMS = Path(__file__).parents[1] / "data" / "streams"


def stream(file: str, watermarks: int = 9) -> RecordedStream:
    return RecordedStream(
        folder=Path("basic"),
        file=f"{file}.jsonl.gz",
        protocol="craft",
        options={},
        time_zone="UTC",
        partitions=1,
        watermarks=watermarks,
    )


def test_every_message_file_of_a_stream_is_read() -> None:
    found = recorded_streams(STREAMS, {})
    assert {each.messages for each in found} == set(STREAMS.glob("*/*.jsonl.gz")) - set(STREAMS.glob("*/answers*"))
    assert all((mode_of(each) is Mode.EVENTUAL) == ("noext" in each.file) for each in found)
    assert [*map(str, recorded_streams(STREAMS / "ticdc-bank", {}))] == ["ticdc-bank/canal_json.jsonl.gz"]


def test_an_option_goes_where_the_protocol_has_it() -> None:
    given = {each.protocol: each.options for each in recorded_streams(STREAMS, {"craft-float": "trust"})}
    assert given["craft"] == {"max-batch-size": 16, "craft-float": "trust"}
    assert given["canal_json"] == {"enable-tidb-extension": True}


@pytest.mark.parametrize(
    ("kind", "wanted", "found", "lost"),
    [
        ("decimal(30,4)", "99999999999999999999.0001", "100000000000000000000.0000", True),
        ("decimal(30,4)", "99999999999999999999.0001", "99999999999990000000.0000", False),
        ("decimal(30,4)", "1.0000", None, False),
        ("decimal(20,0)", "99999999999999999999", None, True),
        ("decimal(20,0)", "99999999999999900000", None, False),
        ("date", "0000-00-00", None, True),
        ("datetime", "0001-01-01 00:00:01", "2001-01-01 00:00:01", True),
        ("datetime(3)", "2024-05-00 00:00:00.000", None, True),
        ("date", "2024-05-01", None, False),
        ("time", "-01:00:00", None, False),
        ("varchar(9)", "a", "b", False),
    ],
)
def test_what_debezium_cannot_carry(kind: str, wanted: str, found: str | None, lost: bool) -> None:
    columns = [{"name": "id", "type": "int", "key": "PRI"}, {"name": "v", "type": kind, "key": ""}]
    (difference,) = differences("t", columns, [["1", wanted]], [("1", found)], LOST["debezium"])
    assert (difference.lost, difference.column) == (lost, "v")
    (other,) = differences("t", columns, [["1", wanted]], [("1", found)], LOST.get("craft"))
    assert not other.lost


def test_file_selects_message_files_by_name() -> None:
    found = recorded_streams(STREAMS, {})
    assert {each.protocol for each in chosen(found, ["craft.jsonl.gz"])} == {"craft"}
    assert chosen(found, []) == found


def test_a_file_without_watermarks_is_for_the_eventual_mode() -> None:
    assert mode_of(stream("noext", watermarks=0)) is Mode.EVENTUAL


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--file", "craft.json"], "--file: expected one of canal_json-noext.jsonl.gz, canal_json.jsonl.gz, "),
        (["--option", "craft-floats=trust"], "craft-floats: unknown sink-uri option"),
        (["--markdown", "/no/such/folder/x.md"], "--markdown: /no/such/folder/x.md: cannot be written: No such file"),
    ],
)
def test_a_wrong_argument_is_one_line_and_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify-stream", str(STREAMS), *arguments]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"ticdc-lake verify-stream: {said}")
    assert stderr.count("\n") == 1


def test_the_schema_file_of_names_with_dots(tmp_path: Path) -> None:
    creates = {f"my.db.{name}": f"CREATE TABLE `{name}` (id INT KEY)" for name in ("t", "a.b")}
    described = {**json.loads(DESCRIBED), "tables_at_start": creates}
    (tmp_path / "stream.json").write_text(json.dumps(described))
    found = tables_from_sql(recorded_stream(tmp_path, "craft.jsonl.gz", {}).create_statements())
    assert [tuple(table.name) for table in found] == [("my.db", "t"), ("my.db", "a.b")]


@pytest.mark.parametrize("watermarks", [0, 9])
def test_the_feed_file_has_the_zone_of_the_sessions_that_ran_ddl(watermarks: int, tmp_path: Path) -> None:
    basic = recorded_stream(STREAMS / "tiflow-basic", "canal_json.jsonl.gz", {})
    known = replace(basic, watermarks=watermarks, ddl_time_zone="Asia/Shanghai")
    zones = [load_feed(write_feed(s, tmp_path, "f", "b:9092", "t")).gold.ddl_time_zone for s in (basic, known)]
    assert zones == [None, ZoneInfo("Asia/Shanghai")]


def test_a_folder_without_streams(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a folder with stream\.json, or a folder of such folders"):
        recorded_streams(tmp_path, {})


DESCRIBED = (
    b'{"time_zone": "UTC", "files": [{"file": "craft.jsonl.gz", "protocol": "craft", "options": {}, "counts": {}}]}'
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "expected the description of a recorded stream: Input data was truncated"),
        (b"[]", "expected the description of a recorded stream: Expected `object`, got `array`"),
        (b"{}", "expected the description of a recorded stream: Object missing required field `files`"),
        (DESCRIBED.replace(b"craft.", b"\xff."), "expected the description of a recorded stream: "),
        (
            DESCRIBED.replace(b'"counts": {}', b'"counts": 1'),
            r"Expected `object`, got `int` - at `\$\.files\[0\]\.counts`",
        ),
        (DESCRIBED, r"expected answers\.jsonl\.gz beside stream\.json, found none"),
    ],
)
def test_a_folder_that_is_damaged_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "stream.json").write_bytes(content)
    with pytest.raises(ConfigError, match=f"{tmp_path}.*{said}"):
        recorded_streams(tmp_path, {})


# Without the time, which names of tests would have in them, another in each process.
WHOLE = gzip.compress(b'{"watermark": 1, "tables": {}}\n' * 99, mtime=0)
PART = gzip.compress(b'{"watermark": 1}\n', mtime=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no gzip", "expected gzipped lines: Not a gzipped file"),
        (WHOLE[:-9], "expected gzipped lines: Compressed file ended"),
        (WHOLE[:12] + b"\xff\xff\xff\xff" + WHOLE[16:], "expected gzipped lines: Error -3"),
        (
            gzip.compress(b'{"watermark": 1}\n', mtime=0),
            "line 1: expected an answer: Object missing required field `tables`",
        ),
        (None, "expected gzipped lines: .*No such file"),
    ],
)
def test_answers_that_are_damaged_are_named(content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "answers.jsonl.gz").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"answers\.jsonl\.gz: {said}"):
        list(answers(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "Expected `object`, got `array`"),
        ("7", "Expected `object`, got `int`"),
        ("{", "Input data was truncated"),
        ('{"partition": 0, "key": null}', "Object missing required field `value`"),
        ('{"partition": 0, "key": null, "value": "=="}', "Invalid base64 encoded string"),
        ('{"partition": 2147483648, "key": null, "value": null}', "Expected `int` <= 2147483647"),
        ('{"partition": 0, "key": null, "value": null, "timestamp": 9223372036854775808}', "Expected `int`"),
    ],
)
def test_messages_of_another_shape_are_named(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "craft.jsonl.gz"
    file.write_bytes(gzip.compress(f'{{"partition": 0, "key": null, "value": null}}\n{line}\n'.encode()))
    with pytest.raises(ConfigError, match=rf"craft\.jsonl\.gz: line 2: expected a message: {said}"):
        list(recorded_messages(file))


def row(file: str, nothing: str = "0", **values: str) -> dict[str, str]:
    """A line of the summary; ``nothing`` stands where no value is given."""
    counts = ("watermarks", "equal", "rows", "differing cells", "lost on the wire")
    seconds = "0.0" if nothing else ""
    named = {"stream": "basic", "file": file, "protocol": "craft", "seconds": seconds, "remark": ""}
    return {**named, **dict.fromkeys(counts, nothing), **values}


def test_a_summary_has_a_line_for_each_file() -> None:
    good, bad, failed = (Result(stream=stream(name)) for name in ("a", "b", "long"))
    good.add(Verdict(watermark=1, tables=1, rows=5, differences=()))
    bad.add(Verdict(watermark=1, tables=1, rows=7, differences=("x", "y")))  # type: ignore[arg-type]
    failed.failed, failed.remark = True, "no broker"
    bad.add(Verdict(watermark=2, tables=1, rows=7, differences=(), lost=3))
    heads, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in summary([good, bad, failed]).splitlines()
    )
    assert [dict(zip(heads, line, strict=True)) for line in lines] == [
        row("a", watermarks="1", equal="1", rows="5"),
        row("b", watermarks="2", equal="1", rows="14", **{"differing cells": "2", "lost on the wire": "3"}),
        row("long", "", remark="FAILED: no broker"),
    ]
    assert [each.good for each in (good, bad, failed)] == [True, False, False]
    assert state(bad) == "gold equals TiDB at 1 of 2 watermarks (0.0 s)"
    assert state(failed) == "FAILED: no broker"
