"""Which recorded files ``verify-stream`` takes, and what it prints of them; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_lakehouse.cli import main
from ticdc_lakehouse.cli.verify_stream import Result, chosen, state, summary
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.local.recorded import RecordedStream, recorded_streams
from ticdc_lakehouse.local.verify import Verdict, not_comparable

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


def test_every_file_that_is_there_is_taken() -> None:
    found = recorded_streams(STREAMS, {})
    assert {each.messages for each in found} == set(STREAMS.glob("*/*.jsonl.gz")) - set(STREAMS.glob("*/answers*"))
    assert all(not_comparable(each) is None for each in found)
    assert [*map(str, recorded_streams(STREAMS / "ticdc-bank", {}))] == ["ticdc-bank/canal_json.jsonl.gz"]


def test_an_option_goes_where_the_protocol_has_it() -> None:
    given = {each.protocol: each.options for each in recorded_streams(STREAMS, {"craft-float": "trust"})}
    assert given["craft"] == {"max-batch-size": 16, "craft-float": "trust"}
    assert given["canal_json"] == {"enable-tidb-extension": True}


def test_only_some_files() -> None:
    found = recorded_streams(STREAMS, {})
    assert {each.protocol for each in chosen(found, ["craft.jsonl.gz"])} == {"craft"}
    assert chosen(found, []) == found


def test_a_file_without_watermarks_is_not_compared_and_no_fault() -> None:
    bare = stream("noext", watermarks=0)
    result = Result(stream=bare, remark=not_comparable(bare) or "")
    assert state(result) == "not compared: no watermarks: gold publishes nothing"
    assert result.good


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--file", "craft.json"], "--file: expected one of canal_json.jsonl.gz, craft.jsonl.gz, "),
        (["--option", "craft-floats=trust"], "craft-floats: no option of any protocol"),
        (["--every", "0"], "--every: expected 1 or more, found 0"),
    ],
)
def test_a_wrong_argument_is_one_line_and_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify-stream", str(STREAMS), *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ticdc-lake verify-stream: {said}")
    assert told.count("\n") == 1


def test_a_folder_without_streams(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a folder with stream\.json, or a folder of such folders"):
        recorded_streams(tmp_path, {})


def test_a_summary_has_a_line_for_each_file() -> None:
    good, bad, failed = (Result(stream=stream(name)) for name in ("a", "b", "long"))
    good.add(Verdict(watermark=1, tables=1, rows=5, differences=()))
    bad.add(Verdict(watermark=1, tables=1, rows=7, differences=("x", "y")))  # type: ignore[arg-type]
    failed.failed, failed.remark = True, "no broker"
    assert summary([good, bad, failed]).splitlines() == [
        "| stream | file | protocol | watermarks | equal | rows | differing cells | seconds | remark            |",
        "| ------ | ---- | -------- | ---------- | ----- | ---- | --------------- | ------- | ----------------- |",
        "| basic  | a    | craft    | 1          | 1     | 5    | 0               | 0.0     |                   |",
        "| basic  | b    | craft    | 1          | 0     | 7    | 2               | 0.0     |                   |",
        "| basic  | long | craft    |            |       |      |                 |         | FAILED: no broker |",
    ]
    assert [each.good for each in (good, bad, failed)] == [True, False, False]
    assert state(bad) == "gold equals TiDB at 0 of 1 watermarks (0.0 s)"
    assert state(failed) == "FAILED: no broker"
