"""A statement's rows as a table, CSV, JSON lines or a Markdown table."""

from __future__ import annotations

import csv
import os
import pydoc
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

import orjson
from pyspark.sql import DataFrame

from ticdc_local.runner.display import as_texts

Texts = Sequence[str | None]
"""A row: each value as Spark writes it, binary as hexadecimal; None for NULL."""
NULL = "NULL"


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
    """So many at most; None for all."""
    width: int | None = None
    """A table's longer values are cut to so many characters; None for none."""
    pages: bool = False
    """Whether a table that is larger than the terminal is shown by the pager."""

    def show(self, result: DataFrame) -> None:
        """Print a result's rows."""
        rows = texts(result)
        shown = rows if self.rows is None else islice(rows, self.rows)
        match self.format:
            case Format.CSV:
                csv.writer(sys.stdout, lineterminator="\n").writerows([result.columns, *shown])
            case Format.JSON:
                for row in shown:
                    print(orjson.dumps(dict(zip(result.columns, row, strict=True))).decode())
            case Format.MARKDOWN:
                print("\n".join(markdown_lines(result.columns, shown)))
            case Format.TABLE:
                lines = [*table_lines(result.columns, [*shown], self.width)]
                (show_paged if self.pages else print)("\n".join(lines))
        if self.rows is not None and next(rows, None) is not None:
            print(f"only the first {self.rows} rows; --rows all prints all", file=sys.stderr)


def texts(result: DataFrame) -> Iterator[Texts]:
    """The rows one after the other, read partition by partition."""
    return (tuple(row) for row in as_texts(result).toLocalIterator())


def show_paged(text: str) -> None:
    """Print a text, or give it to the pager (``$PAGER``, else less) if it is larger than the terminal."""
    size, lines = shutil.get_terminal_size(), text.splitlines()
    if len(lines) < size.lines and max(map(len, lines), default=0) <= size.columns:
        print(text)
        return
    # Less neither folds a box's lines nor clears the screen when it ends.
    os.environ.setdefault("LESS", "FSX")
    pydoc.pager(text)


def table_lines(columns: Sequence[str], rows: Sequence[Texts], width: int | None) -> Iterator[str]:
    """A box with the values to the right, as Spark's ``show`` prints it."""
    lines = [[_cell(text, width) for text in row] for row in (columns, *rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(columns))]
    rule = "+" + "+".join("-" * each for each in widths) + "+"
    boxed = ["|" + "|".join(text.rjust(each) for text, each in zip(line, widths, strict=True)) + "|" for line in lines]
    yield from (rule, boxed[0], rule, *boxed[1:], rule)


def _cell(text: str | None, width: int | None) -> str:
    shown = NULL if text is None else text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return shown if width is None or len(shown) <= width else f"{shown[: width - 3]}..."


def markdown_lines(columns: Sequence[str], rows: Iterator[Texts]) -> Iterator[str]:
    """A table of Markdown."""
    yield _markdown_line(columns)
    yield _markdown_line(["---"] * len(columns))
    yield from map(_markdown_line, rows)


def _markdown_line(row: Texts) -> str:
    cells = (NULL if text is None else text.replace("|", "\\|").replace("\n", "<br>") for text in row)
    return f"| {' | '.join(cells)} |"
