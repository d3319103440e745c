"""Plots as SVG text: lines over time, stacked bars by window, bars by name. Their style is `STYLE`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from ticdc_lakehouse.counted import counted

SECONDS = "s"
"""A unit that plots turn into minutes, hours or days where values are that large."""
WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28
_SPANS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, SECONDS))
_PALETTE = ("#3b7dd8", "#e08b3a", "#2f9e6e", "#b65fc2", "#d0494f", "#4aa9b8", "#8c7a2f", "#7a8794")
_WIDEST = 90.0
"""Width of the widest bar; enough for its name below."""
COLOURS = len(_PALETTE)
"""Classes ``c0`` to ``c7``."""
STYLE = """
svg { width: 100%; height: auto; display: block; } svg text { font-size: 14px; fill: var(--soft, #6b7b8b); }
.grid { stroke: var(--line, #8fa0b0); stroke-width: 1; } .line { fill: none; stroke-width: 2; }
.legend { margin: 6px 0 0; font-size: 12px; color: var(--soft, #6b7b8b); }
.legend span { margin-right: 14px; white-space: nowrap; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
""" + "\n".join(
    f"rect.c{number}, circle.c{number} {{ fill: {colour}; }} .line.c{number} {{ stroke: {colour}; }} "
    f"i.c{number} {{ background: {colour}; }}"
    for number, colour in enumerate(_PALETTE)
)
"""The style of every plot; a page may set the colours ``--soft`` of texts and ``--line`` of the grid."""


def figure(plot: str) -> str:
    """Returns a plot with its style, for what is no page of its own: ``displayHTML`` of a notebook."""
    return f'<style>{STYLE}</style><div style="max-width: {WIDTH}px; font-family: sans-serif">{plot}</div>'


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name in the legend, and its points (time, value)."""

    name: str
    points: Sequence[tuple[datetime, float]]


def lines(series: Sequence[Line], unit: str) -> str:
    """Draws lines over time; empty if there is no point."""
    points = [point for line in series for point in line.points]
    if not points:
        return ""
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    span = (last - first).total_seconds() or 1.0
    largest = max(value for _, value in points)
    sizes = _SPANS if unit == SECONDS else ((1, unit),)
    size, unit = next((each for each in sizes if largest >= 2 * each[0]), sizes[-1])
    top = _round_up(largest / size)

    def place(at: datetime, value: float) -> tuple[float, float]:
        return _x((at - first).total_seconds() / span), _y(value / top)

    drawn = []
    for number, line in enumerate(series):
        values = [value / size for _, value in line.points]
        places = [place(at, value) for (at, _), value in zip(line.points, values, strict=True)]
        drawn.append(_line(number, places, values, unit))
    ends = _text(LEFT, HEIGHT - 8, f"{first:%Y-%m-%d %H:%M:%S} UTC", "start")
    if last > first:
        ends += _text(WIDTH - RIGHT, HEIGHT - 8, f"{last:%Y-%m-%d %H:%M:%S} UTC", "end")
    grid = _grid(top, f" {unit}" if sizes is _SPANS else "")
    return _svg([*grid, *drawn, ends]) + _legend([line.name for line in series])


def _line(number: int, places: Sequence[tuple[float, float]], values: Sequence[float], unit: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    colour = f"c{number % COLOURS}"
    dots = "".join(
        f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{value:,.1f} {unit}</title></circle>'
        for (x, y), value in zip(places, values, strict=True)
    )
    return f'<polyline class="line {colour}" points="{path}"/>{dots}'


def stacks(columns: Sequence[str], parts: Mapping[str, Sequence[float]], unit: str) -> str:
    """Draws stacked bars, the first and the last one named: a column per name, a part of each for every name in
    ``parts``; empty if all is zero."""
    top = max((sum(values[i] for values in parts.values()) for i in range(len(columns))), default=0)
    if top == 0:
        return ""
    top = _round_up(top)
    width = min((WIDTH - LEFT - RIGHT) / len(columns), _WIDEST)
    bars = []
    for i, column in enumerate(columns):
        bottom = 0.0
        for number, (name, values) in enumerate(parts.items()):
            if values[i]:
                label = f"{name}, {column}: {values[i]:,.0f} {unit}"
                bars.append(_bar(number, LEFT + i * width, bottom / top, values[i] / top, width, label))
                bottom += values[i]
    ends = _text(LEFT, HEIGHT - 8, columns[0], "start")
    if len(columns) > 1:
        ends += _text(LEFT + len(columns) * width, HEIGHT - 8, columns[-1], "end")
    return _svg([*_grid(top), *bars, ends]) + _legend([*parts])


def _bar(number: int, x: float, bottom: float, height: float, width: float, label: str) -> str:
    y, pixels = _y(bottom + height), _y(bottom) - _y(bottom + height)
    gap = min(2.0, width / 5)
    shown = max(1.0, width - gap)
    return (
        f'<rect class="c{number % COLOURS}" x="{x + gap / 2:.1f}" y="{y:.1f}" width="{shown:.1f}" '
        f'height="{pixels:.1f}"><title>{escape(label)}</title></rect>'
    )


def bars(values: Mapping[str, int], one: str) -> str:
    """Draws a horizontal bar for each name, the longest first, with its number of ``one``; empty if there is none."""
    if not values:
        return ""
    top, height = max(values.values()), 24
    rows = []
    for number, (name, value) in enumerate(sorted(values.items(), key=lambda item: -item[1])):
        y = number * height
        width = (WIDTH - 300) * value / (top or 1)
        rows.append(
            _text(190, y + 16, name, "end")
            + f'<rect class="c0" x="200" y="{y + 4}" width="{max(width, 1):.1f}" height="16"/>'
            + _text(206 + width, y + 16, counted(value, one), "start")
        )
    return _svg(rows, height * len(values))


def _svg(parts: Sequence[str], height: int = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _grid(top: float, unit: str = "") -> list[str]:
    """Draws four lines with their values at the left."""
    marks = [top * quarter / 4 for quarter in range(5)]
    return [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(mark / top):.1f}" y2="{_y(mark / top):.1f}"/>'
        + _text(LEFT - 6, _y(mark / top) + 4, f"{_short(mark)}{unit}", "end")
        for mark in marks
    ]


def _short(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if suffix == 'k' else size):,.4g}{suffix}"
    return f"{value:,.4g}"


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<span><i class="c{number % COLOURS}"></i>{escape(name)}</span>' for number, name in enumerate(names)
    )
    return f'<p class="legend">{items}</p>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _round_up(value: float) -> float:
    """Returns the next 1, 2, 2.5, 4, 5 or 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= value * 0.999_999)
