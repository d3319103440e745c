"""One line an event, with its fields, as text and as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.log import ROOT, Format, configure, configure_unless_done, log, timed, warn


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """Gives what was logged since the last time; afterwards nothing is configured."""
    yield lambda: capsys.readouterr().err
    logging.getLogger(ROOT).handlers.clear()


def test_text_has_a_field_after_the_other(logged: Callable[[], str]) -> None:
    configure()
    log("gold", "window published", feed="shop", tso=7, waiting_on=None)
    time, rest = logged().split(" ", 1)
    assert time.endswith("Z")
    assert rest == "INFO ticdc_lakehouse.gold window published feed=shop tso=7\n"


def test_a_value_that_is_no_word_is_in_quotes_and_stays_on_the_line(logged: Callable[[], str]) -> None:
    configure()
    warn("gold", "table blocked", table="shop.t", reason='two "words"\nand a line')
    assert logged().endswith('table blocked table=shop.t reason="two \\"words\\"\\nand a line"\n')


def test_json_is_one_object_a_line(logged: Callable[[], str]) -> None:
    configure("info", Format.JSON)
    log("bronze", "landed", feed="shop", messages=9)
    found = json.loads(logged())
    assert found.pop("time").endswith("Z")
    expected = {"level": "INFO", "logger": "ticdc_lakehouse.bronze", "event": "landed", "feed": "shop", "messages": 9}
    assert found == expected


def test_a_timed_event_has_what_the_block_found_and_its_seconds(logged: Callable[[], str]) -> None:
    configure("info", Format.JSON)
    with timed("silver", "decoded", feed="shop") as found:
        found["events"] = 3
    line = json.loads(logged())
    assert (line["event"], line["events"]) == ("decoded", 3)
    assert 0 <= line["seconds"] < 1


def test_a_timed_event_that_fails_is_a_warning_with_its_error(logged: Callable[[], str]) -> None:
    configure("warning", Format.JSON)
    with pytest.raises(ConfigError), timed("bronze", "landed", feed="shop"):
        raise ConfigError("no broker\nmore")
    line = json.loads(logged())
    assert (line["level"], line["event"], line["error"], line["detail"]) == (
        "WARNING", "landed failed", "ConfigError", "no broker",
    )  # fmt: skip


def test_below_the_level_nothing_is_written(logged: Callable[[], str]) -> None:
    configure("warning")
    log("gold", "applied", feed="shop")
    assert logged() == ""


def test_a_notebook_does_not_change_what_was_chosen(logged: Callable[[], str]) -> None:
    configure("warning")
    configure_unless_done()
    log("gold", "applied")
    assert logged() == ""
    logging.getLogger(ROOT).handlers.clear()
    configure_unless_done()
    log("gold", "applied")
    assert "gold applied" in logged()
