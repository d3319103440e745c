"""The queries of the bundle's alerts, on a lake of the tests."""

from __future__ import annotations

import json
from pathlib import Path

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_local.runner.bundle import load_bundle

PROJECT = Path(__file__).parents[2]


def alert_value(lake: Lake, key: str, *carried: str) -> float:
    """What an alert over ops.feeds compares with its threshold where a deployment carries these feeds."""
    given = dict.fromkeys(("service_principal", "analysts", "operators", "warehouse_id"), "given")
    bundle = load_bundle(PROJECT, "prod", {**given, "catalog": "a-catalog", "feeds": json.dumps(carried)})
    query = bundle.resource("alerts", key).definition["query_text"]
    [row] = lake.spark.sql(query.replace("`a-catalog`.`ops`.feeds", lake.table(Layer.OPS, "feeds"))).collect()
    return float(row[0])
