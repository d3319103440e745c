"""``display`` and ``displayHTML`` in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pprint import pformat
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from ticdc_codec.errors import ConfigError

ROWS = 20
WIDTH = 40
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def display(value: Any) -> None:
    """Prints a Spark DataFrame's first rows as a table, a pandas one as its own text.

    Raises: ConfigError for a streaming DataFrame, which a terminal cannot follow, and for a value that is none and has
        no HTML of its own: Databricks raises an exception for it.
    """
    if not hasattr(value, "_repr_html_"):
        raise ConfigError(f"display of {type(value).__name__}: expected a DataFrame; print other values")
    print(text_of(value))


def display_html(html: str) -> None:
    """Prints the text of an HTML page."""
    print(html_text(html))


def text_of(value: Any) -> str:
    """Returns a DataFrame's first rows as a table, any other value as its own text."""
    if isinstance(value, DataFrame):
        return _frame(value)
    if hasattr(value, "to_string"):
        return str(value.to_string(max_rows=ROWS))
    return value if isinstance(value, str) else pformat(value)


def _frame(frame: DataFrame) -> str:
    if frame.isStreaming:
        raise ConfigError(
            "display of a streaming DataFrame: not supported locally; write it to a table and display that"
        )
    rows = as_texts(frame.limit(ROWS + 1)).collect()
    lines = table(frame.columns, rows[:ROWS])
    return f"{lines}\n(first {ROWS} rows)" if len(rows) > ROWS else lines


def as_texts(frame: DataFrame) -> DataFrame:
    """Returns the values as Spark writes them, times in the session's zone, binary as hexadecimal."""
    # By number, as two columns may have one name.
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    binary = {field.name for field in numbered.schema if isinstance(field.dataType, BinaryType)}
    return numbered.select(*(F.hex(c) if c in binary else F.col(c).cast("string") for c in numbered.columns))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a text table: a line of names, a rule, a line per row. Long values are cut, NULL is ``NULL``."""
    lines = [[_cell(name) for name in columns], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    text = "NULL" if value is None else without_controls(str(value))
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def without_controls(text: str) -> str:
    """Returns the text on one line, with nothing in it that a terminal would obey."""
    return _CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


def html_text(html: str) -> str:
    """Returns the text of an HTML page, a line per block, without scripts, styles and drawings."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.found).splitlines())
    return "\n".join(line for line in lines if line)


class _Text(HTMLParser):
    _BLOCKS = frozenset(("p", "div", "br", "li", "tr", "table", "h1", "h2", "h3", "h4", "pre", "ul", "ol"))
    _SILENT = frozenset(("script", "style", "svg"))

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 (the parser's face)
        self.silent += tag in self._SILENT
        self.found.append("\n" if tag in self._BLOCKS else "")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in self._SILENT
        self.found.append("\n" if tag in self._BLOCKS else " ")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.found.append(data)
