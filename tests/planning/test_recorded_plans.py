"""No table of a recorded stream stands still, and after each window each is what TiDB says it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planned import Planner

from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.schema.definition import Table
from ticdc_testkit.recorded_streams import RecordedStream, answers, recorded_streams

STREAMS = recorded_streams(Path(__file__).parents[1] / "data" / "streams", {"craft-float": "trust"})


@pytest.mark.parametrize("stream", STREAMS, ids=map(str, STREAMS))
def test_all_tables_go_on_as_they_are_in_tidb(stream: RecordedStream) -> None:
    wanted = {answer.watermark: answer.tables for answer in answers(stream.folder)}
    for tso, plans in Planner(stream).windows():
        assert {plan.name: plan.reason for plan in plans if plan.reason is not None} == {}
        tables = wanted.get(tso) or list(wanted.values())[-1]
        found = {".".join(plan.name): described(plan.definition.table) for plan in plans if plan.definition is not None}
        assert found == {name: [told(column) for column in table["columns"]] for name, table in tables.items()}


def described(table: Table) -> list[tuple[str, str, bool]]:
    return [(column.name, column.type.family.name, column.type.unsigned) for column in table.columns]


def told(column: dict[str, Any]) -> tuple[str, str, bool]:
    kind = parse_type(column["type"])
    return column["name"], kind.family.name, kind.unsigned
