"""A statement's rows as a table, CSV, JSON lines or a Markdown table."""

from __future__ import annotations

import os
import pydoc
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from typing import TextIO

import orjson
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, NumericType, StructField
from rich.cells import cell_len, set_cell_size

from ticdc_local.runner.display import as_texts, without_controls

Texts = Sequence[str | None]
"""A row: each value as Spark writes it, binary as hexadecimal; None for NULL."""
NULL = "NULL"
# A whole text: an empty one, or one with a character that means something in CSV.
_CSV_QUOTED = re.compile(r'\A(?:\Z|[^",\r\n]*[",\r\n].*)', re.DOTALL)
_NEWLINE = re.compile(r"\r\n?|\n")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""Floats that JSON does not have."""


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Printing:
    """How a result is printed."""

    format: Format = Format.TABLE
    rows: int | None = 20
    """The most rows to print; None for all."""
    width: int | None = None
    """Most characters of a value in a table: longer ones are cut; None for no limit."""
    pages: bool = False
    """True if a table that is larger than the terminal is shown by the pager."""

    @property
    def remarks(self) -> TextIO:
        """Where what is no result goes: beside tables, but never into what a program reads."""
        return sys.stdout if self.format is Format.TABLE else sys.stderr

    def show(self, result: DataFrame) -> None:
        """Prints a result's rows."""
        rows = texts(result)
        shown = rows if self.rows is None else islice(rows, self.rows)
        match self.format:
            case Format.CSV:
                for row in chain([result.columns], shown):
                    print(csv_line(row))
            case Format.JSON:
                for row in shown:
                    print(json_line(result.schema.fields, row))
            case Format.MARKDOWN:
                print("\n".join(markdown_lines(result.columns, shown)))
            case Format.TABLE:
                lines = [*table_lines(result.columns, [*shown], self.width)]
                (show_paged if self.pages else print)("\n".join(lines))
        if self.rows is not None and next(rows, None) is not None:
            print(f"only the first {self.rows} rows; --rows all prints all", file=sys.stderr)


def texts(result: DataFrame) -> Iterator[Texts]:
    """Returns the rows one after the other, read partition by partition."""
    return (tuple(row) for row in as_texts(result).toLocalIterator())


def show_paged(text: str) -> None:
    """Prints a text, or passes it to the pager (``$PAGER``, else less) if it is larger than the terminal."""
    size, lines = shutil.get_terminal_size(), text.splitlines()
    if len(lines) < size.lines and max(map(cell_len, lines), default=0) <= size.columns:
        print(text)
        return
    # Less neither folds a box's lines nor clears the screen when it ends.
    os.environ.setdefault("LESS", "FSX")
    pydoc.pager(text)


def csv_line(row: Texts) -> str:
    """Returns a line as Spark writes CSV: nothing for NULL, ``""`` for an empty text; never an empty line."""
    return ",".join("" if text is None else _CSV_QUOTED.sub(_in_quotes, text) for text in row) or '""'


def _in_quotes(text: re.Match[str]) -> str:
    return '"' + text[0].replace('"', '""') + '"'


def json_line(fields: Sequence[StructField], row: Texts) -> str:
    """Returns an object with every column, also of two that have one name: numbers and booleans as such, the rest as
    text."""
    members = (f"{_json(field.name)}:{_json_value(field, text)}" for field, text in zip(fields, row, strict=True))
    return f"{{{','.join(members)}}}"


def _json_value(field: StructField, text: str | None) -> str:
    is_bare = isinstance(field.dataType, NumericType | BooleanType) and text not in _NO_NUMBERS
    return text if text is not None and is_bare else _json(text)


def _json(text: str | None) -> str:
    return orjson.dumps(text).decode()


def table_lines(columns: Sequence[str], rows: Sequence[Texts], width: int | None) -> Iterator[str]:
    """Yields a box with the values to the right, as Spark's ``show`` prints it."""
    lines = [[_cell(text, width) for text in row] for row in (columns, *rows)]
    widths = [max(3, *(cell_len(line[i]) for line in lines)) for i in range(len(columns))]
    rule = "+" + "+".join("-" * each for each in widths) + "+"
    boxed = ["|" + "|".join(map(_right, line, widths)) + "|" for line in lines]
    yield from (rule, boxed[0], rule, *boxed[1:], rule)


def _right(text: str, width: int) -> str:
    """Moves a text to the right in ``width`` columns of a terminal, of which some characters take two."""
    return " " * (width - cell_len(text)) + text


def _cell(text: str | None, width: int | None) -> str:
    shown = NULL if text is None else without_controls(text)
    if width is None or cell_len(shown) <= width:
        return shown
    end = "..."[: max(0, width - 3)]
    return set_cell_size(shown, width - len(end)) + end


def markdown_lines(columns: Sequence[str], rows: Iterator[Texts]) -> Iterator[str]:
    """Yields a table of Markdown."""
    yield _markdown_line(columns)
    yield _markdown_line(["---"] * len(columns))
    yield from map(_markdown_line, rows)


def _markdown_line(row: Texts) -> str:
    cells = (NULL if text is None else _NEWLINE.sub("<br>", text.replace("|", "\\|")) for text in row)
    return f"| {' | '.join(cells)} |"
