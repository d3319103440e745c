"""Trees of lines as plain text, and as HTML for a notebook: everything escaped, no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ticdc_codec.inspection.view import Node, Style

_COLOURS = {
    Style.PLAIN: "",
    Style.HEAD: "font-weight:bold",
    Style.NAME: "color:#0b7285",
    Style.TYPE: "color:#862e9c",
    Style.NOTE: "opacity:.6",
    Style.VALUE: "color:#2b8a3e",
    Style.OLD: "color:#c92a2a;text-decoration:line-through",
    Style.NEW: "color:#2b8a3e;font-weight:bold",
    Style.BYTES: "color:#a56300",
    Style.ERROR: "color:#c92a2a;font-weight:bold",
}
_BLOCK = "font-family:monospace;white-space:pre-wrap;margin:0 0 0 1.2em"


def plain_text(node: Node) -> str:
    """The tree as plain text, one line for each node; ``│``, ``├──`` and ``└──`` show the nesting."""
    return "\n".join([_line(node), *_branches(node, "")])


def _branches(node: Node, indent: str) -> Iterator[str]:
    for child in node.children:
        is_last = child is node.children[-1]
        yield f"{indent}{'└── ' if is_last else '├── '}{_line(child)}"
        yield from _branches(child, indent + ("    " if is_last else "│   "))


def _line(node: Node) -> str:
    return " ".join(piece for piece, _ in node.pieces if piece)


def html(node: Node) -> str:
    """The tree as one HTML element; a node that has children can be folded."""
    return f'<div style="{_BLOCK}">{_element(node)}</div>'


def _element(node: Node) -> str:
    line = " ".join(f'<span style="{_COLOURS[style]}">{escape(piece)}</span>' for piece, style in node.pieces if piece)
    if not node.children:
        return f"<div>{line}</div>"
    below = "".join(map(_element, node.children))
    return f'<details open><summary>{line}</summary><div style="{_BLOCK}">{below}</div></details>'
