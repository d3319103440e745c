"""Retention of bronze and silver: what goes, what stays and why, and what is refused afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at, ddl
from dumpling_export import write_metadata, write_table
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Kind
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.ops import retention
from ticdc_lakehouse.silver.retention_floor import retention_floor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.gold.apply_plan import TableOutcome
    from ticdc_lakehouse.gold.run import GoldRun
    from ticdc_lakehouse.planning.window_plan import WindowPlan
    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

PROJECT = Path(__file__).parents[2]
DAY = 24 * 60 * 60
SECOND = 5_000 * DAY
"""Later than any clock on which this runs, so that days before the watermark are over."""
T, STUCK = Source(table="t"), Source(table="stuck")
SCHEMA = "".join(f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, v VARCHAR(9));" for name in ("t", "stuck"))
UNSUPPORTED = "ALTER TABLE `stuck` ADD COLUMN `w` BIGINT GENERATED ALWAYS AS (`id` + 1) STORED"
POISON = b"\xff not JSON"
IN_A_PROCESS_OF_ITS_OWN = """
import sys
from argparse import Namespace
from pathlib import Path
from ticdc_local.cli.open_lake import feed_run
run = feed_run(Namespace(project=Path(sys.argv[1]), lake=Path(sys.argv[2])), "retained")
run.bronze()
print(run.silver().events, run.gold().tso)
"""


def day(number: int, second: int = 0) -> int:
    return at(SECOND + number * DAY + second)


def batches(feed: Changefeed, layer: Layer, where: str = "true") -> set[int]:
    name = {Layer.BRONZE: "retained_messages", Layer.SILVER: "retained_events"}[layer]
    rows = feed.spark.table(feed.lake.table(layer, name)).where(where).select("batch").distinct().collect()
    return {row["batch"] for row in rows}


def waiting(feed: Changefeed) -> dict[int, int]:
    rows = feed.spark.table(feed.lake.table(Layer.SILVER, "retained_accounting")).collect()
    return {row["batch"]: row["waiting"] for row in rows}


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Batch 0: first rows and a DDL; 1: a message that is no message; 2: an unsupported DDL, with a row after it."""
    described = {"bronze": {"retention_days": 7}, "silver": {"retention_days": 7}}
    folder = tmp_path_factory.mktemp("retention") / "lake"
    feed = Changefeed(spark, broker, folder, name="retained", schema=SCHEMA, described=described)
    feed.send(0, T.insert(day(0), 1, "a"), STUCK.insert(day(0), 1, "a"))
    feed.send(0, ddl(day(0, 1), "ALTER TABLE `t` MODIFY COLUMN `v` VARCHAR(20)", "shop", "t", "ALTER"))
    feed.resolve(day(0, 2))
    feed.go()
    feed.send(0, POISON, T.update(day(8), (1, "a"), (1, "b")))
    feed.resolve(day(8, 1))
    feed.go()
    return feed


def test_unpublished_and_quarantined_messages_are_kept(feed: Changefeed) -> None:
    feed.run.maintain()
    assert batches(feed, Layer.BRONZE) == {1}, "batch 0 is decoded and published, and silver has it"
    assert batches(feed, Layer.SILVER) == {0, 1}
    assert retention.lines(feed.lake, "retained") == [
        f"bronze keeps batches from 1 on, for the message {feed.topic}/0/4 in quarantine (bad_json)",
        "silver keeps batches from 0 on, for retention_days: 7 days before the watermark",
    ]
    assert set(waiting(feed).values()) == {0}


def test_changes_older_than_the_retention_go_but_ddls_stay(feed: Changefeed) -> None:
    feed.run.dismiss([f"{feed.topic}/0/4"], "written by hand")
    feed.send(0, ddl(day(8, 5), UNSUPPORTED, "shop", "stuck", "ALTER"), STUCK.insert(day(8, 6), 2, "later"))
    feed.resolve(day(9))
    assert feed.go().tso == day(9)
    events = feed.spark.table(feed.lake.table(Layer.SILVER, "retained_events"))
    replayed = events.where(f"batch = 0 AND kind = '{Kind.ROW}' AND table = 't'").withColumn(
        "replayed_at", F.current_timestamp()
    )
    replayed.write.format("delta").mode("append").saveAsTable(feed.lake.table(Layer.SILVER, "retained_events"))
    feed.run.maintain()
    assert batches(feed, Layer.SILVER, "replayed_at IS NOT NULL") == {0}, "gold has not taken it in"
    feed.apply()
    feed.run.maintain()
    assert batches(feed, Layer.BRONZE) == set()
    assert batches(feed, Layer.SILVER, f"kind = '{Kind.ROW}'") == {1, 2}
    assert batches(feed, Layer.SILVER, f"kind = '{Kind.DDL}'") == {0, 2}
    assert retention_floor(feed.lake, "retained", Layer.SILVER).tso == day(0)
    assert waiting(feed) == {1: 0, 2: 0}
    assert feed.rows("t") == {1: ("b",)}


