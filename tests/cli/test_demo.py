"""The demo's parts that need neither Spark nor Kafka."""

from __future__ import annotations

import fcntl
import shlex
from pathlib import Path
from unittest.mock import Mock

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feeds
from ticdc_local.cli import parsed
from ticdc_local.cli.demo import FEEDS, MARK, NEXT, STREAM, chosen, clean
from ticdc_testkit.recorded_streams import Answer, answers, recorded_stream

PROJECT = Path(__file__).parents[2]
ANSWERS = [Answer(watermark=tso, tables={}) for tso in range(46)]


@pytest.mark.parametrize("steps", [1, 2, 4, 6, 45])
def test_steps_rise_and_end_with_the_last_answer(steps: int) -> None:
    tsos = [answer.watermark for answer in chosen(ANSWERS, steps)]
    assert (len(tsos), tsos[-1], sorted(set(tsos))) == (steps, 45, tsos)


def test_there_are_no_more_steps_than_answers() -> None:
    assert len(chosen(ANSWERS, 1000)) == 46


def test_the_project_carries_a_stream_for_each_feed_of_the_demo() -> None:
    for feed, file in zip(load_feeds(PROJECT / "resources" / "feeds", FEEDS), FEEDS.values(), strict=True):
        stream = recorded_stream(PROJECT / STREAM, file, {})
        assert stream.messages.is_file()
        assert (stream.protocol, stream.time_zone) == (feed.protocol, feed.sink_options.time_zone.key)
        assert len(feed.topics) == 1
    assert len(list(answers(PROJECT / STREAM))) == 46


@pytest.mark.parametrize("left", [(), (MARK, "bronze", "ops", "locks/live"), ("scratch", "warehouse")])
def test_a_lake_of_the_demo_or_of_an_empty_prompt_is_made_anew(left: tuple[str, ...], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / "lake" / name).mkdir(parents=True)
    clean(tmp_path / "lake")
    assert [path.name for path in (tmp_path / "lake").iterdir()] == [MARK]


def test_what_the_demo_did_not_make_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bronze").mkdir()
    with pytest.raises(ConfigError, match="did not make"):
        clean(tmp_path)
    assert (tmp_path / "bronze").is_dir()


def test_a_lake_that_another_feed_has_tables_in_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / MARK).touch()
    for feed in (*FEEDS, "orders", "crm"):
        (tmp_path / "bronze" / f"{feed}_messages").mkdir(parents=True)
        (tmp_path / "bronze" / f"{feed}_offsets").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError) as refused:
        clean(tmp_path)
    found = "holds 2 feeds that the demo did not make (crm, orders)"
    assert str(refused.value) == f"{tmp_path}: {found}; move the folder away, or give --lake FOLDER"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_lake_with_the_tables_of_all_feeds_of_the_demo_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / MARK).touch()
    for feed in FEEDS:
        (tmp_path / "bronze" / f"{feed}_messages").mkdir(parents=True)
    clean(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


def test_a_demo_that_was_ended_while_it_deleted_the_lake_can_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MARK).touch()
    for layer in ("bronze", "silver"):
        (tmp_path / layer).mkdir()
    with monkeypatch.context() as interrupted:
        interrupted.setattr("ticdc_local.cli.demo.shutil.rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            clean(tmp_path)
    clean(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


@pytest.mark.parametrize("lock", ["kafka/broker.log", "locks/shop_craft.gold"])
def test_a_lake_that_another_process_works_in_is_left_alone(lock: str, tmp_path: Path) -> None:
    (tmp_path / MARK).touch()
    held = tmp_path / lock
    held.parent.mkdir()
    with held.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match=rf"another process is at work in it \({held.name}\); end that one"):
            clean(tmp_path)
        assert held.exists()
    clean(tmp_path)
    assert not held.exists()


def test_the_demo_ends_with_three_commands() -> None:
    assert [parsed(shlex.split(command)[1:]).command for command in NEXT] == ["sql", "report", "run"]
