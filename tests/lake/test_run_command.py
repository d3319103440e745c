"""``ticdc-lake run`` carries the feeds that it can, and ends with why it could not carry the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from changefeed import Changefeed, Source, at

from ticdc_local.broker import free_ports
from ticdc_local.cli import main
from ticdc_local.runner.bundle import load_bundle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
ORDERS = Source(table="orders")


def test_a_feed_without_brokers_holds_no_other_and_fails_the_run(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", is_new_lake=True)
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    written = yaml.safe_load(feed.write_file().read_text())
    written["kafka"]["bootstrap_servers"] = f"127.0.0.1:{free_ports(1)[0]}"
    (feed.folder / "unreachable.yml").write_text(yaml.safe_dump(written))
    (feed.folder / "unreachable.sql").write_text("")

    given = ["--feed", "unreachable", "--feed", feed.name, "--param", f"feeds_root={feed.folder}"]
    code = main(["run", "--project", str(PROJECT), "--lake", str(feed.folder), "--log-level", "info", *given])
    out, logged = capsys.readouterr()
    lines = out.splitlines()
    assert code == 1
    assert lines[-2].startswith("unreachable: not begun: brokers do not answer (127.0.0.1:")
    assert logged.splitlines()[0] == lines[-2], "said as the run begins, too"
    assert f"gold[{feed.name}]: started" in logged.splitlines()
    assert "FAILED" not in out
    assert lines[-1].startswith("job ticdc_lake: success in ")
    events = [line.split("ticdc_lakehouse.")[1] for line in logged.splitlines() if "ticdc_lakehouse." in line]
    assert any(event.startswith(f"bronze landed feed={feed.name} batches=1 messages=2 ") for event in events)
    assert any(event.startswith(f"gold window published feed={feed.name} from_tso=0 tso={at(2)} ") for event in events)
    assert any(event.startswith(f"gold table applied feed={feed.name} table=shop.orders ") for event in events)


def observed(spark: SparkSession, feed: str) -> dict[str, int]:
    """The number of rows that each query of the bundle's dashboard and alerts gives for a feed; the session knows those
    of other tests too."""
    given = dict.fromkeys(("service_principal", "analysts", "operators", "warehouse_id"), "given")
    bundle = load_bundle(PROJECT, "prod", {**given, "catalog": "spark_catalog"})
    dashboard = json.loads((PROJECT / "resources" / "ticdc_lake.lvdash.json").read_text())
    queries = {each["name"]: "".join(each["queryLines"]) for each in dashboard["datasets"]}
    queries["all changes"] = "SELECT * FROM changes"  # the dashboard shows those of a day
    queries |= {r.key: r.definition["query_text"] for r in bundle.resources if r.kind == "alerts"}
    spark.sql("USE spark_catalog.ops")
    try:
        found = {name: spark.sql(query).collect() for name, query in queries.items()}
        return {name: sum(row.asDict().get("feed", feed) == feed for row in rows) for name, rows in found.items()}
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.mark.long
def test_a_poison_message_ends_a_run_that_worked_with_code_3_unless_the_feed_tolerates_it(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake", is_new_lake=True)
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.send(0, b"{no json")
    feed.resolve(at(3))
    feed.write_file()
    given = ["run", "--project", str(PROJECT), "--lake", str(feed.folder), "--feed", feed.name]
    assert main([*given, "--param", f"feeds_root={feed.folder}"]) == 3
    out, notes = capsys.readouterr()
    lines = out.splitlines()
    assert f"gold[{feed.name}]: finished" in notes
    assert lines[-2] == f"feed {feed.name} needs attention: 1 message is in quarantine: 1 bad_json"
    assert lines[-1].startswith("job ticdc_lake: ran, but a feed needs attention, in ")

    assert observed(spark, feed.name) == {
        "feeds": 1,
        "behind": 1,
        "windows": 1,
        "changes": 0,
        "all changes": 1,
        "blocked": 0,
        "quarantine": 1,
        "accounting": 7,
        "definitions": 1,
        "ticdc_behind": 1,
        "ticdc_blocked": 1,
        "ticdc_quarantine": 1,
        "ticdc_no_watermark": 1,
    }

    feed.described = {"alarm": {"quarantine": 2, "blocked": True}}
    feed.write_file()
    assert main([*given, "--param", f"feeds_root={feed.folder}"]) == 0
    out, notes = capsys.readouterr()
    assert out.splitlines()[-1].startswith("job ticdc_lake: success in ")
    place = f"--project {PROJECT} --lake {feed.folder}"
    assert notes.splitlines()[-1] == f"Next: ticdc-lake status --feed {feed.name} {place}"


def test_the_selftest_finds_all_that_applies_on_a_laptop(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECRET_KAFKA_JAAS", "x" * 7)
    lake = tmp_path / "lake"
    given = ["run", "ticdc_selftest", "--project", str(PROJECT), "--lake", str(lake), "--param", "secret=kafka/jaas"]
    assert main(given) == 0
    out = capsys.readouterr().out
    assert "13 checks, none failed" in out
    assert "a laptop has no privileges" in out
    assert "a laptop has no tags" in out
    assert out.count("skipped") == 2
    assert "7 characters" in out
    assert not [*lake.glob("ops/selftest*"), *lake.glob("live/selftest*"), *lake.glob("checkpoints/selftest*")]
    for schema in ("ops", "live", "gold"):
        assert spark.sql(f"SHOW TABLES IN spark_catalog.{schema} LIKE 'selftest*'").count() == 0

    assert main([*given[:-1], "secret=kafka/other"]) == 1
    assert "secret: secret kafka/other: environment variable LAKEHOUSE_SECRET_KAFKA_OTHER" in capsys.readouterr().out
