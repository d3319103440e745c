"""Gold compared with a real TiDB v8.5.6, at exact TSOs. ``make verify-test`` builds the server and runs this."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

sys.path.append(str(Path(__file__).parents[1] / "lake"))

from changefeed import ID, Changefeed, Source, V
from tidb_server import TiDB, server

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_lakehouse.ops.verify.chunk import Chunk, key_ranges
from ticdc_lakehouse.ops.verify.compared_table import ComparedTable, compared_table
from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.ops.verify.verification import VerifySettings, verify
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.columns import source_columns
from ticdc_lakehouse.tidb.session import SnapshotReader, text_of
from ticdc_local.verify_stream import load_stream
from ticdc_testkit.recorded_streams import answers, recorded_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PROGRAM = server()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go")
STREAMS = Path(__file__).parents[1] / "data" / "streams"


def cell(kind: str, value: Any) -> str:
    """An answer's value as a literal."""
    match value:
        case None:
            return "NULL"
        case {"hex": text}:
            return f"x'{text}'"
        case {"index": number} | {"mask": number}:
            return str(number)
        case _ if parse_type(kind).family in (Family.BIT, Family.FLOAT, Family.DOUBLE):
            return str(value)
        case _:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"


def inserted(name: str, table: Mapping[str, Any], time_zone: str) -> Iterator[str]:
    """Statements that make a table as an answer has it."""
    yield f"SET SESSION time_zone = '{time_zone}'"
    database, _, bare = name.partition(".")
    yield f"CREATE DATABASE IF NOT EXISTS `{database}`"
    yield f"USE `{database}`"
    yield f"DROP TABLE IF EXISTS `{bare}`"
    yield table["create"]
    columns = [(at, c["name"], c["type"]) for at, c in enumerate(table["columns"]) if c["name"] not in generated(table)]
    names = ", ".join(f"`{column}`" for _, column, _ in columns)
    for row in table["rows"]:
        values = (cell(kind, row[at]) for at, _, kind in columns)
        yield f"INSERT INTO `{bare}` ({names}) VALUES ({', '.join(values)})"


def generated(table: Mapping[str, Any]) -> set[str]:
    return set(re.findall(r"^ *`([^`]+)`.* GENERATED ALWAYS AS ", table["create"], re.MULTILINE))


def compared(source: SnapshotReader, create: str) -> ComparedTable:
    """A table of a CREATE TABLE, as both sides have it."""
    (table,) = tables_from_sql(create, source="test")
    return compared_table(table, "", source_columns(source, table.name))[0]


@pytest.mark.parametrize("folder", ["tiflow-types", "ticdc-types"])
def test_tidbs_texts_mean_what_its_clients_read(database: TiDB, folder: str) -> None:
    """Of every recorded value: nothing is cut, rounded or written in another character set."""
    stream = recorded_stream(STREAMS / folder, "canal_json.jsonl.gz", {})
    for name, table in list(answers(stream.folder))[-1].tables.items():
        database.execute(*inserted(name, table, stream.time_zone))
        source = SnapshotReader(connect=database.at(database.tso()).connect)
        both = compared(source, f"USE `{name.partition('.')[0]}`; {table['create']};")
        hashes = [key for key, _ in source.query(both.source_hashes_sql(Chunk()))]
        read = [tuple(map(text_of, row[1:])) for row in source.query(both.source_texts_sql(Chunk(), hashes))]
        names = [column["name"] for column in table["columns"]]
        order = [names.index(column.name) for column in both.columns]
        expected = {both.key_of(row): row for row in ([plain(row[at]) for at in order] for row in table["rows"])}
        assert len(read) == len(expected) == len(table["rows"])
        for row in read:
            for column, found, want in zip(both.columns, row, expected[both.key_of(row)], strict=True):
                is_instant = column.source.type.family is Family.TIMESTAMP
                utc = in_utc(want, stream.time_zone) if is_instant and want else want
                assert column.same(found, utc), (name, column.name)
        source.close()


def in_utc(text: str, time_zone: str) -> str:
    """A TIMESTAMP's text in a zone, as it is in UTC."""
    if text.startswith("0000"):
        return text
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(time_zone)).astimezone(dt.UTC)
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def plain(value: Any) -> str | None:
    """An answer's value as the text that a lake has."""
    match value:
        case {"hex": text} | {"name": text} | {"names": text}:
            return str(text)
        case _:
            return None if value is None else str(value)


def test_checksums_are_computed_by_tikv(database: TiDB) -> None:
    columns = ("bigint", "int unsigned", "text", "decimal(10,2)", "timestamp(3)", "date", "time(2)", "year", "double")
    columns += ("varchar(9) COLLATE utf8mb4_general_ci", "blob", "enum('a')", "json", "bit(8)", "datetime", "float")
    listed = ", ".join(f"c{number} {kind}" for number, kind in enumerate(columns))
    create = f"CREATE TABLE test.pushed (id bigint PRIMARY KEY, {listed})"
    database.execute(create)
    source = SnapshotReader(connect=database.at(database.tso()).connect)
    both = compared(source, f"{create};")
    chunk = key_ranges(both.key, [("10",), ("20",)], Chunk())[1]
    plan = source.query(f"EXPLAIN {both.source_checksum_sql(chunk)}")
    source.close()
    steps = [(str(step[0]).strip("└─ ").rpartition("_")[0][-9:], step[2]) for step in plan]
    assert steps[2:] == [("StreamAgg", "cop[tikv]"), ("RangeScan", "cop[tikv]")]


def by_name(verified: Verified) -> dict[str, TableResult]:
    return {table.name.table: table for table in verified.tables}


