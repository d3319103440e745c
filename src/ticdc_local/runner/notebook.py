"""Databricks notebooks, read and run: ``.py`` source files and ``.ipynb``.

A source file begins with the line ``# Databricks notebook source``; ``# COMMAND ----------`` separates its cells; a
cell of another language has ``# MAGIC`` before every line and begins with ``%md`` or ``%sql``; ``# DBTITLE 1,Title``
names a cell. What is not known here is refused by name.
Source: https://docs.databricks.com/notebooks/notebook-format
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import CodeType
from typing import Any

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_local.runner.dbutils import DbUtils, NotebookExit
from ticdc_local.runner.display import display, display_html, text_of
from ticdc_local.sql_text import outside_quotes, sql_statements

HEADER = "# Databricks notebook source"
SEPARATOR = "# COMMAND ----------"
MAGIC = "# MAGIC"
TITLE = "# DBTITLE"
_NO_IPYNB = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What nbformat raises over a file that is JSON of another shape, or no JSON at all."""
_MARKER = re.compile(r"(?<![\w:)\]`'\"]):([A-Za-z_]\w*)")


class CellKind(StrEnum):
    """What a cell holds."""

    PYTHON = "python"
    SQL = "sql"
    MARKDOWN = "md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell."""

    kind: CellKind
    source: str
    line: int
    """The file's line on which ``source`` begins."""
    file: str
    """What a traceback calls the file: its path, for ``.ipynb`` with the cell's number."""
    title: str = ""

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """A notebook whose every cell is of a kind that can be run."""

    path: Path
    cells: tuple[Cell, ...]


Around = Callable[[Cell], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a notebook finds when it runs."""

    spark: Any
    """The session; typed as what a notebook may do with it."""
    show_html: Callable[[str], None] = display_html
    """What ``displayHTML`` does."""
    around: Around = nullcontext
    """Entered while a cell runs, such as to catch what it prints."""


def run_notebook(path: Path, parameters: Mapping[str, str], surroundings: Surroundings) -> str | None:
    """Runs a notebook's cells in one namespace; returns what it exits with, None where it runs to its end.

    Raises: ConfigError for what is not supported, and the errors of the notebook.
    """
    notebook = read_notebook(path)
    namespace = {
        "__name__": "__main__",
        "spark": surroundings.spark,
        "dbutils": DbUtils(parameters),
        "display": display,
        "displayHTML": surroundings.show_html,
    }
    try:
        for cell in notebook.cells:
            with surroundings.around(cell):
                _run_cell(cell, namespace)
    except NotebookExit as ending:
        return ending.value
    return None


def _run_cell(cell: Cell, namespace: dict[str, Any]) -> None:
    match cell.kind:
        case CellKind.PYTHON:
            _run_python(cell, namespace)
        case CellKind.SQL:
            _run_sql(cell, namespace)
        case CellKind.MARKDOWN:
            pass


def _run_python(cell: Cell, namespace: dict[str, Any]) -> None:
    """Runs a cell; the value of a last expression is shown, as a notebook does."""
    if cell.line == 1:
        linecache.cache[cell.file] = (
            len(cell.source),
            None,
            cell.source.splitlines(keepends=True),
            cell.file,
        )
    body = ast.parse("\n" * (cell.line - 1) + cell.source, filename=cell.file)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(_compiled(body, cell, "exec"), namespace)
    if isinstance(last, ast.Expr):
        value = eval(_compiled(ast.Expression(last.value), cell, "eval"), namespace)
        if value is not None:
            print(repr(value))


def _compiled(tree: ast.Module | ast.Expression, cell: Cell, mode: str) -> CodeType:
    """Compiles a cell. ``dont_inherit``: a notebook does not get this module's ``__future__`` imports."""
    return compile(tree, cell.file, mode, dont_inherit=True)


def _run_sql(cell: Cell, namespace: dict[str, Any]) -> None:
    """Runs a cell's statements; the last one's result is shown and bound to ``_sqldf``."""
    if "${" in cell.source:
        raise ConfigError(f"{cell.where}: ${{…}} in SQL is not supported locally; use a parameter marker such as :feed")
    result = None
    for statement in sql_statements(cell.source):
        arguments = sql_arguments(statement, namespace["dbutils"].widgets.getAll())
        result = namespace["spark"].sql(statement, args=arguments) if arguments else namespace["spark"].sql(statement)
    namespace["_sqldf"] = result
    if result is not None and result.columns:
        print(text_of(result))


def sql_arguments(statement: str, widgets: Mapping[str, str]) -> dict[str, str]:
    """Returns the widgets whose markers (``:feed``) the statement has outside quotes and comments."""
    return {name: widgets[name] for name in _MARKER.findall(outside_quotes(statement)) if name in widgets}


def check_parameters(notebook: Notebook, names: Iterable[str]) -> None:
    """Raises ConfigError for a parameter that the notebook cannot read, since its name is in none of its cells."""
    texts = _all_texts(notebook)
    for name in names:
        if name not in texts:
            declared = re.findall(r"\bwidgets\.\w+\(\s*['\"](\w+)", "".join(cell.source for cell in notebook.cells))
            raise ConfigError(f"{notebook.path}: no parameter {name!r}; {suggestion(name, {*declared})}")


def only_reads(notebook: Notebook) -> bool:
    """True if a notebook reads a lake, whose schemas are among its parameters, and writes none: that takes a folder of
    checkpoints."""
    texts = _all_texts(notebook)
    return "ops_schema" in texts and "checkpoint_root" not in texts


def _all_texts(notebook: Notebook) -> set[str]:
    return {text for cell in notebook.cells for text in _texts(cell)}


def _texts(cell: Cell) -> Iterator[str]:
    """Yields the texts in a Python cell, and the names of an SQL cell's markers."""
    match cell.kind:
        case CellKind.PYTHON:
            with suppress(SyntaxError, ValueError):  # reported when the cell runs
                values = (node.value for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Constant))
                yield from (value for value in values if isinstance(value, str))
        case CellKind.SQL:
            yield from _MARKER.findall(cell.source)
        case CellKind.MARKDOWN:
            pass


