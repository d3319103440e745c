"""Tables that are blocked, and what people decide about them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, at, ddl

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import overrides
from ticdc_lakehouse.gold.overrides import OverrideAction, blocked_table, override
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.state_tables import OVERRIDES
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.log import ROOT
from ticdc_lakehouse.ops import feed_views, status
from ticdc_lakehouse.ops.feed_tables import create_feed_tables
from ticdc_lakehouse.run_lock import exclusive_run
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

NAMES = ("stuck", "late", "kept", "plain", "gap")
STUCK, LATE, KEPT, PLAIN, GAP = (Source(table=name) for name in NAMES)
SCHEMA = "\n".join(f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, v VARCHAR(9));" for name in NAMES)

DROP_KEPT = ddl(at(2), "DROP TABLE `shop`.`kept`", "shop", "kept", "ERASE")


class _Earlier(datetime):
    """A clock that was turned back."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) - timedelta(days=1)


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    policies = {"tables": {"shop.kept": {"on_drop": "keep"}}}
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("decisions"), schema=SCHEMA, described={"gold": policies})
    feed.send(0, *(table.insert(at(1), 1, "a") for table in (STUCK, LATE, KEPT, PLAIN, GAP)))
    query = "ALTER TABLE `shop`.`stuck` ADD COLUMN `v` DATETIME"
    feed.send(0, ddl(at(2), query, "shop", "stuck", "ALTER"), STUCK.insert(at(3), 2, "b"))
    feed.send(0, ddl(at(4), "ALTER TABLE `shop`.`stuck` ADD INDEX `i` (`w`)", "shop", "stuck", "ALTER"))
    feed.send(0, DROP_KEPT)
    feed.resolve(at(10))
    feed.go()
    return feed


def test_a_dropped_table_may_be_kept(feed: Changefeed) -> None:
    state = feed.state.tables["shop", "kept"]
    assert feed.rows("kept") == {1: ("a",)}
    assert (state.applied_tso, state.needs_override) == (at(2), True)
    assert str(state.stop) == f"TiDB dropped it at {at(2)} (on_drop: keep)"


def test_a_kept_table_does_not_count_as_blocked(feed: Changefeed) -> None:
    ops = feed.lake.schemas[Layer.OPS]
    feed_views.create_views(feed.lake, feed.name)
    tables = feed.lake.rows(f"SELECT table, blocked_at FROM {ops}.tables WHERE feed = '{feed.name}'")
    (summary,) = feed.lake.rows(f"SELECT tables, blocked FROM {ops}.feeds WHERE feed = '{feed.name}'")
    blocked = {row["table"] for row in tables if row["blocked_at"] is not None}
    assert blocked == {"stuck"}
    assert (summary["tables"], summary["blocked"]) == (5, 1)
    assert [str(name) for name in feed.apply().blocked] == ["shop.stuck"]


