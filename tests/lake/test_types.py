"""What analysts read: exact types, irregular dates, hostile names, and the past."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import ID, Changefeed, Source, at, ddl

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.text import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

SIXTY_FOUR = ",".join(f"'m{number}'" for number in range(64))
# (column, MySQL type, Spark type, text on the wire, value)
EXACT: list[tuple[str, str, str, str | None, Any]] = [
    ("id", "bigint unsigned", "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
    ("tiny", "tinyint unsigned", "smallint", "200", 200),
    ("small", "smallint", "smallint", "-32768", -32768),
    ("medium", "mediumint unsigned", "int", "16777215", 16777215),
    ("whole", "int unsigned", "bigint", "4294967295", 4294967295),
    ("big", "bigint", "bigint", str(-(2**63)), -(2**63)),
    ("amount", "decimal(12,4)", "decimal(12,4)", "-1.5000", Decimal("-1.5000")),
    ("huge", "decimal(65,30)", "string", "1." + "0" * 29 + "1", "1." + "0" * 29 + "1"),
    ("single", "float", "float", "0.1", 0.10000000149011612),
    ("wide", "double", "double", "1e+308", 1e308),
    ("year", "year", "smallint", "2024", 2024),
    ("day", "date", "date", "2024-02-29", dt.date(2024, 2, 29)),
    ("moment", "datetime(6)", "timestamp_ntz", "9999-12-31 23:59:59.999999", dt.datetime.max),
    ("noon", "timestamp(3)", "timestamp", "2024-01-01 20:00:00.500", None),
    ("autumn", "timestamp", "timestamp", "1991-09-15 01:30:00", None),
    ("span", "time", "string", "-838:59:59", "-838:59:59"),
    ("pause", "time(6)", "string", "10:00:00.500", "10:00:00.500000"),
    ("hour", "time(3)", "string", "-01:00:00", "-01:00:00.000"),
    ("half", "time(2)", "string", "-10:00:00.500", "-10:00:00.50"),
    ("exceeding", "time(1)", "string", "10:00:00.250", "10:00:00.250"),
    ("long", "decimal(40,2)", "string", "-1.5", "-1.50"),
    ("zero", "decimal(40,2)", "string", "0", "0.00"),
    ("kind", "enum('a','b''${c}\\\\')", "string", "2", "b'${c}\\"),
    ("mood", "enum('😀','😞')", "string", "2", "😞"),
    ("wrong", "enum('a')", "string", "0", ""),
    ("flags", "set('x','y','z')", "string", "5", "x,z"),
    ("full", f"set({SIXTY_FOUR})", "string", "18446744073709551615", SIXTY_FOUR.replace("'", "")),
    ("bare", "set('x')", "string", "0", ""),
    ("bits", "bit(64)", "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
    ("few", "bit(8)", "bigint", "129", 129),
    ("doc", "json", "string", '{"a": 1.10}', '{"a": 1.10}'),
    ("raw", "varbinary(8)", "binary", "00ff", bytearray(b"\x00\xff")),
    ("empty", "varchar(9)", "string", "", ""),
    ("nothing", "int", "int", None, None),
]
# In Shanghai 01:30 came twice on that day: TiDB takes the later one (tests/tidb/test_local_times.py).
INSTANTS = {
    "noon": dt.datetime(2024, 1, 1, 12, 0, 0, 500_000, dt.UTC),
    "autumn": dt.datetime(1991, 9, 14, 17, 30, tzinfo=dt.UTC),
}
IRREGULAR = {"day": "0000-00-00", "moment": "2024-05-00 00:00:00.000000", "noon": "0000-00-00 00:00:00.000"}
TYPED = Source(
    table="exact",
    columns=tuple(
        Column(name=name, type=kind, key=name == "id", by="index" if kind[:3] in ("enu", "set") else None)
        for name, kind, *_ in EXACT
    ),
)
REGULAR = [text for *_, text, _ in EXACT]
ODD = [IRREGULAR.get(name, text) for name, _, _, text, _ in EXACT[1:]]
CREATE = "CREATE TABLE shop.exact ({}, twice int AS (small * 2) VIRTUAL, PRIMARY KEY (id));".format(
    ", ".join(f"{name} {kind}" for name, kind, *_ in EXACT)
)

LONG = "l" * 64
NASTY = ("`", "a.b", "a b", "'; DROP TABLE x --", '"', "\\", "größe", "名", LONG, "CASE", "s", "${x}", "%s", "{y}")
ABOUT = ("commit_ts", "op", "topic", "partition", "offset", "index", "_before", "gone", "lost", "image", "key", "t0")
SPARKS = ("_corrupt_record", "_metadata", "value", "first")


def source(table: str, *columns: str, database: str = "shop") -> Source:
    return Source(database=database, table=table, columns=(ID, *(Column(name=c, type="varchar") for c in columns)))


HOSTILE = [
    source("columns", *NASTY),
    source("about", *ABOUT),
    source("sparks", *SPARKS),
    *(source(name, "v") for name in ("Mixed", "x__data", "x", "'; SELECT 1 --", "表", LONG)),
    source("😀", "👩‍👩‍👧", "v"),
    source("y_z", "v", database="x"),
    source("z", "v", database="x_y"),
    source("t", "v", database="`d`.'e'"),
]


@pytest.fixture(scope="module")
def feed(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Changefeed:
    """Published at 2 and at 4 seconds."""
    feed = Changefeed(
        spark,
        broker,
        tmp_path_factory.mktemp("types"),
        schema=CREATE,
        described={"time_zone": "Asia/Shanghai"},
    )
    feed.send(0, TYPED.insert(at(1), *REGULAR))
    for number, table in enumerate(HOSTILE):
        row = [str(number), *(f"{number} {c.name}" for c in table.columns[1:])]
        feed.send(0, table.insert(at(1), *row))
    feed.send(0, TYPED.insert(at(3), "1", *ODD))
    feed.send(0, ddl(at(3), "CREATE TABLE `late` (`id` INT PRIMARY KEY)", "shop", "late", "CREATE"))
    feed.resolve(at(4))
    feed.load()
    feed.apply(until_tso=at(2))
    feed.apply()
    assert feed.state.tso == at(4)
    return feed


@pytest.mark.parametrize("layer", [Layer.GOLD, Layer.SILVER])
def test_columns_have_exact_types_values_and_comments(feed: Changefeed, layer: Layer) -> None:
    view = feed.spark.table(feed.lake.table(layer, feed.state.tables["shop", "exact"].lake_name))
    fields = {field.name: field for field in view.schema}
    row = view.where("id > 1").select(*(name for name, *_ in EXACT)).collect()[0]
    for name, _, spark_type, _, value in EXACT:
        assert fields[name].dataType.simpleString() == spark_type, name
        if name not in INSTANTS:
            assert row[name] == value, name
    instants = view.where("id > 1").selectExpr(*(f"unix_millis({name})" for name in INSTANTS)).first()
    assert instants == tuple(round(instant.timestamp() * 1000) for instant in INSTANTS.values())
    assert "twice" not in fields
    for name, kind, *_ in EXACT:
        assert fields[name].metadata["comment"].startswith(kind), name


@pytest.mark.parametrize("layer", Layer)
def test_every_column_of_the_lake_has_a_comment(feed: Changefeed, layer: Layer) -> None:
    names = [name for name in feed.lake.tables(layer) if layer is Layer.OPS or name.startswith(feed.name)]
    assert names
    fields = [(name, field) for name in names for field in feed.spark.table(feed.lake.table(layer, name)).schema]
    assert [(name, field.name) for name, field in fields if not field.metadata.get("comment")] == []


def test_irregular_dates_are_null_and_kept_exact(feed: Changefeed) -> None:
    view = feed.spark.table(feed.view("exact"))
    rows = {row["id"]: row for row in view.collect()}
    assert {name: rows[1][name] for name in IRREGULAR} == dict.fromkeys(IRREGULAR)
    assert rows[1]["_ticdc_irregular"] == IRREGULAR
    assert rows[2**64 - 1]["_ticdc_irregular"] is None


@pytest.mark.parametrize("number", range(len(HOSTILE)), ids=[f"{t.database}.{t.table}"[:20] for t in HOSTILE])
def test_names_may_have_any_characters(feed: Changefeed, number: int) -> None:
    table = HOSTILE[number]
    state = feed.state.tables[TableName(table.database, table.table)]
    assert state.stop is None
    view = feed.spark.table(feed.lake.table(Layer.GOLD, state.lake_name))
    names = [column.name for column in table.columns]
    row = (number, *(f"{number} {name}" for name in names[1:]))
    assert view.columns == names
    assert [tuple(line) for line in view.collect()] == [row]
    changes = feed.spark.table(feed.lake.table(Layer.SILVER, state.lake_name))
    op = "_ticdc_op" if table.table == "about" else "op"
    assert [tuple(line) for line in changes.select(op, *map(quoted, names)).collect()] == [("insert", *row)]


def test_names_in_the_lake_differ(feed: Changefeed) -> None:
    names = [state.lake_name for state in feed.state.tables.values()]
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.long
def test_as_of_reads_kept_states_and_refuses_others(feed: Changefeed) -> None:
    lake = feed.lake
    with pytest.raises(ConfigError, match=r"keeps no state at or before TSO .*; the earliest kept is"):
        as_of(feed.spark, feed.name, at(2) - 1, lake=lake)
    with pytest.raises(ConfigError, match=rf"no feed 'typo' has published; there are: .*{feed.name}"):
        as_of(feed.spark, "typo", lake=lake)
    elsewhere = replace(lake, schemas={layer: f"dev_me_{layer}" for layer in Layer})
    with pytest.raises(ConfigError, match=r"no lake in .*\.dev_me_ops: .* pass lake=deployed_lake"):
        as_of(feed.spark, feed.name, lake=elsewhere)
    with pytest.raises(KeyError, match=r"no table 'exact' as of .*; there are: .*shop\.exact"):
        as_of(feed.spark, feed.name, lake=lake)["exact"]
    for tso in (at(2), at(3), at(4) - 1):
        past = as_of(feed.spark, feed.name, tso, lake=lake)
        assert past.tso == at(2)
        assert past.behind == {}
        assert past["shop.exact"].count() == 1
        assert "shop.late" not in past.tables
    for tso in (at(4), at(99), None):
        now = as_of(feed.spark, feed.name, tso, lake=lake)
        assert now.tso == at(4)
        assert now["shop.exact"].count() == 2
        assert now["shop.late"].count() == 0
        assert set(now["shop.exact"].columns) == set(feed.spark.table(feed.view("exact")).columns)


@pytest.mark.long
def test_values_are_the_same_in_any_session(feed: Changefeed) -> None:
    """Decoded, applied and read under another time zone and the other ANSI mode."""

    def read(layer: Layer) -> dict[Any, tuple[Any, ...]]:
        table = feed.lake.table(layer, feed.state.tables["shop", "exact"].lake_name)
        columns = [f"unix_micros({name})" if name in INSTANTS else quoted(name) for name, *_ in EXACT]
        return {row[0]: tuple(row[1:]) for row in feed.spark.table(table).selectExpr(*columns).collect()}

    usual = {layer: read(layer) for layer in (Layer.GOLD, Layer.SILVER)}
    settings = {"spark.sql.session.timeZone": "America/New_York"}
    settings["spark.sql.ansi.enabled"] = str(feed.spark.conf.get("spark.sql.ansi.enabled") != "true").lower()
    before = {name: feed.spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        feed.spark.conf.set(name, value)
    try:
        feed.send(0, TYPED.insert(at(5), "2", *REGULAR[1:]), TYPED.insert(at(5), "3", *ODD))
        feed.resolve(at(6))
        feed.go()
        other = {layer: read(layer) for layer in (Layer.GOLD, Layer.SILVER)}
    finally:
        for name, value in before.items():
            feed.spark.conf.set(name, str(value))
    for layer, rows in usual.items():
        assert other[layer] == {**rows, 2: rows[2**64 - 1], 3: rows[1]}
