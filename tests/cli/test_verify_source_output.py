"""What ``verify-source`` prints, as text and as JSON."""

from __future__ import annotations

import json

from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.cli.verify_source import verified_lines, verified_object

ORDERS, STOCK = TableName("shop", "orders"), TableName("shop", "stock")
VERIFIED = Verified(
    feed="crm",
    tso=470613127470252033,
    tables=(
        TableResult(name=ORDERS, tso=470613127470252033, version=7, result=Result.EQUAL, rows=30, chunks=2),
        TableResult(
            name=STOCK, tso=470613127188971521, version=3, result=Result.DIFFERENT, rows=9, chunks=1, different_rows=2
        ),
    ),
)


def test_a_line_for_each_table_says_what_was_compared_and_where() -> None:
    head, orders, stock = verified_lines(VERIFIED)
    assert head == "crm at 470613127470252033 (2026-11-21 07:36:50.528 UTC)"
    assert orders == "  shop.orders  equal: 30 rows in 2 chunks"
    assert stock.startswith("  shop.stock   different at 470613127188971521 (2026-11-21 07:36:49.455 UTC), where it is")
    assert stock.endswith("blocked: 9 rows in 1 chunks, 2 rows differ")


def test_json_says_the_same() -> None:
    found = json.loads(json.dumps(verified_object(VERIFIED)))
    assert (found["feed"], found["tso"]) == ("crm", 470613127470252033)
    assert [(each["table"], each["result"], each["rows"], each["different_rows"]) for each in found["tables"]] == [
        ("shop.orders", "equal", 30, 0),
        ("shop.stock", "different", 9, 2),
    ]