def read_notebook(path: Path) -> Notebook:
    """Reads a notebook's cells, empty ones left out. Raises: ConfigError naming file and line of what cannot be run."""
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such notebook")
    match path.suffix:
        case ".py":
            cells = tuple(_source_cells(path))
        case ".ipynb":
            cells = tuple(_ipynb_cells(path))
        case _:
            raise ConfigError(f"{path}: expected a notebook, .py or .ipynb")
    return Notebook(path=path, cells=cells)


def _source_cells(path: Path) -> Iterator[Cell]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected a notebook in UTF-8: {error}") from None
    if lines[0] != HEADER:
        raise ConfigError(f"{path}:1: expected {HEADER!r} alone on the first line, found {lines[0]!r}")
    first = 1
    for end in (*(i for i, line in enumerate(lines) if line.strip() == SEPARATOR), len(lines)):
        cell = _source_cell(path, lines[first:end], first + 1)
        if cell is not None:
            yield cell
        first = end + 1


def _source_cell(path: Path, lines: list[str], line: int) -> Cell | None:
    """Returns one cell of a source file from its lines; ``line`` is the number of the first."""
    title = ""
    while lines and (not lines[0].strip() or lines[0].startswith(TITLE)):
        title = lines[0].partition(",")[2].strip() or title
        lines, line = lines[1:], line + 1
    if not lines:
        return None
    marked = [text.startswith(MAGIC) for text in lines if text.strip()]
    if not any(marked):
        return Cell(kind=CellKind.PYTHON, source="\n".join(lines).rstrip(), line=line, file=str(path), title=title)
    if not all(marked):
        raise ConfigError(f"{path}:{line}: a cell has {MAGIC!r} before every line or before none")
    plain = [text.removeprefix(MAGIC).removeprefix(" ") for text in lines]
    return _magic_cell("\n".join(plain).rstrip(), line, str(path), title)


def _magic_cell(text: str, line: int, file: str, title: str = "") -> Cell:
    """Returns a cell that begins with ``%``. Raises: ConfigError for a magic that the local runner does not know."""
    magic = re.match(r"%(\S+)[ \t]*(\n?)", text)
    match magic and magic.group(1):
        case "md" | "md-sandbox":
            kind = CellKind.MARKDOWN
        case "sql":
            kind = CellKind.SQL
        case "python":
            kind = CellKind.PYTHON
        case "pip":
            raise ConfigError(f"{file}:{line}: %pip is not supported: add the library to the wheel's dependencies")
        case _:
            first, _, _ = text.partition("\n")
            raise ConfigError(f"{file}:{line}: {first!r}: the local runner knows %md, %sql, %python")
    assert magic is not None
    return Cell(kind=kind, source=text[magic.end() :], line=line + len(magic.group(2)), file=file, title=title)


def _ipynb_cells(path: Path) -> Iterator[Cell]:
    for number, (kind, source) in enumerate(_ipynb(path), 1):
        file = f"{path}[cell {number}]"
        match kind:
            case "code" if source.lstrip().startswith(("%", "!")):
                yield _magic_cell(source.lstrip(), 1, file)
            case "code" if source.strip():
                yield Cell(kind=CellKind.PYTHON, source=source, line=1, file=file)
            case "markdown":
                yield Cell(kind=CellKind.MARKDOWN, source=source, line=1, file=file)


def _ipynb(path: Path) -> list[tuple[str, str]]:
    """Returns each cell's type and source."""
    try:
        import nbformat  # noqa: PLC0415 (only who has .ipynb notebooks needs it)
    except ImportError as error:
        raise ConfigError(f"{path}: to run .ipynb notebooks install nbformat") from error
    try:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        return [(cell["cell_type"], str(cell["source"])) for cell in notebook["cells"]]
    except (nbformat.ValidationError, *_NO_IPYNB) as error:
        raise ConfigError(f"{path}: is not an .ipynb notebook: {error}") from error
