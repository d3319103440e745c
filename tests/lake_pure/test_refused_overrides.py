"""What an override is refused for, before anything is read of the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.gold.overrides import Action, blocked_table
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

STOP = StopReason(kind=StopKind.QUARANTINED, detail="a message at crm/0/434 is in quarantine; `replay` is a way out")
STATE = TableState(name="f_shop_orders", data="d", version=1, applied_tso=5, stop=STOP)


@pytest.mark.parametrize(
    ("action", "why"), [(Action.RESUME, "needs no override; the next run goes on"), (Action.SKIP_DDL, "by a DDL")]
)
def test_a_message_in_quarantine_is_no_matter_of_overrides(tmp_path: Path, action: Action, why: str) -> None:
    before = Published(tso=9, tables={TableName("shop", "orders"): STATE})
    with pytest.raises(ConfigError, match=rf"table shop.orders .*{why}.*crm/0/434"):
        blocked_table(DeltaReader(tmp_path), "f", before, "Shop.Orders", action)
