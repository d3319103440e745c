"""The notebook that reads an earlier state, as it stands, with a session that only remembers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import widgets
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.entry import deployed_lake
from ticdc_lakehouse.gold.time_travel import AsOf
from ticdc_local.runner.notebook import Surroundings, run_notebook

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "gold" / "as_of.py"
DEV = {"catalog": "lab", **{f"{layer}_schema": f"dev_jane_{layer}" for layer in Layer}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None, Lake]]:
    """What ``as_of`` is asked for."""
    calls: list[tuple[str, int | None, Lake]] = []

    def as_of(_: object, feed: str, tso: int | None, *, lake: Lake) -> AsOf:
        calls.append((feed, tso, lake))
        return AsOf(feed=feed, tso=1, time=datetime.now(UTC), tables={}, behind={}, names={})

    monkeypatch.setattr(widgets, "as_of", as_of)
    return calls


def run(**widgets: str) -> None:
    conf: dict[str, str] = {}
    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=conf.get, set=conf.__setitem__))
    run_notebook(NOTEBOOK, widgets, Surroundings(spark=spark))


def test_it_reads_the_schemas_that_the_widgets_name(asked: list[tuple[str, int | None, Lake]]) -> None:
    run(feed="shop_open", tso="470613127470252033", **DEV)
    [(feed, tso, lake)] = asked
    assert (feed, tso, lake.catalog) == ("shop_open", 470613127470252033, "lab")
    assert lake.table(Layer.GOLD, "t") == "`lab`.`dev_jane_gold`.`t`"
    assert lake.schemas == deployed_lake(lake.spark, "lab", "dev_jane_").schemas


def test_without_a_tso_it_reads_the_newest(asked: list[tuple[str, int | None, Lake]]) -> None:
    run()
    [(feed, tso, lake)] = asked
    assert (feed, tso, lake.catalog) == ("shop_craft", None, "main")
    assert lake.schemas == {layer: layer.value for layer in Layer}


def test_it_says_which_tables_are_behind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Their views below look like those of the others."""
    behind = {"shop.orders": 470613127188971521, "shop.items": 470613127188971520}
    snapshot = AsOf(feed="f", tso=470613127470252033, time=datetime.now(UTC), tables={}, behind=behind, names={})
    monkeypatch.setattr(widgets, "as_of", lambda *_, **__: snapshot)
    run()
    assert capsys.readouterr().out == (
        f"watermark 470613127470252033, {snapshot.time}; behind it: "
        "shop.items (as of TSO 470613127188971520 (2026-11-21 07:36:49.455 UTC)), "
        "shop.orders (as of TSO 470613127188971521 (2026-11-21 07:36:49.455 UTC))\n"
    )


@pytest.mark.parametrize(
    ("tso", "said"),
    [
        ("yesterday", "parameter tso: expected a whole number or nothing, found 'yesterday'"),
        ("9223372036854775808", "parameter tso: expected at most 9223372036854775807, found 9223372036854775808"),
    ],
)
def test_a_wrong_tso_is_named(tso: str, said: str, asked: list[tuple[str, int | None, Lake]]) -> None:
    with pytest.raises(ConfigError, match=said):
        run(tso=tso)
    assert asked == []
