"""Notebooks are read as Databricks reads them and run as they stand, without Spark."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import nbformat
import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.notebook import (
    Cell,
    CellKind,
    Surroundings,
    check_parameters,
    only_reads,
    read_notebook,
    run_notebook,
    sql_arguments,
)

SOURCE = """# Databricks notebook source
# MAGIC %md
# MAGIC # Title
# MAGIC
# MAGIC Text.

# COMMAND ----------

# DBTITLE 1,Two lines
a = 1
b = a + 1

# COMMAND ----------

# MAGIC %sql SELECT 1

# COMMAND ----------

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT ';' AS x;
# MAGIC SELECT :feed
"""


class Session:
    """Stands for a Spark session: keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []

    def sql(self, text: str, args: dict[str, str] | None = None) -> "Session":
        self.asked.append((text, args or {}))
        return self

    columns = ()


def notebook(folder: Path, *cells: str, name: str = "n.py") -> Path:
    path = folder / name
    path.write_text("# Databricks notebook source\n" + "\n\n# COMMAND ----------\n\n".join(cells) + "\n")
    return path


def run(path: Path, **parameters: str) -> str | None:
    return run_notebook(path, parameters, Surroundings(spark=Session()))


def test_source_file_is_read_cell_by_cell(tmp_path: Path) -> None:
    path = tmp_path / "n.py"
    path.write_text(SOURCE)
    cells = read_notebook(path).cells
    assert [(cell.kind, cell.line, cell.title) for cell in cells] == [
        (CellKind.MARKDOWN, 3, ""),
        (CellKind.PYTHON, 10, "Two lines"),
        (CellKind.SQL, 15, ""),
        (CellKind.SQL, 22, ""),
    ]
    assert [cell.source for cell in cells] == [
        "# Title\n\nText.",
        "a = 1\nb = a + 1",
        "SELECT 1",
        "SELECT ';' AS x;\nSELECT :feed",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "n.py:1: expected '# Databricks notebook source'"),
        ("# Databricks notebook source \n", "n.py:1: expected"),
        ("\ufeff# Databricks notebook source\n", "n.py:1: expected"),
        ("# Databricks notebook source\n\n# MAGIC %pip install x\n", "n.py:3: %pip is not supported"),
        ("# Databricks notebook source\n# MAGIC %scala\n", "n.py:2: '%scala': the local runner knows"),
        ("# Databricks notebook source\n# MAGIC %run ./other\n", "n.py:2: '%run ./other': the local runner knows"),
        ("# Databricks notebook source\n# MAGIC text\n", "n.py:2: 'text'"),
        ("# Databricks notebook source\n# MAGIC\n", "n.py:2: '': the local runner knows"),
        ("# Databricks notebook source\nx = 1\n# MAGIC %md\n", "n.py:2: a cell has '# MAGIC' before every line"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "n.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_notebook(path)


def test_notebook_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.py").write_bytes(b"# Databricks notebook source\nname = '\xe9'\n")
    with pytest.raises(ConfigError, match=r"n\.py: expected a notebook in UTF-8"):
        read_notebook(tmp_path / "n.py")


def test_missing_notebook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such notebook"):
        read_notebook(tmp_path / "n.py")
    (tmp_path / "n.txt").touch()
    with pytest.raises(ConfigError, match=r"expected a notebook, \.py or \.ipynb"):
        read_notebook(tmp_path / "n.txt")


def test_cells_share_one_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(
        tmp_path,
        'dbutils.widgets.text("feed", "none")\nfeed = dbutils.widgets.get("feed")',
        "# MAGIC %python\n# MAGIC twice = feed * 2",
        "print(twice)\ndisplayHTML('<p>page</p>')",
        "len(twice)",
        "None",
    )
    assert run(path, feed="ab") is None
    assert capsys.readouterr().out == "abab\npage\n4\n"


def test_who_runs_a_notebook_may_catch_what_each_cell_shows(tmp_path: Path) -> None:
    path = notebook(tmp_path, "# MAGIC %md\n# MAGIC # T", "print('text')", "displayHTML('<svg/>')")
    pages: list[str] = []
    printed: list[tuple[CellKind, str]] = []

    @contextmanager
    def around(cell: Cell) -> Iterator[None]:
        with redirect_stdout(StringIO()) as out:
            yield
        printed.append((cell.kind, out.getvalue()))

    own = Surroundings(spark=Session(), show_html=pages.append, around=around)
    assert run_notebook(path, {}, own) is None
    assert pages == ["<svg/>"]
    assert printed == [(CellKind.MARKDOWN, ""), (CellKind.PYTHON, "text\n"), (CellKind.PYTHON, "")]


def test_the_runners_future_imports_stay_out(tmp_path: Path) -> None:
    assert (
        run(notebook(tmp_path, "def f(x: int): ...", "dbutils.notebook.exit(f.__annotations__['x'] is int)")) == "True"
    )


def test_exit_ends_the_notebook_past_its_own_handlers(tmp_path: Path) -> None:
    path = notebook(tmp_path, "try:\n    dbutils.notebook.exit('done')\nexcept Exception:\n    pass", "1 / 0")
    assert run(path) == "done"


def test_a_traceback_points_into_the_notebook(tmp_path: Path) -> None:
    path = notebook(tmp_path, "def f():\n    return 1 / 0", "f()")
    with pytest.raises(ZeroDivisionError) as raised:
        run(path)
    frames = [(f.lineno, f.line) for f in traceback.extract_tb(raised.value.__traceback__) if f.filename == str(path)]
    assert frames == [(7, "f()"), (3, "return 1 / 0")]


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    path = notebook(tmp_path, "a = 1", "b = (")
    with pytest.raises(SyntaxError) as raised:
        run(path)
    assert (raised.value.filename, raised.value.lineno) == (str(path), 6)


def test_sql_cell_runs_its_statements_with_the_widgets_values(tmp_path: Path) -> None:
    session = Session()
    path = notebook(
        tmp_path,
        'dbutils.widgets.text("feed", "f")',
        "# MAGIC %sql\n# MAGIC USE x; -- no; not here\n# MAGIC SELECT :feed, a:feed, ':feed'",
        "dbutils.notebook.exit(_sqldf is spark)",
    )
    assert run_notebook(path, {}, Surroundings(spark=session)) == "True"
    assert session.asked == [("USE x", {}), ("-- no; not here\nSELECT :feed, a:feed, ':feed'", {"feed": "f"})]


def test_a_parameter_is_in_some_cell_of_the_notebook_that_reads_it(tmp_path: Path) -> None:
    cells = ('dbutils.widgets.text("feed", "f")', 'for name in ("a", "b"):\n    print(dbutils.widgets.get(name))')
    path = notebook(tmp_path, *cells, "# MAGIC %sql\n# MAGIC SELECT :table", "# MAGIC %md\n# MAGIC fed", "no Python")
    found = read_notebook(path)
    check_parameters(found, ["feed", "a", "b", "table"])
    with pytest.raises(ConfigError, match=r"n\.py: no parameter 'fed'; did you mean feed\?"):
        check_parameters(found, ["a", "fed"])


@pytest.mark.parametrize("text", ["a:x", "'x'::x", "':x'", "-- :x", "a[0]:x", "`a`:x", "f():x"])
def test_colons_that_are_no_parameter_marker(text: str) -> None:
    assert sql_arguments(text, {"x": "1"}) == {}


def test_legacy_sql_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"n.py:3: \$\{…\} in SQL is not supported"):
        run(notebook(tmp_path, "# MAGIC %sql\n# MAGIC SELECT '${feed}'"))


