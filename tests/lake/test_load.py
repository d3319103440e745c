"""Rows from before the changefeed: an export of Dumpling's, and the changes that came after it."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from changefeed import ID, Changefeed, Source, V, at, ddl
from dumpling_export import Number, csv_bytes, write_metadata, write_table

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.state_tables import WINDOWS
from ticdc_lakehouse.ops.load_options import LoadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

ORDERS, WIDE, STUCK, CUT = (Source(table=name) for name in ("orders", "wide", "stuck", "cut"))
WIDER = Source(table="wide", columns=(ID, V, Column(name="w", type="int")))
SCHEMA = "".join(
    f"CREATE TABLE shop.{t.table} (id BIGINT PRIMARY KEY, v VARCHAR(9));" for t in (ORDERS, WIDE, STUCK, CUT)
)
S = at(10)


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Gold at 30, with changes and DDLs before, at and after the exports' TSO."""
    blocked = {"tables": {"shop.stuck": {"on_computed_default": "block"}}}
    feed = Changefeed(spark, broker, tmp_path_factory.mktemp("load"), schema=SCHEMA, described={"gold": blocked})
    feed.send(0, ORDERS.insert(at(9), 3, "before"), ORDERS.insert(at(9), 4, "gone in the export"))
    feed.send(0, ORDERS.update(S, (3, "before"), (3, "at")))
    feed.send(0, ORDERS.update(at(11), (5, "old"), (5, "new")), ORDERS.delete(at(12), 6, "old"))
    feed.send(0, ORDERS.insert(at(13), 7, "later"), WIDE.update(at(13), (5, "old"), (5, "new")))
    feed.send(0, ddl(at(22), "ALTER TABLE `wide` ADD COLUMN `w` INT DEFAULT 7", "shop", "wide", "ALTER"))
    feed.send(0, WIDER.insert(at(23), 8, "wider", 9))
    unknown = "ALTER TABLE `stuck` ADD COLUMN `w` DATETIME DEFAULT CURRENT_TIMESTAMP"
    feed.send(0, STUCK.insert(at(9), 7, "x"), ddl(at(22), unknown, "shop", "stuck", "ALTER"))
    feed.send(0, ddl(at(22), "TRUNCATE TABLE `cut`", "shop", "cut", "TRUNCATE"))
    feed.send(0, ddl(at(23), "CREATE TABLE `other` (id BIGINT PRIMARY KEY)", "shop", "other", "CREATE"))
    feed.send(0, ddl(at(24), "DROP TABLE `other`", "shop", "other", "ERASE"))
    feed.resolve(at(30))
    feed.go()
    return feed


def exported(folder: Path, *rows: tuple[int, str | None], tso: int = S, table: str = "orders") -> str:
    """An export of one table of ``shop``."""
    write_metadata(folder, tso)
    write_table(folder, f"shop.{table}", create(table), ("id", "v"), rows)
    return str(folder)


def create(table: str, more: str = "") -> str:
    return f"CREATE TABLE `{table}` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9){more})"


def commits(feed: Changefeed, table: str) -> list[Row]:
    """The versions of a live table, the oldest first."""
    return sorted(feed.lake.history(feed.live(table)).collect(), key=lambda commit: commit["version"])


def windows(feed: Changefeed) -> int:
    """How many states were published."""
    return feed.spark.table(feed.lake.table(Layer.OPS, WINDOWS)).count()


