"""``notebooks/tour.ipynb``: made from its source, run as it stands, shown in the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import nbformat
import pytest
from tour_pages import NOTEBOOK, PAGE, SOURCE, ipynb_text, made_lake, svg_file

from ticdc_lakehouse.job_parameters import ROOT_CONF
from ticdc_local.runner.notebook import CellKind, Surroundings, read_notebook, run_notebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker


def test_the_notebook_is_what_its_source_makes() -> None:
    assert NOTEBOOK.read_text(encoding="utf-8") == ipynb_text(), "make tour"
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)


def test_the_page_shows_every_cell_and_its_plots() -> None:
    page, place = PAGE.read_text(encoding="utf-8"), 0
    for cell in read_notebook(SOURCE).cells:
        text = cell.source if cell.kind is CellKind.MARKDOWN else f"```python\n{cell.source}\n```"
        place = page.index(text, place) + len(text)
    images = re.findall(r"!\[plot\]\((.*)\)", page)
    assert len(images) == page.count("displayHTML(")
    for image in images:
        assert is_drawing((PAGE.parent / image).read_text(encoding="utf-8"))


@pytest.mark.long
def test_the_tour_goes_from_bytes_to_tables_that_equal_tidb(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = spark.newSession()  # of this lake: the tests' own session knows another folder
    session.conf.set(ROOT_CONF, str(tmp_path))
    parameters = made_lake(session, broker, tmp_path, prefix="tour_") | {"replay": "yes"}
    capsys.readouterr()
    plots: list[str] = []
    run_notebook(NOTEBOOK, parameters, Surroundings(spark=session, show_html=plots.append))
    shown = capsys.readouterr().out
    assert "protocol craft the value begins with version 1" in shown
    assert re.search(r"tour_shop +0 +93 +message_too_large", shown)
    assert "Replayed(decoded=1, still_open=0)" in shown
    assert re.search(r"^275 +274 +1 +0$", shown, re.MULTILINE), "messages, decoded, quarantined, waiting"
    assert re.findall(r"^TSO \d+: 3 tables, \d+ rows, (\d+) differences$", shown, re.MULTILINE)[-1] == "0"
    assert len(plots) == 3
    for plot in plots:
        assert is_drawing(svg_file(plot))


def is_drawing(text: str) -> bool:
    """Whether a browser draws all of it: what is in another namespace, it passes over."""
    tags = {element.tag for element in ElementTree.fromstring(text).iter()}
    return all(tag.startswith("{http://www.w3.org/2000/svg}") for tag in tags) and bool(tags)
