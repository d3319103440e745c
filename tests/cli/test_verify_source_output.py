"""What ``verify-source`` prints, as text and as JSON, and what it refuses before Spark starts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from delta_lake import NOW, write

from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.schema.names import TableName
from ticdc_local.cli import main, open_lake
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
    assert stock.endswith("blocked: 9 rows in 1 chunk, 2 rows differ")


def test_a_table_stays_on_its_line_whatever_it_is_called() -> None:
    odd = replace(VERIFIED.tables[0], name=TableName("shop", "t\n  shop.stock  equal\x1b[2J"))
    lines = verified_lines(replace(VERIFIED, tables=(odd,)))
    assert len(lines) == 2
    assert "".join(lines).isprintable()


def test_json_has_result_and_counts_of_each_table() -> None:
    found = json.loads(json.dumps(verified_object(VERIFIED)))
    assert (found["feed"], found["tso"]) == ("crm", 470613127470252033)
    assert [(each["table"], each["result"], each["rows"], each["different_rows"]) for each in found["tables"]] == [
        ("shop.orders", "equal", 30, 0),
        ("shop.stock", "different", 9, 2),
    ]


PROJECT = Path(__file__).parents[2]
FEED = """
protocol: craft
time_zone: UTC
kafka: {bootstrap_servers: "h:1", topics: [t]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A feed that has published a table, and no Spark."""
    shutil.copy(PROJECT / "databricks.yml", tmp_path)
    (tmp_path / "resources" / "feeds").mkdir(parents=True)
    (tmp_path / "resources" / "feeds" / "crm.yml").write_text(FEED)
    lake, first = tmp_path / ".lake", {"feed": "crm", "number": 1, "run": "r"}
    (lake / "bronze").mkdir(parents=True)
    window = {"base": 1, "tso": VERIFIED.tso, "time": NOW, "mode": "watermarks", "from_tso": 0, "published_at": NOW}
    write(lake / "ops" / "windows", "windows", [first | window])
    state = {"database": "shop", "table": "orders", "removed": False, "name": "n", "data": "d", "version": 3}
    state |= {"applied_tso": VERIFIED.tso, "ddls": [], "defined_in": 1, "defined_by": "r"}
    write(lake / "ops" / "table_states", "table_states", [first | state])
    for name in ("definitions", "topics"):
        write(lake / "ops" / name, name, [])
    monkeypatch.setattr(open_lake, "local_session", None)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--table", "shop.order"), "table shop.order: expected one of shop.orders"),
        ((), "feed crm: no TiDB is named"),
        (("--dsn", "mysql://r@db/?secret=lake/db"), "environment variable LAKEHOUSE_SECRET_LAKE_DB is not set"),
        (("--dsn", "mysql://r@127.0.0.1:1/"), "dsn: r@127.0.0.1:1: cannot connect"),
        (("--dsn", "mysql://r@127.0.0.1:1/shop"), "which names no database"),
    ],
)
def test_mistakes_are_reported_before_spark_starts(
    project: Path, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify-source", "--feed", "crm", *arguments, "--project", str(project)]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert (shown.out, shown.err.count("\n")) == ("", 1)
