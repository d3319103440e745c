"""``make tour``: ``notebooks/tour.ipynb`` from its source ``docs/tour.py``, and ``docs/tour.md`` from a run of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ticdc_local.report.plots import LEFT, STYLE, WIDTH
from ticdc_local.runner.notebook import Cell, CellKind, Surroundings, read_notebook, run_notebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "docs" / "tour.py"
NOTEBOOK = PROJECT / "notebooks" / "tour.ipynb"
PAGE = PROJECT / "docs" / "tour.md"
STREAM = PROJECT / "tests" / "data" / "streams" / "tiflow-basic"
FIRST_WINDOW = 8
"""The first of TiDB's answers that gold is applied up to; the second window ends at the message in quarantine."""
TOO_LARGE = 3600
"""Bytes; one message of the recording has more."""
LEGEND_HEIGHT, LEGEND_WIDTH = 30, 120


def ipynb_text() -> str:
    """The source as ``.ipynb``, without outputs."""
    cells = [_ipynb_cell(cell, f"cell-{number}") for number, cell in enumerate(read_notebook(SOURCE).cells, 1)]
    notebook = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _ipynb_cell(cell: Cell, name: str) -> nbformat.NotebookNode:
    made = new_markdown_cell if cell.kind is CellKind.MARKDOWN else new_code_cell
    return made(cell.source, id=name)


def made_lake(spark: SparkSession, broker: Broker, folder: Path, prefix: str = "") -> dict[str, str]:
    """A lake with one feed: a window is published, a message is in quarantine, and its cause is mended. Gives the
    notebook's parameters; ``prefix`` begins the names of schemas and topic."""
    from ticdc_lakehouse.catalog import Layer  # noqa: PLC0415 - what needs no lake must not load Spark
    from ticdc_lakehouse.entry import Run  # noqa: PLC0415
    from ticdc_local.broker import recorded_messages  # noqa: PLC0415
    from ticdc_local.runner.job import local_parameters  # noqa: PLC0415
    from ticdc_local.verify_stream import write_feed  # noqa: PLC0415
    from ticdc_testkit.recorded_streams import answers, recorded_stream  # noqa: PLC0415

    stream, topic, feeds = recorded_stream(STREAM, "craft.jsonl.gz", {}), f"{prefix}shop", folder / "feeds"
    broker.create_topic(topic, stream.partitions)
    broker.produce(topic, recorded_messages(stream.messages))
    file = write_feed(stream, feeds, "shop", broker.bootstrap_servers, topic)
    mended = file.read_text(encoding="utf-8")
    file.write_text(f"{mended}max_message_bytes: {TOO_LARGE}\n", encoding="utf-8")
    schemas = {f"{layer}_schema": f"{prefix}{layer}" for layer in Layer}
    parameters = {**local_parameters(PROJECT, folder, feeds), **schemas, "feed": "shop", "answers": str(STREAM)}
    run = Run.from_parameters(spark, parameters, lambda scope, key: f"{scope}/{key}")
    run.bronze()
    run.silver()
    replace(run, until_tso=[*answers(STREAM)][FIRST_WINDOW].watermark).gold()
    file.write_text(mended, encoding="utf-8")
    return parameters


@dataclass(slots=True)
class Page:
    """A run of a notebook as Markdown; its plots are files beside it."""

    images: Path
    parts: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def around(self, cell: Cell) -> Iterator[None]:
        """Add a cell, and what it prints."""
        self.parts.append(cell.source if cell.kind is CellKind.MARKDOWN else f"```python\n{cell.source}\n```")
        with redirect_stdout(StringIO()) as printed:
            yield
        if text := printed.getvalue().rstrip():
            self.parts.append(f"```text\n{text}\n```")

    def plot(self, html: str) -> None:
        """Add what ``displayHTML`` is given."""
        path = self.images / f"tour-{next(self.numbers)}.svg"
        path.write_text(svg_file(html), encoding="utf-8")
        self.parts.append(f"![plot](images/{path.name})")

    def text(self) -> str:
        """The page."""
        return "\n\n".join(self.parts) + "\n"


def svg_file(html: str) -> str:
    """The one plot in HTML as a drawing of its own, which pages of Markdown can show."""
    [(plot, drawn)] = re.findall(rf'(<svg viewBox="0 0 {WIDTH} (\d+)".*?</svg>)', html, re.DOTALL)
    height = int(drawn) + LEGEND_HEIGHT
    legend = (
        f'<g transform="translate({LEFT + number * LEGEND_WIDTH} {height - 8})">'
        f'<rect class="c{colour}" y="-10" width="10" height="10"/><text x="15">{name}</text></g>'
        for number, (colour, name) in enumerate(re.findall(r'<i class="c(\d)"></i>(.*?)</span>', html))
    )
    # The plot's style makes every drawing as wide as its page.
    root = f'width="{WIDTH}" height="{height}" style="width: {WIDTH}px; height: {height}px" font-family="sans-serif"'
    sized = plot.replace("<svg ", f'<svg style="width: {WIDTH}px; height: {drawn}px" ', 1)
    style = f"<style>{STYLE}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {root}>{style}{sized}{"".join(legend)}</svg>\n'


def main() -> None:
    """Write all three."""
    from ticdc_local.broker import Broker  # noqa: PLC0415
    from ticdc_local.session import local_session  # noqa: PLC0415

    NOTEBOOK.write_text(ipynb_text(), encoding="utf-8")
    page = Page(PROJECT / "docs" / "images")
    with TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as broker:
        lake = Path(folder) / "lake"
        spark = local_session(lake)
        parameters = made_lake(spark, broker, lake) | {"replay": "yes"}
        around = Surroundings(spark=spark, show_html=page.plot, around=page.around)
        run_notebook(NOTEBOOK, parameters, around)
        spark.stop()
    PAGE.write_text(page.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
