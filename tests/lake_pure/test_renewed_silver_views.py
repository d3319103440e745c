"""Which of a table's views are made again when its published state changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ticdc_lakehouse.gold import table_views
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.schema.definition import Table

CONFIG = GoldConfig(feed="f", time_zone="UTC")
TABLE = Table(database="d", table="t", columns=(), key=())
STATE = TableState(lake_name="f_d_t", stable_id="own", version=3, applied_tso=10)


@pytest.mark.parametrize(
    ("old", "redefined", "silver"),
    [
        (STATE, False, False),
        (STATE, True, True),
        (None, False, True),
        (replace(STATE, lake_name="f_d_u"), False, True),
        (replace(STATE, stable_id="of a table that was renamed since"), False, True),
    ],
)
def test_silvers_view_is_made_again_for_other_columns_and_for_another_table_of_the_name(
    old: TableState | None, redefined: bool, silver: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(table_views, "gold_view", lambda *_, **__: made.append("gold"))
    monkeypatch.setattr(table_views, "silver_view", lambda *_: made.append("silver"))
    lake: Any = None
    table_views.renew(lake, CONFIG, TABLE, replace(STATE, version=4), old, redefined=redefined)
    assert made == (["gold", "silver"] if silver else ["gold"])