def test_a_blocked_table_holds_silver(feed: Changefeed) -> None:
    feed.send(0, T.insert(day(30), 2, "c"))
    feed.resolve(day(30))
    feed.go()
    windows = feed.lake.table(Layer.OPS, "windows")
    feed.spark.sql(
        f"ALTER TABLE {windows} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
    )
    feed.run.maintain()
    kept = {path.name for path in (feed.lake.root / "ops" / "windows").glob("feed=*/*.parquet")}
    assert kept == {Path(path).name for path in feed.spark.table(windows).inputFiles()}, "compacted ones go"
    assert batches(feed, Layer.SILVER, f"kind <> '{Kind.DDL}'") == {2, 3}
    held = retention_floor(feed.lake, "retained", Layer.SILVER)
    assert (held.first_batch, held.tso, held.held_by.partition(" (")[0]) == (
        2,
        day(8),
        f"table shop.stuck, blocked at {feed.state.tables['shop', 'stuck'].applied_tso}",
    )
    _, silver = retention.lines(feed.lake, "retained")
    assert silver.startswith(f"silver keeps batches from 2 on (every change after {with_time(day(8))}), for table shop")
    assert retention.floors(feed.lake, "retained")[Layer.SILVER] == held


def test_what_needs_deleted_changes_is_refused_by_name(feed: Changefeed, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"message {feed.topic}/0/4 cannot be replayed: .* from offset [0-9]+ on"):
        feed.run.replay([f"{feed.topic}/0/4"])
    write_metadata(tmp_path, day(1))
    create = "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(20))"
    write_table(tmp_path, "shop.t", create, ("id", "v"), [(1, "a")])
    with pytest.raises(ConfigError, match=r"silver no longer has all changes up to .*silver.retention_days.*again"):
        feed.run.load(str(tmp_path))


def test_a_dismissed_row_is_not_replayed_over_deleted_changes_of_another_partition(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    described = {"silver": {"retention_days": 7}, "max_message_bytes": 1000}
    feed = Changefeed(spark, broker, tmp_path, partitions=2, schema=SCHEMA, described=described)
    feed.send(1, T.insert(day(0), 1, "a"), T.delete(day(0, 5), 1, "b"))
    feed.run.bronze()
    feed.send(0, T.update(day(0, 3), (1, "a"), (1, "b" * 2000)), T.insert(day(30), 2, "recent"))
    feed.resolve(day(31))
    feed.load()
    feed.run.dismiss(["all"], "too large")
    feed.apply()
    feed.run.maintain()
    feed.described = {}
    with pytest.raises(ConfigError, match=rf"message {feed.topic}/0/0 cannot be replayed: silver no longer has all"):
        feed.run.replay([f"{feed.topic}/0/0"])
    feed.apply()
    assert feed.rows("t") == {2: ("recent",)}


def test_silver_reads_on_in_a_process_of_its_own(feed: Changefeed) -> None:
    (feed.folder / "feeds").mkdir()
    feed.write_file().rename(feed.folder / "feeds" / "retained.yml")
    (feed.folder / "retained.sql").rename(feed.folder / "feeds" / "retained.sql")
    feed.send(0, T.insert(day(31), 3, "d"))
    feed.resolve(day(31))
    command = [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, str(PROJECT), str(feed.folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.split() == ["2", str(day(31))]


def test_the_blocked_table_is_resumed_and_late_rows_are_reported(feed: Changefeed) -> None:
    feed.lake.register()
    feed.run.override("shop.stuck", "skip-ddl", "not needed")
    feed.resolve(day(32))
    feed.go()
    assert feed.rows("stuck") == {1: ("a",), 2: ("later",)}
    feed.send(0, STUCK.insert(day(0), 1, "a"))
    feed.resolve(day(33))
    feed.go()
    stop = feed.state.tables["shop", "stuck"].stop
    assert stop is not None
    assert "silver no longer has all changes up to" in str(stop)
    with pytest.raises(ConfigError, match=r"table shop.stuck is blocked at .* `ticdc-lake load` an export taken since"):
        feed.run.override("shop.stuck", "resume", "looked at it")


def test_a_load_whose_changes_are_deleted_meanwhile_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Databricks, where no lock keeps maintenance out: rows of a large export are written for an hour."""
    feed = Changefeed(spark, broker, tmp_path / "lake", schema=SCHEMA)
    for number in (0, 1, 9):
        feed.send(0, T.insert(day(number), number, "x"))
        feed.resolve(day(number))
        feed.load()
    before, applied = feed.apply().state, windows._apply_plans

    def beside_maintenance(run: GoldRun, plan: WindowPlan) -> list[TableOutcome]:
        retention.retain_silver(feed.lake, feed.name, 2)
        return applied(run, plan)

    write_metadata(tmp_path / "export", day(0))
    create = "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
    write_table(tmp_path / "export", "shop.t", create, ("id", "v"), [(0, "x")])
    monkeypatch.setattr(windows, "_apply_plans", beside_maintenance)
    with pytest.raises(ConfigError, match="meanwhile silver has deleted changes up to"):
        feed.run.load(str(tmp_path / "export"))
    assert feed.state.number == before.number
    assert feed.rows("t") == {0: ("x",), 1: ("x",), 9: ("x",)}
