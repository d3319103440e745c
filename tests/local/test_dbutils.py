"""The stand-ins do what Databricks does, or say that they do not."""

from typing import Any

import pandas as pd
import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.dbutils import DbUtils, NotebookExit, secret_variable
from ticdc_local.runner.display import display, html_text, table, text_of


def test_a_parameter_goes_before_a_default() -> None:
    widgets = DbUtils({"feed": "f", "more": "m"}).widgets
    widgets.text("feed", "default")
    widgets.dropdown("trigger", "a", ["a", "b"])
    assert widgets.get("feed") == "f"
    assert widgets.get("more") == "m"
    assert widgets.getAll() == {"feed": "f", "more": "m", "trigger": "a"}
    with pytest.raises(ConfigError, match="no widget 'free'; there are: feed, more, trigger"):
        widgets.get("free")


def test_dropdown_refuses_a_value_that_is_no_choice() -> None:
    widgets = DbUtils({"trigger": "never"}).widgets
    with pytest.raises(ConfigError, match="trigger: expected one of a, b, found 'never'"):
        widgets.dropdown("trigger", "a", ["a", "b"])


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = DbUtils({}).secrets
    monkeypatch.setenv("LAKEHOUSE_SECRET_MY_KAFKA_PASS_WORD", "s")
    assert secret_variable("my-kafka", "pass.word") == "LAKEHOUSE_SECRET_MY_KAFKA_PASS_WORD"
    assert secrets.get("my-kafka", "pass.word") == "s"
    with pytest.raises(ConfigError, match="LAKEHOUSE_SECRET_MY_KAFKA_USER is not set"):
        secrets.get("my-kafka", "user")
    monkeypatch.setenv("LAKEHOUSE_SECRET_MY_KAFKA_USER", "")
    with pytest.raises(
        ConfigError, match="my-kafka/user: environment variable LAKEHOUSE_SECRET_MY_KAFKA_USER is empty; set it"
    ):
        secrets.get("my-kafka", "user")


def test_notebook_exit_is_no_exception() -> None:
    notebook = DbUtils({}).notebook
    with pytest.raises(NotebookExit) as ending:
        notebook.exit(5)
    assert ending.value.value == "5"
    assert not isinstance(ending.value, Exception)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda d: d.library,
            "dbutils.library: not supported locally; dbutils has notebook, secrets, widgets",
        ),
        (lambda d: d.fs.ls("/Volumes"), "dbutils.fs: not supported locally"),
        (lambda d: d.secrets.listScopes(), "dbutils.secrets has get"),
        (lambda d: d.widgets.radio, "dbutils.widgets.radio"),
        (lambda d: d.jobs, "dbutils.jobs: not supported locally; dbutils has notebook, secrets, widgets"),
        (lambda d: d.notebook.entry_point, "dbutils.notebook has exit"),
    ],
)
def test_unsupported_members_list_the_supported_ones(use: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        use(DbUtils({}))


def test_a_table_keeps_its_lines() -> None:
    assert table(["a", "b\tc"], [("x" * 60, None), ("1\n2\t3\r\x1b", 4)]).splitlines() == [
        "a" + " " * 41 + "b\\tc",
        "-" * 40 + "  ----",
        "x" * 39 + "…  NULL",
        "1\\n2\\t3\\r\\x1b" + " " * 29 + "4",
    ]


def test_a_cell_shows_other_values_as_their_text() -> None:
    assert text_of("as it is") == "as it is"
    assert text_of({"a": 1}) == "{'a': 1}"


def test_display_shows_only_tables(capsys: pytest.CaptureFixture[str]) -> None:
    display(pd.DataFrame({"a": [1]}))
    assert capsys.readouterr().out == "   a\n0  1\n"
    with pytest.raises(ConfigError, match="display of dict: expected a DataFrame; print other values"):
        display({"a": 1})


def test_html_becomes_text() -> None:
    assert html_text("<svg><text>0</text></svg><p>orders</p>") == "orders"
    assert html_text("<style>p {}</style><h1>One</h1><p>a <b>b</b><br>c&amp;d</p>") == "One\na b\nc&d"
