"""Trees of lines on a terminal. Colours only where rich finds one that shows them and NO_COLOR is not set."""

from __future__ import annotations

from io import StringIO
from typing import TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ticdc_codec.inspection.view import Node, Style

_COLOURS = {
    Style.PLAIN: "",
    Style.HEAD: "bold",
    Style.NAME: "cyan",
    Style.TYPE: "magenta",
    Style.NOTE: "dim",
    Style.VALUE: "green",
    Style.OLD: "red",
    Style.NEW: "bold green",
    Style.BYTES: "yellow",
    Style.ERROR: "bold red",
}


_WIDE = 1 << 16
"""Columns: where nobody's terminal ends, no line does."""


def show(node: Node, file: TextIO) -> None:
    """Print the tree, folded where the terminal ends."""
    Console(file=file, highlight=False, width=None if file.isatty() else _WIDE).print(_branch(node))


def text(node: Node) -> str:
    """The tree as plain text, a line each."""
    out = StringIO()
    Console(file=out, highlight=False, width=_WIDE, color_system=None).print(_branch(node))
    return out.getvalue().rstrip("\n")


def _branch(node: Node) -> Tree:
    branch = Tree(_line(node), guide_style="dim")
    branch.children += map(_branch, node.children)
    return branch


def _line(node: Node) -> Text:
    return Text(" ").join(Text(piece, style=_COLOURS[style]) for piece, style in node.pieces if piece)
