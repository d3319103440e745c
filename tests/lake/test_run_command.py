"""``ticdc-lake run`` carries the feeds that it can, and ends with why it could not carry the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from changefeed import Changefeed, Source, at

from ticdc_local.broker import free_ports
from ticdc_local.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
ORDERS = Source(table="orders")


def test_a_feed_without_brokers_holds_no_other_and_fails_the_run(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
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
    assert lines[0].startswith("unreachable: not begun: brokers do not answer (127.0.0.1:")
    assert f"gold[{feed.name}]: started" in lines
    assert "FAILED" not in out
    assert lines[-2] == lines[0], "said again at the end"
    assert lines[-1].startswith("job ticdc_lake: success in ")
    events = [line.split("ticdc_lakehouse.")[1] for line in logged.splitlines() if "ticdc_lakehouse." in line]
    assert any(event.startswith(f"bronze landed feed={feed.name} batches=1 messages=2 ") for event in events)
    assert any(event.startswith(f"gold window published feed={feed.name} from_tso=0 tso={at(2)} ") for event in events)
    assert any(event.startswith(f"gold table applied feed={feed.name} table=shop.orders ") for event in events)