def test_override_needs_a_blocked_table(feed: Changefeed) -> None:
    with pytest.raises(ConfigError, match="is not blocked"):
        override(feed.lake, feed.name, "shop.plain", OverrideAction.RESUME, "why not")
    with pytest.raises(ConfigError, match=r"expected one of shop\.gap, shop\.kept"):
        override(feed.lake, feed.name, "shop.nobody", OverrideAction.RESUME, "why not")
    with pytest.raises(ConfigError, match="is not blocked by a DDL"):
        override(feed.lake, feed.name, "shop.kept", OverrideAction.SKIP_DDL, "why not")
    with pytest.raises(ConfigError, match="is not blocked: TiDB dropped it"):
        override(feed.lake, feed.name, "shop.kept", OverrideAction.RESUME, "why not")
    without_spark = DeltaReader(feed.lake.root)
    now = published(without_spark, feed.name)
    assert blocked_table(without_spark, feed.name, now, "SHOP.STUCK", OverrideAction.RESUME)[0] == ("shop", "stuck")
    with pytest.raises(ConfigError, match="is not blocked by a DDL"):
        blocked_table(without_spark, feed.name, now, "shop.kept", OverrideAction.SKIP_DDL)


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What the lakehouse logs during a test."""
    records: list[logging.LogRecord] = []
    handler, logger = logging.Handler(), logging.getLogger(ROOT)
    handler.emit = records.append  # type: ignore[method-assign]
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


def levels_of_blocked(logged: list[logging.LogRecord]) -> list[str]:
    """At which levels it was logged that a table is blocked, since this was asked last."""
    found = [record.levelname for record in logged if record.getMessage() == "table blocked"]
    logged.clear()
    return found


def test_resumed_table_is_blocked_again_and_a_skipped_ddl_is_passed_over(
    feed: Changefeed, logged: list[logging.LogRecord]
) -> None:
    """The later decision holds, also where the clock was turned back since."""
    feed.apply()
    assert levels_of_blocked(logged) == ["INFO"], "a table that stays blocked is no news"
    override(feed.lake, feed.name, "shop.stuck", OverrideAction.RESUME, "try")
    feed.apply()
    assert levels_of_blocked(logged) == ["WARNING"]
    state = feed.state.tables["shop", "stuck"]
    assert (state.applied_tso, state.needs_override) == (at(2), True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overrides, "datetime", _Earlier)
        override(feed.lake, feed.name, "shop.stuck", OverrideAction.SKIP_DDL, "no such column is sent")
    feed.apply()
    lines = feed.spark.table(feed.lake.table(Layer.OPS, OVERRIDES)).orderBy("number").collect()
    assert [(line["action"], line["commit_ts"], line["reason"]) for line in lines] == [
        ("resume", at(2), "try"),
        ("skip-ddl", at(2), "no such column is sent"),
    ]
    assert lines[0]["decided_at"] > lines[1]["decided_at"]


def test_the_ddl_of_an_index_is_skipped_at_its_own_commit(feed: Changefeed) -> None:
    """No row depends on it, so the table is blocked at the DDL before."""
    state = feed.state.tables["shop", "stuck"]
    assert state.applied_tso == at(2)
    assert "ADD KEY: the table has no column `w`" in str(state.stop)
    override(feed.lake, feed.name, "shop.stuck", OverrideAction.SKIP_DDL, "gold has no indexes")
    feed.apply()
    assert feed.state.tables["shop", "stuck"].stop is None
    assert feed.rows("stuck") == {1: ("a",), 2: ("b",)}


def test_what_comes_too_late_blocks_its_table_until_it_is_resumed(feed: Changefeed) -> None:
    """A row, and a DDL."""
    respelled = Source(table="plain", database="Shop")  # wire.md 8.14
    feed.send(0, LATE.insert(at(1), 1, "a"), respelled.insert(at(1), 1, "a"))  # repeats
    feed.send(0, LATE.insert(at(5), 2, "never seen"), LATE.insert(at(11), 3, "c"), PLAIN.insert(at(11), 2, "b"))
    add = ddl(at(4), "ALTER TABLE `shop`.`gap` ADD COLUMN `w` BIGINT DEFAULT 7", "shop", "gap", "ALTER")
    feed.send(0, DROP_KEPT, add)  # the first is a duplicate
    feed.resolve(at(12))
    feed.go()
    blocked = {name.table: state.applied_tso for name, state in feed.state.tables.items() if state.blocked}
    assert (feed.state.tso, blocked) == (at(12), {"late": at(5) - 1, "gap": at(4)})
    late, gap = (feed.state.tables["shop", name] for name in ("late", "gap"))
    assert (late.needs_override, gap.needs_override) == (True, True)
    assert "1 row change arrived only after the watermark covering them" in str(late.stop)
    assert "arrived only after the watermark covering it" in str(gap.stop)
    assert [feed.rows(name) for name in ("late", "gap")] == [{1: ("a",)}] * 2
    assert feed.rows("plain") == {1: ("a",), 2: ("b",)}

    feed.send(0, LATE.insert(at(4), 4, "nor this"))
    feed.go()
    assert feed.state.tables["shop", "late"].applied_tso == at(4) - 1
    for name in ("late", "gap"):
        override(feed.lake, feed.name, f"shop.{name}", OverrideAction.RESUME, "looked at")
    feed.apply()
    assert [feed.state.tables["shop", name].stop for name in ("late", "gap")] == [None, None]
    assert feed.rows("late") == {1: ("a",), 2: ("never seen",), 3: ("c",), 4: ("nor this",)}
    assert feed.rows("gap") == {1: ("a", 7)}
    feed.send(0, DROP_KEPT, add)  # both are duplicates now
    feed.resolve(at(14))
    feed.go()
    assert not any(state.blocked for state in feed.state.tables.values())


def test_every_event_has_one_fate(feed: Changefeed) -> None:
    create_feed_tables(feed.lake, feed.name)
    accounting = feed.lake.table(Layer.OPS, f"{feed.name}_accounting")
    lines = feed.spark.table(accounting).collect()
    [plan] = feed.spark.sql(f"EXPLAIN SELECT * FROM {accounting}").collect()
    assert "NestedLoop" not in plan[0], "no event is compared with every window"
    fates = ("applied", "superseded", "duplicates", "filtered", "waiting", "quarantined", "control")
    assert all(line["events"] == sum(line[fate] for fate in fates) for line in lines)
    assert sum(line["messages"] for line in lines) == len(feed.sent)
    counts = {fate: sum(line[fate] for line in lines) for fate in fates}
    assert counts == {**dict.fromkeys(fates, 0), "applied": 10, "duplicates": 2, "control": 10}


def test_one_run_at_a_time(feed: Changefeed) -> None:
    with (
        exclusive_run(feed.lake, feed.name, Layer.GOLD),
        pytest.raises(ConfigError, match="gold is at work in another process"),
    ):
        feed.apply()
    feed.apply()


def test_a_table_that_the_feed_file_leaves_out_since_goes_out_of_gold(
    feed: Changefeed, logged: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`as_of` reads what was published of it."""
    gone, at_watermark = feed.shown_name("gap"), feed.data_versions()
    monkeypatch.setattr(feed, "described", {**feed.described, "tables": {"exclude": ["shop.gap"]}})
    current = status.feed_status(DeltaReader(feed.folder), feed.name, feed.run.gold_config)
    assert [str(name) for name in current.left_out] == ["shop.gap"]
    feed.apply()
    assert ("shop", "gap") not in feed.state.tables
    assert not any(feed.lake.exists(layer, gone) for layer in (Layer.GOLD, Layer.SILVER, Layer.LIVE))
    assert [record.getMessage() for record in logged if record.levelname == "WARNING"] == ["table left out"]
    before = as_of(feed.spark, feed.name, at(12), lake=feed.lake)
    assert [row["id"] for row in before["shop.gap"].collect()] == [1]
    others = {data: version for data, version in at_watermark.items() if not data.startswith(gone)}
    assert feed.data_versions() == others
    monkeypatch.setattr(feed, "described", {"tables": {"include": ["chop.*"]}})
    with pytest.raises(ConfigError, match=r"tables: it leaves out all tables that the feed has in gold, shop\.kept"):
        feed.apply()


@pytest.mark.long
def test_after_a_skipped_change_of_names_rows_have_the_new_ones(feed: Changefeed) -> None:
    letters = Source(table="letters", columns=(ID, Column(name="v", type="enum", by="index")))
    create = "CREATE TABLE `letters` (`id` BIGINT PRIMARY KEY, `v` ENUM('a','b'))"
    modify = "ALTER TABLE `letters` MODIFY COLUMN `v` ENUM('b','c')"
    feed.send(0, ddl(at(15), create, "shop", "letters", "CREATE"), letters.insert(at(16), 1, 1))
    feed.send(0, ddl(at(17), modify, "shop", "letters", "ALTER"), letters.insert(at(18), 2, 1))
    feed.resolve(at(19))
    feed.go()
    assert feed.state.tables["shop", "letters"].applied_tso == at(17)
    override(feed.lake, feed.name, "shop.letters", OverrideAction.SKIP_DDL, "names of stored rows stay")
    feed.apply()
    assert feed.rows("letters") == {1: ("a",), 2: ("b",)}
    feed.send(0, letters.insert(at(20), 3, 2))
    feed.resolve(at(21))
    feed.go()
    assert feed.rows("letters") == {1: ("a",), 2: ("b",), 3: ("c",)}