@pytest.mark.parametrize(
    ("folder", "file"), [("tiflow-types", "canal_json.jsonl.gz"), ("ticdc-types", "canal_json.jsonl.gz")]
)
def test_recorded_values_of_every_type_compare_as_equal(
    spark: SparkSession, broker: Broker, database: TiDB, lake_root: Path, folder: str, file: str
) -> None:
    """What is equal is equal for every recorded value, and every column that is changed is found."""
    stream = recorded_stream(STREAMS / folder, file, {})
    run = load_stream(spark, broker, stream, lake_root, name=f"verified_{folder.replace('-', '_')}")
    run.gold()
    last = list(answers(stream.folder))[-1]
    for name, table in last.tables.items():
        database.execute(*inserted(name, table, stream.time_zone))
    settings = VerifySettings(chunk_rows=8)
    now = database.tso()
    equal = by_name(verify(run.lake, run.gold_config, lambda _: database.at(now), settings))
    assert [str(each) for table in equal.values() for each in table.differences] == []
    assert {table: result.result for table, result in equal.items()} == dict.fromkeys(equal, Result.EQUAL)
    changed = {}
    for name, table in last.tables.items():
        own = [c["name"] for c in table["columns"] if c["nullable"] and c["name"] not in generated(table)]
        changed[name.partition(".")[2]] = set(own)
        for column in own:
            value = next((row for row in table["rows"] if row[_at(table, column)] is not None), None)
            assert value is not None, column
            where = f"`{table['columns'][0]['name']}` = {cell(table['columns'][0]['type'], value[0])}"
            database.execute(f"UPDATE {name.replace('.', '.`')}` SET `{column}` = NULL WHERE {where}")
    then = database.tso()
    found = by_name(verify(run.lake, run.gold_config, lambda _: database.at(then), settings))
    # A generated column changes with what it is made of.
    made = {column for table in last.tables.values() for column in generated(table)}
    assert {n: {each.column for each in t.differences} - made for n, t in found.items()} == changed
    again = verify(run.lake, run.gold_config, lambda _: database.at(now), settings)
    assert not again.different


def _at(table: Mapping[str, Any], column: str) -> int:
    return [each["name"] for each in table["columns"]].index(column)


NOTES = Source(table="notes", database="app", columns=(ID, V))
CREATE = "CREATE TABLE app.notes (id bigint PRIMARY KEY, v varchar(20) COLLATE utf8mb4_general_ci)"


def test_the_published_tso_is_read_exactly(spark: SparkSession, broker: Broker, database: TiDB, tmp_path: Path) -> None:
    """A change that TiCDC would have sent, and did not, is found and repaired; one after the watermark is not seen."""
    rows = ", ".join(f"({number}, 'v{number}')" for number in range(100))
    committed = database.execute("CREATE DATABASE app", CREATE, f"INSERT INTO app.notes VALUES {rows}")
    feed = Changefeed(spark, broker, tmp_path, schema=f"{CREATE};\n")
    feed.send(0, *(NOTES.insert(committed, number, f"v{number}") for number in range(100)))
    feed.resolve(committed)
    feed.go()
    database.execute("UPDATE app.notes SET v = 'later' WHERE id = 7")
    assert not feed.run.verify_source(database.dsn).different

    database.execute("UPDATE app.notes SET v = 'Never Sent' WHERE id = 8")
    database.execute("DELETE FROM app.notes WHERE id = 9")
    lost = database.execute("INSERT INTO app.notes VALUES (1000, 'imported')")
    feed.resolve(lost)
    feed.go()
    found = by_name(feed.run.verify_source(database.dsn, ["app.notes"], threads=2))["notes"]
    assert found.tso == lost
    assert {str(each) for each in found.differences} == {
        """changed ["7"] v: TiDB has 'later', the lake has 'v7'""",
        """changed ["8"] v: TiDB has 'Never Sent', the lake has 'v8'""",
        """extra ["9"]: the lake has the row, TiDB has not""",
        """missing ["1000"]: TiDB has the row, the lake has not""",
    }
    assert found.different_rows == 4
    repaired = by_name(feed.run.verify_source(database.dsn, repair=True))["notes"]
    assert repaired.result is Result.REPAIRED
    assert not feed.run.verify_source(database.dsn).different
    assert feed.rows("notes", "app")[8] == ("Never Sent",)


def test_what_tidb_cannot_read_is_refused(database: TiDB) -> None:
    future = database.tso() + (3_600_000 << 18)
    with pytest.raises(ConfigError, match="TiDB cannot read at"):
        database.at(future).connect()
    until = "VARIABLE_VALUE = '20990101-00:00:00.000 +0000'"
    database.execute(f"UPDATE mysql.tidb SET {until} WHERE VARIABLE_NAME = 'tikv_gc_safe_point'")
    with pytest.raises(ConfigError, match="no versions"):
        database.at(database.tso()).connect()
    wrong = replace(database.address, user="nobody")
    with pytest.raises(ConfigError, match="cannot connect"):
        replace(database.at(1), address=wrong).connect()


def test_a_table_that_tidb_hides_from_the_user_is_not_missing(database: TiDB) -> None:
    """information_schema shows a user nothing of a table on which the user has no privilege."""
    database.execute("CREATE TABLE test.hidden (id bigint PRIMARY KEY)", "CREATE USER stranger")
    snapshot = database.at(database.tso())
    with closing(SnapshotReader(connect=snapshot.connect)) as source:
        assert source_columns(source, TableName("test", "hidden")) is not None
        assert source_columns(source, TableName("test", "nothing")) is None
        assert source_columns(source, TableName("nothing", "hidden")) is None
    stranger = replace(snapshot, address=replace(database.address, user="stranger"))
    with closing(SnapshotReader(connect=stranger.connect)) as source, pytest.raises(ConfigError, match="denied"):
        source_columns(source, TableName("test", "hidden"))
