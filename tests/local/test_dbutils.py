"""The stand-ins do what Databricks does, or say that they do not."""

from pathlib import Path
from typing import Any

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.dbutils import DbUtils, NotebookExit, secret_variable
from ticdc_local.runner.display import html_text, table, text_of


def dbutils_of(root: Path, **given: Any) -> DbUtils:
    return DbUtils(**{"parameters": {}, "files_root": root, "run_other": lambda path, _: path, **given})


def test_a_parameter_goes_before_a_default(tmp_path: Path) -> None:
    widgets = dbutils_of(tmp_path, parameters={"feed": "f", "more": "m"}).widgets
    widgets.text("feed", "default")
    widgets.dropdown("trigger", "a", ["a", "b"])
    widgets.combobox("free", "x", ["y"])
    widgets.multiselect("some", "a,b", ["a", "b", "c"])
    assert widgets.get("feed") == "f"
    assert widgets.get("more") == "m"
    assert widgets.getAll() == {"feed": "f", "more": "m", "trigger": "a", "free": "x", "some": "a,b"}
    widgets.remove("free")
    with pytest.raises(ConfigError, match="no widget 'free'; there are: feed, more, trigger, some"):
        widgets.get("free")
    widgets.removeAll()
    assert widgets.getAll() == {"feed": "f", "more": "m"}


def test_choices_are_kept(tmp_path: Path) -> None:
    widgets = dbutils_of(tmp_path, parameters={"trigger": "never"}).widgets
    with pytest.raises(ConfigError, match="trigger: expected one of a, b, found 'never'"):
        widgets.dropdown("trigger", "a", ["a", "b"])
    with pytest.raises(ConfigError, match="found 'z'"):
        widgets.multiselect("some", "a,z", ["a", "b"])


def test_secrets_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = dbutils_of(tmp_path).secrets
    monkeypatch.setenv("LAKEHOUSE_SECRET_MY_KAFKA_PASS_WORD", "s")
    assert secret_variable("my-kafka", "pass.word") == "LAKEHOUSE_SECRET_MY_KAFKA_PASS_WORD"
    assert secrets.get("my-kafka", "pass.word") == "s"
    assert [secret.key for secret in secrets.list("my-kafka")] == ["pass_word"]
    with pytest.raises(ConfigError, match="LAKEHOUSE_SECRET_MY_KAFKA_USER is not set"):
        secrets.get("my-kafka", "user")


def test_files_lie_under_the_root(tmp_path: Path) -> None:
    fs = dbutils_of(tmp_path).fs
    assert fs.mkdirs("/Volumes/c/s/v/sub")
    assert fs.put("/Volumes/c/s/v/a.txt", "hello")
    assert (tmp_path / "Volumes/c/s/v/a.txt").read_text() == "hello"
    assert fs.head("dbfs:/Volumes/c/s/v/a.txt", 4) == "hell"
    assert fs.head(str(tmp_path / "Volumes/c/s/v/a.txt")) == "hello"
    assert [(f.path, f.name, f.size) for f in fs.ls("/Volumes/c/s/v/")] == [
        ("/Volumes/c/s/v/a.txt", "a.txt", 5),
        ("/Volumes/c/s/v/sub/", "sub/", 0),
    ]
    assert fs.cp("/Volumes/c/s/v", "/copy", recurse=True)
    assert fs.mv("/copy/a.txt", "/copy/b.txt")
    assert [f.name for f in fs.ls("/copy")] == ["b.txt", "sub/"]
    assert fs.rm("/copy/sub")
    assert fs.rm("/copy", recurse=True)
    assert not fs.rm("/copy")


def test_files_that_cannot_be(tmp_path: Path) -> None:
    fs = dbutils_of(tmp_path).fs
    fs.put("/d/a", "")
    for call, message in [
        (lambda: fs.ls("/nothing"), "no such file or folder"),
        (lambda: fs.put("/d/a", ""), "overwrite=True"),
        (lambda: fs.cp("/d", "/e"), "recurse=True"),
        (lambda: fs.ls("/../.."), "leads out of"),
        (lambda: fs.ls("s3://bucket/x"), "expected /Volumes"),
        (lambda: fs.ls("file:/etc"), "expected /Volumes"),
    ]:
        with pytest.raises(ConfigError, match=message):
            call()
    with pytest.raises(OSError, match="not empty"):
        fs.rm("/d")


def test_notebook_exit_and_run(tmp_path: Path) -> None:
    notebook = dbutils_of(tmp_path).notebook
    with pytest.raises(NotebookExit) as ending:
        notebook.exit(5)
    assert ending.value.value == "5"
    assert not isinstance(ending.value, Exception)
    assert notebook.run("./other") == "./other"
    with pytest.raises(ConfigError, match="a timeout is not supported"):
        notebook.run("./other", 60)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda d: d.library,
            "dbutils.library: not supported locally; dbutils has fs, notebook, secrets, widgets",
        ),
        (lambda d: d.fs.mount("s3a://b", "/mnt"), "dbutils.fs.mount: .* cp, head, ls, mkdirs, mv, put, rm"),
        (lambda d: d.secrets.listScopes(), "dbutils.secrets has get, list"),
        (lambda d: d.widgets.radio, "dbutils.widgets.radio"),
        (lambda d: d.jobs, "dbutils.jobs: not supported locally; dbutils has fs, notebook, secrets, widgets"),
        (lambda d: d.notebook.entry_point, "dbutils.notebook has exit, run"),
    ],
)
def test_everything_else_says_what_there_is(tmp_path: Path, use: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        use(dbutils_of(tmp_path))


def test_a_table_keeps_its_lines() -> None:
    assert table(["a", "b\tc"], [("x" * 60, None), ("1\n2\t3\r\x1b", 4)]).splitlines() == [
        "a" + " " * 41 + "b\\tc",
        "-" * 40 + "  ----",
        "x" * 39 + "…  NULL",
        "1\\n2\\t3\\r\\x1b" + " " * 29 + "4",
    ]


def test_other_values() -> None:
    assert text_of("as it is") == "as it is"
    assert text_of({"a": 1}) == "{'a': 1}"


def test_html_becomes_text() -> None:
    assert html_text("<svg><text>0</text></svg><p>orders</p>") == "orders"
    assert html_text("<style>p {}</style><h1>One</h1><p>a <b>b</b><br>c&amp;d</p>") == "One\na b\nc&d"