def test_an_export_that_does_not_fit_the_feed_is_refused(feed: Changefeed, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        feed.run.load(str(tmp_path / "nowhere"))
    folder = tmp_path / "export"
    folder.mkdir()
    with pytest.raises(ConfigError, match="found no file metadata"):
        feed.run.load(str(folder))
    write_metadata(folder, S)
    with pytest.raises(ConfigError, match="expected tables"):
        feed.run.load(str(folder))
    write_table(folder, "shop.orders", create("others"), ("id", "v"))
    with pytest.raises(ConfigError, match=r"expected CREATE TABLE of shop\.orders alone, found shop\.others"):
        feed.run.load(str(folder))
    write_table(folder, "shop.orders", create("orders"), ("v", "id"), [("x", 1)])
    with pytest.raises(ConfigError, match=r'csv: expected the header "id","v", found "v","id"'):
        feed.run.load(str(folder))
    write_table(folder, "shop.orders", create("orders"), ("id", "v"), [(1, "x")], [(1, "x")])
    with pytest.raises(ApplyError, match="2 rows with 1 different keys"):
        feed.run.load(str(folder))
    write_metadata(folder, S, finished=False)
    with pytest.raises(ConfigError, match="has not finished"):
        feed.run.load(str(folder))
    write_metadata(folder, S)
    (folder / "shop.orders-schema.sql").unlink()
    with pytest.raises(ConfigError, match=r"rows of shop\.orders without its CREATE TABLE"):
        feed.run.load(str(folder))


@pytest.mark.parametrize(
    ("table", "tso", "message"),
    [
        ("orders", at(31), "load it when gold has passed the export's TSO"),
        ("cut", S, r"created, renamed or truncated later, at .*: export it again"),
        ("other", S, "renamed or dropped since"),
    ],
)
def test_export_that_gold_has_not_reached_or_has_passed_is_refused(
    feed: Changefeed, tmp_path: Path, table: str, tso: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        feed.run.load(exported(tmp_path / "export", (1, "x"), table=table, tso=tso))


def test_an_export_and_the_changes_after_it_meet(feed: Changefeed, tmp_path: Path) -> None:
    """Case 18."""
    before = feed.rows("orders")
    assert before == {3: ("at",), 4: ("gone in the export",), 5: ("new",), 7: ("later",)}
    export = exported(tmp_path / "export", (1, "first"), (2, None), (3, "at"), (5, "old"), (6, "old"))
    feed.die_before_publishing(lambda: feed.run.load(export))
    assert feed.rows("orders") == before
    published = windows(feed)
    loaded = feed.run.load(export)
    assert windows(feed) == published + 1  # nobody sees the table as of S
    assert (loaded.tso, loaded.rows) == (S, {("shop", "orders"): 5})
    assert feed.rows("orders") == {1: ("first",), 2: (None,), 3: ("at",), 5: ("new",), 7: ("later",)}
    assert [commit["operation"] for commit in commits(feed, "orders")[:2]] == ["CREATE TABLE AS SELECT", "MERGE"]
    as_exported = feed.spark.sql(f"SELECT id, v FROM {feed.live('orders')} VERSION AS OF 0 ORDER BY id").collect()
    assert [*map(tuple, as_exported)] == [(1, "first"), (2, None), (3, "at"), (5, "old"), (6, "old")]
    assert feed.spark.sql(f"DESCRIBE DETAIL {feed.live('orders')}").collect()[0]["clusteringColumns"] == ["id"]
    assert feed.spark.table(feed.live("orders")).schema["v"].metadata["comment"] == "VARCHAR(9)"
    assert (feed.state.tso, feed.state.tables["shop", "orders"].applied_tso) == (at(30), at(30))
    feed.send(0, ORDERS.update(at(31), (1, "first"), (1, "changed")), ORDERS.delete(at(31), 2, None))
    feed.resolve(at(40))
    feed.go()
    assert feed.rows("orders") == {1: ("changed",), 3: ("at",), 5: ("new",), 7: ("later",)}

    again = exported(tmp_path / "again", (1, "changed"), (3, "at"), tso=at(35))
    feed.run.load(again)
    assert feed.rows("orders") == {1: ("changed",), 3: ("at",)}
    with pytest.raises(ConfigError, match=r"table shop\.orders was loaded from an export of this TSO"):
        feed.run.load(again)


def test_ddl_after_the_export_is_followed_and_a_blocked_table_resumes(feed: Changefeed, tmp_path: Path) -> None:
    feed.run.load(exported(tmp_path / "wide", (1, "first"), (5, "old"), table="wide"))
    assert feed.rows("wide") == {1: ("first", 7), 5: ("new", 7), 8: ("wider", 9)}
    assert feed.state.tables["shop", "stuck"].needs_override
    folder = tmp_path / "stuck"
    write_metadata(folder, at(22))
    wider = create("stuck", ", `w` DATETIME DEFAULT CURRENT_TIMESTAMP")
    write_table(folder, "shop.stuck", wider, ("id", "v", "w"), [(7, "x", "2023-11-14 22:13:42")])
    feed.run.load(str(folder))
    (row,) = feed.rows("stuck").items()
    assert (row[0], str(row[1][1])) == (7, "2023-11-14 22:13:42")
    assert feed.state.tables["shop", "stuck"].stop is None


ODD_SQL = """CREATE TABLE `odd.table` (
  `id` VARBINARY(9) NOT NULL, `kind` ENUM('a','b,c') NOT NULL, `text` TEXT, `bits` BIT(10), `day` DATE,
  `moment` TIMESTAMP(3) NULL, `number` DECIMAL(20,5), `float` FLOAT, `year` YEAR, `json` JSON,
  PRIMARY KEY (`id`))"""
ODD_NAMES = ("id", "kind", "text", "bits", "day", "moment", "number", "float", "year", "json")
ODD_ROWS = [
    (
        b"\x00\xff\\\n",
        "b,c",
        'q"\\N\n\r\0é,',
        b"\x02\x01",
        "0000-00-00",
        "2023-11-14 22:13:20.123",
        Number("12.5"),
        Number("1.5"),
        "2023",
        "[1]",
    ),
    (b"", "a", "", None, None, None, None, None, None, None),
]


def test_values_of_every_kind_and_names_of_files(feed: Changefeed, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    write_metadata(folder, S)
    write_table(folder, "shop.odd%2Etable", ODD_SQL, ODD_NAMES, ODD_ROWS[:1], ODD_ROWS[1:])
    write_table(folder, "shop.empty", create("empty"), ("id", "v"))
    write_table(folder, "shop.packed", create("packed"), ("id", "v"), compressed=".gz")
    (folder / "shop.packed.000000000.csv.gz").write_bytes(gzip.compress(csv_bytes(("id", "v"), [(1, "x")])))
    with pytest.raises(ConfigError, match=r"column moment is a TIMESTAMP: give the time zone"):
        feed.run.load(str(folder))
    loaded = feed.run.load(str(folder), LoadOptions(time_zone="Asia/Shanghai"))
    assert loaded.rows == {("shop", "odd.table"): 2, ("shop", "empty"): 0, ("shop", "packed"): 1}
    assert (feed.rows("empty"), feed.rows("packed")) == ({}, {1: ("x",)})
    shown = feed.rows("odd.table")
    assert shown[b""] == ("a", "", *(None,) * 8)
    kind, text, bits, day, moment, number, single, year, json, irregular = shown[b"\x00\xff\\\n"]
    assert (kind, text, bits, day, str(number), single) == ("b,c", 'q"\\N\n\r\0é,', 513, None, "12.50000", 1.5)
    assert (year, json, irregular) == (2023, "[1]", {"day": "0000-00-00"})
    assert str(moment) == "2023-11-14 14:13:20.123000"
    keys = feed.spark.table(feed.live("odd.table"))
    assert {row["_ticdc_key"] for row in keys.select("_ticdc_key").collect()} == {'["00ff5c0a"]', '[""]'}


@pytest.mark.long
def test_a_table_that_the_feed_file_left_out_for_a_while_is_loaded(
    feed: Changefeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its changes are in silver all the same."""
    with monkeypatch.context() as patch:
        patch.setattr(feed, "described", {**feed.described, "tables": {"exclude": ["shop.orders"]}})
        feed.send(0, ORDERS.insert(at(51), 1, "while left out"))
        feed.resolve(at(52))
        feed.go()
        assert ("shop", "orders") not in feed.state.tables
    assert not feed.apply().merged, "it is included again, without rows"
    feed.run.load(exported(tmp_path / "export", (2, "exported"), tso=at(50)))
    assert feed.rows("orders") == {1: ("while left out",), 2: ("exported",)}
    assert feed.state.tables["shop", "orders"].applied_tso == at(52)
