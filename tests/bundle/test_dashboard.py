"""The dashboard's file and the alerts hold together. Their queries run in tests/lake/test_run_command.py."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import sqlglot
from bundle_files import GIVEN, OBSERVING, ROOT
from sqlglot import exp

from ticdc_lakehouse.ops.accounting import COUNTS
from ticdc_local.runner.bundle import load_bundle

FILE = ROOT / "resources" / "ticdc_lake.lvdash.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
QUERIES = {each["name"]: "".join(each["queryLines"]) for each in DASHBOARD["datasets"]}
WIDGETS = [placed for page in DASHBOARD["pages"] for placed in page["layout"]]
COLUMNS = 6
"""Of the platform's grid."""


def encoded_fields(encodings: Any) -> set[str]:
    return set(re.findall(r'"fieldName": "(\w+)"', json.dumps(encodings)))


def test_a_widget_asks_its_dataset_for_the_fields_that_it_shows() -> None:
    names = [placed["widget"]["name"] for placed in WIDGETS]
    assert len(set(names)) == len(names)
    used = set()
    for placed in WIDGETS:
        (query,) = placed["widget"]["queries"]
        asked = {field["name"] for field in query["query"]["fields"]}
        assert all(field["expression"] == f"`{field['name']}`" for field in query["query"]["fields"])
        assert encoded_fields(placed["widget"]["spec"]["encodings"]) == asked
        columns = sqlglot.parse_one(QUERIES[query["query"]["datasetName"]], dialect="databricks").named_selects
        assert asked <= set(columns), placed["widget"]["name"]
        used.add(query["query"]["datasetName"])
    assert used == QUERIES.keys()


def test_widgets_lie_on_the_grid_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for placed in WIDGETS:
        x, y, width, height = (placed["position"][key] for key in ("x", "y", "width", "height"))
        cells = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        assert not cells & taken, placed["widget"]["name"]
        assert x + width <= COLUMNS
        taken |= cells


def test_fates_of_events_are_those_of_the_accounting_view() -> None:
    _, _, *fates = re.findall(r"(\w+) COMMENT '", COUNTS)
    assert any(f"FOR fate IN ({', '.join(fates)})" in query for query in QUERIES.values())
    analyst = (ROOT / "docs" / "analyst.md").read_text(encoding="utf-8")
    assert f"-- events = {' + '.join(fates)}\n" in analyst


def test_queries_name_only_tables_of_ops() -> None:
    for name, query in QUERIES.items():
        for table in sqlglot.parse_one(query, dialect="databricks").find_all(exp.Table):
            assert not table.db, f"{name}: the dashboard's own default schema, which has a prefix in no other place"


@pytest.mark.parametrize("catalog", ["main", "a-catalog"])
def test_queries_of_alerts_take_any_name_of_a_catalog_and_give_the_column_that_is_compared(catalog: str) -> None:
    bundle = load_bundle(ROOT, "prod", {**GIVEN, "catalog": catalog})
    alerts = [resource for resource in bundle.resources if resource.kind == "alerts"]
    assert len(alerts) == len(OBSERVING["alerts"])
    for alert in alerts:
        query = sqlglot.parse_one(alert.definition["query_text"], dialect="databricks")
        assert {(table.catalog, table.db) for table in query.find_all(exp.Table)} == {(catalog, "ops")}
        assert query.named_selects == [alert.definition["evaluation"]["source"]["name"]]
        assert bundle.variables["feeds"] in {each.this for each in query.find_all(exp.Literal)}, (
            "a feed that was given up would set it off for ever"
        )
