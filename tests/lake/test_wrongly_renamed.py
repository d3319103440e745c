"""A RENAME that does not name its table's database, and means a table that gold does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

LEADS, OLD = ("shop", "leads"), ("crm", "leads_2023")


@pytest.mark.long
def test_rows_under_the_former_name_block_both_tables(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """TiDB renamed another table of this name. The RENAME is read from an earlier window, whose DDLs are done."""
    feed, leads = Changefeed(spark, broker, tmp_path), Source(table="leads")
    feed.send(0, leads.insert(at(1), 1, "a"))
    feed.send(0, ddl(at(2), "RENAME TABLE `leads` TO `crm`.`leads_2023`", "crm", "leads_2023", "RENAME"))
    feed.resolve(at(3))
    assert feed.go().blocked == {}
    assert [*feed.state.tables] == [OLD]
    feed.send(0, leads.insert(at(4), 2, "b"))
    feed.resolve(at(5))
    blocked = feed.go().blocked
    assert {*blocked} == {LEADS, OLD}
    assert all("rows follow under shop.leads, so gold renamed the wrong table" in why for why in blocked.values())
    assert feed.go().blocked == blocked
