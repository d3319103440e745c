"""Parameters of a job as values."""

from __future__ import annotations

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.job_parameters import LARGEST, names, number, seconds


@pytest.mark.parametrize(("text", "value"), [("", 0.0), (" 2 ", 2.0), ("0.25", 0.25)])
def test_seconds_may_have_a_fraction(text: str, value: float) -> None:
    assert seconds({"sleep": text}, "sleep") == value


@pytest.mark.parametrize("text", ["-1", "nan", "1e3", "0.2s", "٣", "1234567"])
def test_an_invalid_number_of_seconds_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"parameter sleep: expected seconds such as 2 or 0\.2, or nothing, found"):
        seconds({"sleep": text}, "sleep")


@pytest.mark.parametrize(("text", "value"), [("[]", []), ('["a", "b"]', ["a", "b"])])
def test_names_are_a_json_list(text: str, value: list[str]) -> None:
    assert names({"feeds": text}, "feeds") == value


@pytest.mark.parametrize("text", ["", "crm", '"crm"', "[1]", '{"crm": 1}', "[crm]"])
def test_names_that_are_no_json_list_are_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="parameter feeds: expected a JSON list of names, found"):
        names({"feeds": text}, "feeds")


def test_a_name_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="parameter feeds: crm is listed 2 times; expected once"):
        names({"feeds": '["crm", "erp", "crm"]'}, "feeds")


@pytest.mark.parametrize(("text", "value"), [("", None), (" 8 ", 8), (str(LARGEST), LARGEST)])
def test_a_number_is_whole_or_left_out(text: str, value: int | None) -> None:
    assert number({"threads": text}, "threads", least=1) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", "1 or more, or nothing"), ("-1", "a whole number or nothing"), (str(LARGEST + 1), f"at most {LARGEST}")],
)
def test_a_number_outside_its_range_is_refused_by_name(text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"parameter threads: expected {expected}, found .*{text}"):
        number({"threads": text}, "threads", least=1)
