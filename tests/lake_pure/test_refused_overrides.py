"""What an override is refused for, before anything is read of the lake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold.overrides import OverrideAction, blocked_table
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, unsupported_ddl
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

STOP = StopReason(kind=StopKind.QUARANTINED, detail="a message at crm/0/434 is in quarantine; `replay` is a way out")
FIRST_KEY = unsupported_ddl(5, "ALTER TABLE orders ADD PRIMARY KEY (id)", "it had no key", can_skip=False)
STATE = TableState(lake_name="f_shop_orders", stable_id="d", version=1, applied_tso=5, stop=STOP)


@pytest.mark.parametrize(
    ("action", "why"),
    [(OverrideAction.RESUME, "needs no override; the next run continues"), (OverrideAction.SKIP_DDL, "by a DDL")],
)
def test_a_message_in_quarantine_is_no_matter_of_overrides(tmp_path: Path, action: OverrideAction, why: str) -> None:
    before = Published(tso=9, tables={TableName("shop", "orders"): STATE})
    with pytest.raises(ConfigError, match=rf"table shop.orders .*{why}.*crm/0/434"):
        blocked_table(DeltaReader(tmp_path), "f", before, "Shop.Orders", action)


def test_a_ddl_is_not_skipped_where_that_does_not_help(tmp_path: Path) -> None:
    before = Published(tso=9, tables={TableName("shop", "orders"): replace(STATE, stop=FIRST_KEY)})
    with pytest.raises(ConfigError, match=r"table shop.orders: skipping the DDL does not help: .*load` continues from"):
        blocked_table(DeltaReader(tmp_path), "f", before, "shop.orders", OverrideAction.SKIP_DDL)