def ipynb(folder: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    path = folder / "n.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# T"), *cells]), path)
    return path


def test_ipynb_is_run_like_a_source_file(tmp_path: Path) -> None:
    path = ipynb(tmp_path, "a = 1", "%sql\nSELECT 1", "def f():\n    return a / 0", "f()")
    kinds = [cell.kind for cell in read_notebook(path).cells]
    assert kinds == [CellKind.MARKDOWN, CellKind.PYTHON, CellKind.SQL, CellKind.PYTHON, CellKind.PYTHON]
    with pytest.raises(ZeroDivisionError) as raised:
        run(path)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == (f"{path}[cell 4]", 2, "return a / 0")


@pytest.mark.parametrize(("source", "message"), [("!ls", "cell 2]:1: '!ls'"), ("%pip install x", "%pip is not")])
def test_ipynb_with_unknown_magic_is_refused(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_notebook(ipynb(tmp_path, source))


CELLS = '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": %s}'


@pytest.mark.parametrize(
    "content",
    [
        b"no json", b"{}", b"[]", b"null", b"\xff\xfe\x00", b'{"nbformat": 99}', b"[" * 3000,
        (CELLS % "5").encode(), (CELLS % '[{"cell_type": "code", "metadata": {}}]').encode(),
    ],
)  # fmt: skip
def test_file_that_is_no_ipynb_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "n.ipynb").write_bytes(content)
    with pytest.raises(ConfigError, match=r"is not an \.ipynb notebook"):
        read_notebook(tmp_path / "n.ipynb")


def test_dbutils_in_a_notebook_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dbutils\.fs: not supported locally"):
        run(notebook(tmp_path, "dbutils.fs.mount('s3a://b', '/mnt')"))


def test_of_the_bundles_notebooks_one_only_reads() -> None:
    folder = Path(__file__).parents[2] / "notebooks"
    notebooks = [read_notebook(path) for path in folder.rglob("*") if path.suffix in (".py", ".ipynb")]
    assert [each.path.name for each in notebooks if only_reads(each)] == ["as_of.py"]
