"""docs/cases.md: every case once, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "cases.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", TEXT, re.MULTILINE))
_NAMED = re.compile(r"\[`(test_\w+)(?:\[(.+?)\])?`\]\[([\w-]+)\]")
NAMED = _NAMED.findall(TEXT)


def rows() -> list[tuple[int, str]]:
    """Number and last cell of each case."""
    found = re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", TEXT, re.MULTILINE)
    return [(int(number), cell) for number, cell in found]


def is_long(test: str, file: str) -> bool:
    """True if the test, or its whole file, is marked `long`."""
    text = (PAGE.parent / FILES[file]).read_text(encoding="utf-8")
    decorators = text.partition(f"\ndef {test}(")[0].rpartition("\n\n")[2]
    whole_file = re.search(r"^pytestmark = .*mark\.long", text, re.MULTILINE)
    return "@pytest.mark.long" in decorators.splitlines() or bool(whole_file)


def test_all_cases_are_there_once_and_in_order() -> None:
    assert [number for number, _ in rows()] == list(range(1, 61))


def test_a_case_has_a_test_or_says_why_not() -> None:
    for number, cell in rows():
        plain = cell.startswith(("**not held**: ", "does not apply: "))
        assert plain or "`][" in cell, number


def test_a_case_that_is_held_has_a_test_that_is_not_long() -> None:
    """`make test` runs no long test."""
    for number, cell in rows():
        tests = _NAMED.findall(cell)
        assert not tests or not all(is_long(test, file) for test, _, file in tests), number


@pytest.mark.parametrize(("test", "case", "file"), sorted(set(NAMED)))
def test_every_test_that_is_named_is_there(test: str, case: str, file: str) -> None:
    text = (PAGE.parent / FILES[file]).read_text(encoding="utf-8")
    assert f"\ndef {test}(" in text
    assert not case or f'"{case}"' in text


def test_every_reference_is_used_and_leads_somewhere() -> None:
    assert set(re.findall(r"\]\[([\w-]+)\]", TEXT)) == FILES.keys()
    assert all((PAGE.parent / path).exists() for path in FILES.values())
    assert len(NAMED) == TEXT.count("[`test_")


def test_what_tests_show_of_one_aspect_is_said_of_one_case() -> None:
    parts = [part for _, cell in rows() for part in cell.split("; ") if ": [`test_" in part]
    assert len(parts) > 10
    assert len(parts) == len(set(parts))
