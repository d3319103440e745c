"""Tables of results on the terminal, in the form that docs/benchmarks.md takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A measured figure with its bound."""

    what: str
    measured: float
    bound: float
    at_most: bool
    """Whether the bound is an upper one."""
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure keeps its bound."""
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound

    def __str__(self) -> str:
        sign, verdict = ("≤" if self.at_most else "≥"), ("met" if self.met else "MISSED")
        return f"{verdict:6}  {self.what}: {self.measured:.3g}{self.unit} (target {sign} {self.bound:g}{self.unit})"


def table(title: str, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns under a title."""
    cells = [list(heads), *(list(line) for line in lines)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(heads))]
    body = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join(["", title, "", body[0], rule, *body[1:], ""])
