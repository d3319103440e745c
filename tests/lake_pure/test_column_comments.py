"""DESCRIBE says what every column of the lake's own tables is."""

from __future__ import annotations

import re

import pytest

from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.gold import maintenance, state_tables
from ticdc_lakehouse.ops.verify import results
from ticdc_lakehouse.silver import events_table, external_schemas, quarantine, retention_floor

COLUMNS = {
    "bronze messages": landing._MESSAGE_COLUMNS,
    "bronze offsets": landing._OFFSET_COLUMNS,
    "silver events": events_table.EVENT_COLUMNS,
    "silver schemas": external_schemas._COLUMNS,
    "ops.quarantine_actions": quarantine._ACTION_COLUMNS,
    "ops.readable_since": maintenance._COLUMNS,
    "ops.retention": retention_floor._COLUMNS,
    **{f"ops.{name}": columns for name, (columns, _) in {**state_tables._TABLES, **results._TABLES}.items()},
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_has_a_comment(name: str) -> None:
    lines = [line.strip() for line in COLUMNS[name].splitlines() if line.strip()]
    assert lines
    assert [line for line in lines if not re.search(r" COMMENT '[^']+',?$", line)] == []
