"""Statements as they are typed at the prompt."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.catalog import Lake
from ticdc_local.cli.sql import MORE, PROMPT, complete, execute, run_all, typed
from ticdc_local.runner.notebook import sql_statements


def statements(*lines: str) -> tuple[list[str], list[str]]:
    """The statements that come of these lines, and the prompts that were shown."""
    left, prompts = list(lines), []

    def read_line(prompt: str) -> str | None:
        prompts.append(prompt)
        return left.pop(0) if left else None

    return list(typed(read_line)), prompts


def test_a_statement_ends_with_a_semicolon_on_any_line() -> None:
    assert statements("select 1;", "select", "2 ;") == (["select 1", "select\n2"], [PROMPT, PROMPT, MORE, PROMPT])


def test_two_on_one_line() -> None:
    assert statements("select 1; select 2;")[0] == ["select 1", "select 2"]


def test_the_end_of_input_ends_the_last_statement() -> None:
    assert statements("select 1")[0] == ["select 1"]


@pytest.mark.parametrize("word", ["quit", "QUIT;", " exit ", "exit ;"])
def test_quit_leaves_unless_a_statement_has_begun(word: str) -> None:
    assert statements(word, "select 1;")[0] == []
    assert statements("select", word, ";")[0] != []


@pytest.mark.parametrize("text", ["quit", "exit;\n", " Quit ; select 1"])
def test_quit_ends_a_script_too(text: str) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert run_all(lake, sql_statements(text)) == 0


@pytest.mark.parametrize("text", ["select ';", "select 1 -- ;", "select /* ; ", "select `;", "select 1"])
def test_a_semicolon_in_quotes_or_comments_ends_nothing(text: str) -> None:
    assert not complete(text)


def test_a_tso_that_is_too_large_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert not execute(lake, "AS OF shop_craft 9223372036854775808")
    assert capsys.readouterr().err == (
        "error: AS OF: expected a TSO, at most 9223372036854775807, found 9223372036854775808\n"
    )


@pytest.mark.parametrize("text", ["select ';';", "select 1; ", "-- what\nselect 1;\n", ";"])
def test_a_semicolon_outside_ends_it(text: str) -> None:
    assert complete(text)
