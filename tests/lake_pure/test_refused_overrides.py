"""What an override is refused for, before anything is read of the lake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.overrides import REPAIR, OverrideAction, blocked_table
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, unsupported_ddl
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pathlib import Path

STOP = StopReason(kind=StopKind.QUARANTINED, detail="a message at crm/0/434 is in quarantine; `replay` is a way out")
FIRST_KEY = unsupported_ddl(5, "ALTER TABLE orders ADD PRIMARY KEY (id)", "it had no key", can_skip=False)
LATE = StopReason(kind=StopKind.LATE_ROWS, detail="came late", needs_override=True)
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


def write_repair(lake: Path, name: str, commit_ts: int, **data: str) -> None:
    """Write that a table of the database ``shop`` was repaired, and the window that published it."""
    identity = {"feed": "f", "number": 1, "run": "r"}
    row = {"database": "shop", "table": name, "action": REPAIR, "commit_ts": commit_ts, **data}
    write_deltalake(str(lake / Layer.OPS / "windows"), pa.Table.from_pylist([identity]))
    write_deltalake(str(lake / Layer.OPS / "overrides"), pa.Table.from_pylist([{**identity, **row}]))


def resume(lake: Path, name: str) -> None:
    """Ask whether a table that is blocked at 5 by a late row may be resumed."""
    before = Published(tso=9, tables={TableName("shop", name): replace(STATE, stop=LATE)})
    blocked_table(DeltaReader(lake), "f", before, f"shop.{name}", OverrideAction.RESUME)


def test_a_table_is_not_resumed_below_its_repair_also_under_another_name(tmp_path: Path) -> None:
    """A blocked table is still renamed."""
    write_repair(tmp_path, "orders", 7, data=STATE.stable_id)
    for name in ("orders", "orders_old"):
        with pytest.raises(ConfigError, match=rf"table shop.{name} is blocked at 5.*was repaired from TiDB at 7"):
            resume(tmp_path, name)


def test_the_repair_of_another_table_that_had_the_name_keeps_none_from_being_resumed(tmp_path: Path) -> None:
    write_repair(tmp_path, "orders", 7, data="another")
    resume(tmp_path, "orders")


def test_a_repair_of_an_earlier_build_is_known_by_the_name(tmp_path: Path) -> None:
    write_repair(tmp_path, "Orders", 7)
    with pytest.raises(ConfigError, match="was repaired from TiDB at 7"):
        resume(tmp_path, "orders")
    resume(tmp_path, "orders_old")
