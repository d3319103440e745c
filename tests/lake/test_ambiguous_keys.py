"""Keys with a TIMESTAMP in the hour that comes twice, where clocks are set back: its text is two instants, and the key
may be that of two rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, V, alter, at
from dumpling_export import write_metadata, write_table

from ticdc_codec.errors import ApplyError
from ticdc_codec.event import Column
from ticdc_lakehouse.ops.load_options import LoadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

DEVICE = Column(name="d", type="int", key=True)
KEYED, MOVED, DELETED = (
    Source(table=name, columns=(DEVICE, Column(name="ts", type="timestamp", key=True), V))
    for name in ("keyed", "moved", "deleted")
)
CLOCK = Source(table="clock", columns=(DEVICE, Column(name="ts", type="datetime", key=True), V))
VALUE = Source(table="value", columns=(DEVICE, Column(name="ts", type="timestamp"), V))
SCHEMA = "".join(
    f"CREATE TABLE shop.{t.table} (d INT, ts {t.columns[1].type} NOT NULL, v VARCHAR(9), PRIMARY KEY (d, ts));"
    for t in (KEYED, MOVED, DELETED, CLOCK)
)
SCHEMA += "CREATE TABLE shop.value (d INT PRIMARY KEY, ts TIMESTAMP NOT NULL, v VARCHAR(9));"
REKEYED, APART = (
    Source(
        table=name, columns=(Column(name="n", type="int", key=True), Column(name="d", type="int"), *VALUE.columns[1:])
    )
    for name in ("rekeyed", "apart")
)
SCHEMA += "".join(
    f"CREATE TABLE shop.{t.table} (n INT, d INT NOT NULL, ts TIMESTAMP NOT NULL, v VARCHAR(9), PRIMARY KEY (n));"
    for t in (REKEYED, APART)
)
ZONE = "America/New_York"
BEFORE, TWICE, AFTER = (f"2024-11-03 {time}" for time in ("00:59:59", "01:30:00", "02:00:00"))


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    described = {"time_zone": ZONE}
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("ambiguous"), schema=SCHEMA, described=described)
    for each in (KEYED, MOVED, DELETED, CLOCK, VALUE):
        feed.send(0, each.insert(at(1), 1, BEFORE, "before"), each.insert(at(2), 2, AFTER, "after"))
    feed.send(0, KEYED.insert(at(3), 3, TWICE, "05:30Z"), KEYED.insert(at(4), 3, TWICE, "06:30Z"))
    feed.send(0, MOVED.update(at(3), (2, AFTER, "after"), (2, TWICE, "moved")))
    feed.send(0, DELETED.delete(at(3), 3, TWICE, "one of two"))
    for each in (CLOCK, VALUE):
        feed.send(0, each.insert(at(3), 3, TWICE, "text"))
    for each, device in ((REKEYED, 3), (APART, 4)):
        feed.send(0, each.insert(at(1), 1, 3, TWICE, "05:30Z"), each.insert(at(2), 2, device, TWICE, "06:30Z"))
        feed.send(0, alter(5, each.table, "DROP PRIMARY KEY, ADD PRIMARY KEY (`d`, `ts`)"))
    feed.resolve(at(10))
    feed.go()
    return feed


@pytest.mark.parametrize("table", ["keyed", "moved", "deleted"])
def test_a_key_that_may_be_that_of_two_rows_blocks_its_table_before_it(feed: Changefeed, table: str) -> None:
    state = feed.state.tables["shop", table]
    assert (state.applied_tso, state.needs_override) == (at(3) - 1, False)
    key = 2 if table == "moved" else 3
    assert str(state.stop) == (
        f'the key ["{key}","{TWICE}"] of a row at {at(3)} has a TIMESTAMP that is two instants in {ZONE}, where clocks '
        "were set back, and may be that of two rows (a feed with time_zone: UTC, of a changefeed whose TiCDC servers "
        "run in UTC, keeps such rows apart); ways out: `ticdc-lake load` continues from an export taken since"
    )
    assert {key: row[1] for key, row in feed.rows(table).items()} == {1: "before", 2: "after"}


@pytest.mark.parametrize("table", ["clock", "value"])
def test_such_a_text_is_no_matter_in_a_datetime_or_beside_the_key(feed: Changefeed, table: str) -> None:
    assert feed.state.tables["shop", table].stop is None
    assert {key: row[1] for key, row in feed.rows(table).items()} == {1: "before", 2: "after", 3: "text"}


def test_a_ddl_that_gives_two_rows_one_key_blocks_its_table(feed: Changefeed) -> None:
    state = feed.state.tables["shop", "rekeyed"]
    assert state.applied_tso == at(5)
    said = (
        f'several rows would have the key ["3","{TWICE}"]: times in column ts are two instants with one text in {ZONE}'
    )
    assert said in str(state.stop)
    keys = {name: feed.spark.table(feed.live(name)).select("_ticdc_key").collect() for name in ("rekeyed", "apart")}
    assert sorted(row[0] for row in keys["rekeyed"]) == ['["1"]', '["2"]']
    assert feed.state.tables["shop", "apart"].stop is None
    assert sorted(row[0] for row in keys["apart"]) == [f'["3","{TWICE}"]', f'["4","{TWICE}"]']


def test_an_export_continues_unless_it_has_both_rows(feed: Changefeed, tmp_path: Path) -> None:
    """Last: it changes the feed."""
    create = "CREATE TABLE `keyed` (`d` INT, `ts` TIMESTAMP NOT NULL, `v` VARCHAR(9), PRIMARY KEY (`d`, `ts`))"
    one, other = (3, "2024-11-03 05:30:00", "05:30Z"), (3, "2024-11-03 06:30:00", "06:30Z")
    write_metadata(tmp_path, at(5))

    def load(*rows: tuple[object, ...]) -> None:
        write_table(tmp_path, "shop.keyed", create, ("d", "ts", "v"), rows)
        feed.run.load(str(tmp_path), LoadOptions(time_zone="UTC"))

    both = "2 rows with 1 different keys: times in column ts are two instants with one text in America/New_York, "
    with pytest.raises(ApplyError, match=f"{both}the feed's time_zone, where clocks were set back: a feed with"):
        load(one, other)
    with pytest.raises(ApplyError, match=r"3 rows with 1 different keys: is there more than one export\?"):
        load(one, other, one)
    load(other)
    assert feed.state.tables["shop", "keyed"].stop is None
    shown = feed.spark.table(feed.view("keyed")).selectExpr("unix_seconds(ts)", "v").collect()
    assert [tuple(row) for row in shown] == [(1730615400, "06:30Z")]
