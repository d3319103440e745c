"""MySQL's texts read back from typed columns, and keys made of them: the same in any session, and the wire's own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from altered_table import alter_live_table, altered, altered_table, fill
from changefeed import lake_in

from ticdc_codec.errors import ApplyError
from ticdc_codec.event import Column
from ticdc_codec.mysql_type import parse_type
from ticdc_codec.number_text import shortest_texts
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.policy import OnIrregular, Policy
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table, table_from_wire
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.float_text import number_text_sql
from ticdc_lakehouse.sql.key_text import key_text_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    TypedColumn,
    irregular_sql,
    irregular_texts_sql,
    stored_text_sql,
    typed_column,
)
from ticdc_lakehouse.sql.undeclared_types import whole_text_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSIONS = {
    "an hour is missing in the zone": {"spark.sql.session.timeZone": "America/New_York"},
    "no ANSI mode": {"spark.sql.ansi.enabled": "false"},
    "the time parser of Spark 2": {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "NULLs in JSON": {"spark.sql.jsonGenerator.ignoreNullFields": "false"},
}
NO_HOUR = "2024-03-10 02:30:00"  # America/New_York
STORED = [
    ("datetime", NO_HOUR),
    ("datetime(3)", f"{NO_HOUR}.000"),
    ("datetime(6)", f"{NO_HOUR}.000500"),
    ("datetime", "0000-01-01 00:00:00"),
    ("datetime(1)", "9999-12-31 23:59:59.9"),
    ("timestamp(3)", f"{NO_HOUR}.050"),
    ("decimal(20,8)", "0.00000000"),
    ("decimal(20,8)", "-0.00000001"),
    ("decimal(38,6)", "0.000000"),
    ("decimal(10,6)", "-0.000001"),
    ("decimal(38,30)", "12345678.000000000000000000000000000001"),
    ("decimal(5)", "-12345"),
    ("double", "0"),
    ("double", "-0"),
    ("double", "0.000001"),
    ("double", "-1.5e-07"),
    ("double", "123456789012345680000"),
    ("double", "-1000000000000000"),
    ("double", "1e+21"),
    ("double", "1.7976931348623157e+308"),
    ("double", "2e+23"),  # Java 17 writes 1.9999999999999998E23
    ("double", "5e-324"),  # every Java 4.9E-324
    ("float", "0.1"),
    ("float", "16777216"),
    ("float", "3.4028235e+38"),
    ("float", "1.1754944e-38"),  # Java 17 writes 1.17549435E-38
    ("float", "3e-45"),
]
SENT = [  # of columns whose type messages leave open (Debezium)
    ("datetime", "1710037800000", NO_HOUR),
    ("datetime(6)", "1710037800000500", f"{NO_HOUR}.000500"),
    ("timestamp(1)", "2024-03-10T02:30:00.5Z", f"{NO_HOUR}.5"),
]
# Of a definition that is older than the row: kept exact rather than cut.
TOO_LONG = [("decimal(10,2)", "1.005"), ("decimal(10)", "-0.5"), ("int", "3000000000"), ("time(3)", "10:00:00.123456")]
KEYS = ["a", "\x00\x0b\x0c\x1a\x1f\x7f", "\\u001F", "\\\\u001F\x1f", '"\\', "\t\n/é😀\u2028"]


@contextmanager
def settings(spark: SparkSession, given: dict[str, str]) -> Iterator[None]:
    usual = {name: spark.conf.get(name) for name in given}
    try:
        for name, value in given.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in usual.items():
            spark.conf.set(name, str(value))


def typed(name: str, kind: str) -> TypedColumn:
    return typed_column(ColumnDefinition(name=name, type=parse_type(kind)))


def answers(spark: SparkSession, values: list[str], source: str = "") -> list[object]:
    (row,) = spark.sql(f"SELECT {', '.join(f'{value} AS c{i}' for i, value in enumerate(values))} {source}").collect()
    return list(row)


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_stored_values_have_the_texts_of_mysql(spark: SparkSession, session: dict[str, str]) -> None:
    columns = [typed(f"v{i}", kind) for i, (kind, _) in enumerate(STORED)]
    values = [column.sql(literal(text), "UTC") for column, (_, text) in zip(columns, STORED, strict=True)]
    rows = ", ".join(f"{value} AS {column.name}" for column, value in zip(columns, values, strict=True))
    texts = [stored_text_sql(column, "UTC") for column in columns]
    sent = [
        whole_text_sql(ColumnDefinition(name="v", type=parse_type(kind), open=True), literal(text), "UTC")
        for kind, text, _ in SENT
    ]
    lost = irregular_sql(irregular_texts_sql(tuple(columns), [literal(text) for _, text in STORED], values))
    with settings(spark, session):
        found = answers(spark, texts, f"FROM (SELECT {rows}, CAST(NULL AS MAP<STRING, STRING>) AS {IRREGULAR})")
        whole = answers(spark, [*sent, lost])
    assert found == [text for _, text in STORED]
    assert whole == [*(text for _, _, text in SENT), None]


@pytest.mark.parametrize(("kind", "bits", "of_numpy"), [("FLOAT", 32, np.float32), ("DOUBLE", 64, np.float64)])
def test_any_number_has_the_codecs_text(
    spark: SparkSession, kind: str, bits: int, of_numpy: type[np.floating[Any]]
) -> None:
    chance = random.Random(bits)
    bytes_of = (chance.getrandbits(bits).to_bytes(bits // 8, "little") for _ in range(2_000))
    short = [float(f"{chance.randint(1, 999)}e{chance.randint(-30, 30)}") for _ in range(2_000)]
    numbers = np.concatenate([np.frombuffer(b"".join(bytes_of), of_numpy), np.array(short, of_numpy)])
    numbers = numbers[np.isfinite(numbers)]
    rows = spark.createDataFrame(pa.table({"number": numbers, "expected": shortest_texts(numbers)}))
    found = rows.selectExpr("expected", f"{number_text_sql('number', kind)} AS found").where("NOT expected <=> found")
    assert [tuple(row) for row in found.collect()] == []


def wire_key(*texts: str) -> str:
    return orjson.dumps(texts).decode()


def test_keys_are_written_as_the_wire_writes_them(spark: SparkSession) -> None:
    texts = [f"CAST(unhex('{key.encode().hex()}') AS STRING)" for key in KEYS]
    assert answers(spark, [key_text_sql([text, "'2'"]) for text in texts]) == [wire_key(k, "2") for k in KEYS]


def test_value_with_too_many_digits_is_irregular_and_not_rounded(spark: SparkSession) -> None:
    columns = [typed(kind, kind) for kind, _ in TOO_LONG]
    texts = [literal(text) for _, text in TOO_LONG]
    values = [column.sql(text, "UTC") for column, text in zip(columns, texts, strict=True)]
    *found, lost = answers(spark, [*values, irregular_sql(irregular_texts_sql(tuple(columns), texts, values))])
    assert found == [None, None, None, "10:00:00.123456"]
    assert lost == dict(TOO_LONG[:3])


def test_a_number_without_a_name_is_irregular(spark: SparkSession) -> None:
    """The definition is older than the row: an ENUM or SET has more names since."""
    full = "set(" + ",".join(f"'{i}'" for i in range(64)) + ")"
    numbers = [("enum('a','b')", "2", "b"), ("enum('a','b')", "3", None), ("set('x','y')", "3", "x,y"),
               ("set('x','y')", "4", None), ("set('x','y')", "7", None), (full, "9223372036854775809", "0,63"),
               (full, "18446744073709551616", None)]  # fmt: skip
    columns = [typed(f"c{i}", kind) for i, (kind, _, _) in enumerate(numbers)]
    texts = [literal(text) for _, text, _ in numbers]
    values = [column.sql(text, "UTC") for column, text in zip(columns, texts, strict=True)]
    *found, lost = answers(spark, [*values, irregular_sql(irregular_texts_sql(tuple(columns), texts, values))])
    assert found == [name for _, _, name in numbers]
    assert lost == {f"c{i}": text for i, (_, text, name) in enumerate(numbers) if name is None}


@pytest.fixture
def lake(spark: SparkSession, lake_root: Path) -> Iterator[Lake]:
    lake = lake_in(spark, lake_root, "stored_text")
    lake.register()
    yield lake
    lake.drop(Layer.LIVE, "t")


def test_a_key_gets_the_digits_of_its_new_type(lake: Lake) -> None:
    name = altered(
        lake,
        "CREATE TABLE d.t (a DATETIME, v DATETIME, w TIMESTAMP(3), PRIMARY KEY (a))",
        f"""(TIMESTAMP_NTZ'{NO_HOUR}', NULL, NULL, 1,
        map('v', '0000-00-00 00:00:00', 'w', '0000-00-00 00:00:00'), '["{NO_HOUR}"]')""",
        "ALTER TABLE t MODIFY a DATETIME(3), MODIFY v DATETIME(1), MODIFY w TIMESTAMP(6)",
    )
    (row,) = lake.spark.sql(f"SELECT _ticdc_key, {IRREGULAR} FROM {name}").collect()
    zero = "0000-00-00 00:00:00"  # Debezium sends a zero TIMESTAMP without digits
    assert tuple(row) == (wire_key(f"{NO_HOUR}.000"), {"v": f"{zero}.0", "w": f"{zero}.000000"})


@pytest.mark.parametrize(
    ("value", "texts", "zone"),
    [
        ("NULL", "NULL", None),
        ("NULL", "map('other', '0000-00-00')", "UTC"),
        ("NULL", "map('a', '0000-00-00 00:00:00')", "UTC"),
        ("TIMESTAMP_NTZ'2024-07-01 12:00:00'", "NULL", "UTC"),
    ],
)
def test_the_time_that_tidb_puts_in_place_of_null_blocks_the_table(
    lake: Lake, value: str, texts: str, zone: str | None
) -> None:
    """In a column that becomes TIMESTAMP NOT NULL; a zero date is no NULL."""
    (table,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY, a DATETIME)")
    fill(lake, table, f"(1, {value}, 1, {texts}, '[\"1\"]')")
    if value == "NULL" and "'a'" not in texts:
        with pytest.raises(ApplyError, match="put the time of the ALTER into rows that had NULL"):
            alter_live_table(lake, table, "ALTER TABLE t MODIFY a TIMESTAMP NOT NULL", zone)
        alter_live_table(lake, table, "ALTER TABLE t MODIFY a TIMESTAMP NULL", zone)
    else:
        alter_live_table(lake, table, "ALTER TABLE t MODIFY a TIMESTAMP NOT NULL", zone)


def test_an_irregular_value_that_a_ddl_makes_is_blocked_if_those_are(lake: Lake) -> None:
    (table,) = tables_from_sql("CREATE TABLE d.t (id BIGINT PRIMARY KEY)")
    fill(lake, table, "(1, 1, NULL, '[\"1\"]')")
    blocks, ddl = Policy(on_irregular=OnIrregular.BLOCK), "ALTER TABLE t ADD COLUMN d DATE NOT NULL"
    with pytest.raises(ApplyError, match=r"column d: .* cannot hold in the lake \(on_irregular: block\)"):
        alter_live_table(lake, table, ddl, policy=blocks)
    alter_live_table(lake, table, f"{ddl} DEFAULT '2024-01-01'", policy=blocks)


@pytest.mark.parametrize("ddl", ["DROP COLUMN a", "MODIFY a VARCHAR(20)", "DROP COLUMN a, ADD COLUMN a INT"])
def test_irregular_values_are_null_once_none_is_left(lake: Lake, ddl: str) -> None:
    create = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, a DATE, b DATE)"
    rows = ["(1, NULL, NULL, 1, map('a', '0000-00-00'), '[\"1\"]')"]
    rows.append("(2, NULL, NULL, 1, map('a', '0000-00-00', 'b', '2024-00-00'), '[\"2\"]')")
    name = altered(lake, create, ", ".join(rows), f"ALTER TABLE t {ddl}")
    found = lake.spark.sql(f"SELECT id, {IRREGULAR} FROM {name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, None), (2, {"b": "2024-00-00"})]


@pytest.mark.parametrize(("old", "new"), [("\u03c3", "\u03c2"), ("i", "\u0131")])
def test_a_column_gets_a_name_that_is_the_same_to_spark(lake: Lake, old: str, new: str) -> None:
    create = f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, `{old}` INT)"
    name = altered(lake, create, "(1, 2, 1, NULL, '[\"1\"]')", f"ALTER TABLE t RENAME COLUMN `{old}` TO `{new}`")
    rows = lake.spark.table(name)
    assert (rows.columns[:2], tuple(rows.collect()[0])[:2]) == (["id", new], (1, 2))


@pytest.mark.long
def test_a_timestamp_becomes_what_its_session_shows(lake: Lake) -> None:
    """And the other way round; in New York's summer, four hours behind UTC. A zero date stays one."""
    name = altered(
        lake,
        """CREATE TABLE d.t (a TIMESTAMP(3), b TIMESTAMP(6), c TIMESTAMP, d DATETIME(6), e DATETIME, f VARCHAR(30),
        g TIMESTAMP, PRIMARY KEY (d))""",
        """(TIMESTAMP'2024-07-01 12:00:00.123Z', TIMESTAMP'2024-07-01 03:59:59.5Z', TIMESTAMP'2024-07-01 03:00:00Z',
        TIMESTAMP_NTZ'2024-07-01 12:00:00.1236', NULL, '2024-07-01 12:00:00',
        TIMESTAMP'2010-03-21 18:47:28Z', 1, map('e', '0000-00-00 00:00:00'), '["2024-07-01 12:00:00.123600"]')""",
        """ALTER TABLE t MODIFY a DATETIME, MODIFY b BIGINT, MODIFY c DATE, MODIFY d TIMESTAMP(3),
        MODIFY e TIMESTAMP(1), MODIFY f TIMESTAMP, MODIFY g BIGINT""",
        "America/New_York",
    )
    shown = "CAST(a AS STRING), b, CAST(c AS STRING), unix_millis(d), e, unix_seconds(f), g"
    (row,) = lake.spark.sql(f"SELECT {shown}, _ticdc_key, {IRREGULAR} FROM {name}").collect()
    noon = 1_719_849_600  # 2024-07-01 16:00:00 UTC
    assert tuple(row) == (
        "2024-07-01 08:00:00",
        20240701000000,
        "2024-06-30",
        noon * 1000 + 124,
        None,
        noon,
        20100321144728,  # as in the recorded session, statement 112
        wire_key("2024-07-01 16:00:00.124"),
        {"e": "0000-00-00 00:00:00.0"},
    )


def test_a_timestamp_of_fewer_digits_is_rounded_as_an_instant(lake: Lake) -> None:
    """Where clocks go back: in New York at 6:00 UTC, so that the hour from 1:00 to 2:00 comes twice."""
    (table,) = tables_from_sql("CREATE TABLE d.t (id INT PRIMARY KEY, a TIMESTAMP(3), b TIMESTAMP(3))")
    fill(
        lake,
        table,
        "(1, TIMESTAMP'2021-11-07 05:59:59.6Z', TIMESTAMP'2021-11-07 06:30:00.4Z', 1, NULL, '[\"1\"]')",
    )
    ddl = "ALTER TABLE t MODIFY a TIMESTAMP, MODIFY b TIMESTAMP(1)"
    name = alter_live_table(lake, table, ddl, time_zone="America/New_York")
    (row,) = lake.spark.sql(f"SELECT unix_millis(a), unix_millis(b) FROM {name}").collect()
    six = 1_636_264_800_000
    assert tuple(row) == (six, six + 30 * 60_000 + 400)


def test_a_timestamp_in_an_hour_that_comes_twice_becomes_its_local_time(lake: Lake) -> None:
    """Debezium's text of the later one is in UTC."""
    (table,) = tables_from_sql("CREATE TABLE d.t (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP(3), c TIMESTAMP)")
    texts = "'a', '2021-11-07T06:30:00Z', 'b', '2021-11-07T06:30:00.5Z'"
    fill(lake, table, f"""(1, NULL, NULL, TIMESTAMP'2021-11-07 05:30:00Z', 1, map({texts}), '["1"]')""")
    ddl = "ALTER TABLE t MODIFY a VARCHAR(30), MODIFY b DATETIME(3), MODIFY c CHAR(30)"
    name = alter_live_table(lake, table, ddl, "America/New_York", time_zone="America/New_York")
    (row,) = lake.spark.sql(f"SELECT a, CAST(b AS STRING), c, {IRREGULAR} FROM {name}").collect()
    assert tuple(row) == ("2021-11-07 01:30:00", "2021-11-07 01:30:00.5", "2021-11-07 01:30:00", None)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ("MODIFY a BIGINT NOT NULL, RENAME COLUMN b TO c", ("1", "2")),
        ("CHANGE a a2 BIGINT, CHANGE b b2 BIGINT", ("1", "2")),
        ("CHANGE a b BIGINT, CHANGE b a BIGINT", ("2", "1")),
        ("MODIFY a BIGINT, ADD COLUMN n INT NOT NULL DEFAULT 7, DROP PRIMARY KEY, ADD PRIMARY KEY (a, n)", ("1", "7")),
        ("MODIFY a DATETIME(3), MODIFY b DATETIME(3)", None),
    ],
)
def test_a_key_is_made_of_its_columns_as_the_whole_ddl_leaves_them(
    lake: Lake, changes: str, key: tuple[str, str] | None
) -> None:
    kind, values = ("INT", "1, 2") if key else ("DATETIME", "TIMESTAMP_NTZ'2024-01-01', TIMESTAMP_NTZ'2024-01-02'")
    name = altered(
        lake,
        f"CREATE TABLE d.t (a {kind} NOT NULL, b {kind} NOT NULL, PRIMARY KEY (b, a) NONCLUSTERED)",
        f"({values}, 1, NULL, '[\"before\"]')",
        f"ALTER TABLE t {changes}",
    )
    (row,) = lake.spark.sql(f"SELECT _ticdc_key FROM {name}").collect()
    assert row[0] == wire_key(*(key or ("2024-01-01 00:00:00.000", "2024-01-02 00:00:00.000")))


NO_TIMESTAMPS = [
    ("2024-07-01 00:00:00", "TIMESTAMP", None, "give it as gold.ddl_time_zone"),
    ("2024-03-10 02:30:00", "TIMESTAMP", "America/New_York", "cannot be converted"),  # no such hour
    ("2038-01-19 03:14:08", "TIMESTAMP", "UTC", "cannot be converted"),  # too late
    ("1970-01-01 00:00:00", "TIMESTAMP(3)", "UTC", "cannot be converted"),  # too early
]


def test_values_that_are_no_timestamps_block_the_table(lake: Lake) -> None:
    """Each column of one table in turn."""
    columns = ", ".join(f"v{at} DATETIME" for at in range(len(NO_TIMESTAMPS)))
    values = ", ".join(f"TIMESTAMP_NTZ'{value}'" for value, *_ in NO_TIMESTAMPS)
    (table,) = tables_from_sql(f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, {columns})")
    fill(lake, table, f"""(1, {values}, 1, NULL, '["1"]')""")
    for at, (_, kind, zone, reason) in enumerate(NO_TIMESTAMPS):
        with pytest.raises(ApplyError, match=rf"v{at}\b.*{reason}"):
            alter_live_table(lake, table, f"ALTER TABLE t MODIFY v{at} {kind}", zone)


def test_columns_without_values_get_any_type(lake: Lake) -> None:
    name = altered(
        lake,
        "CREATE TABLE d.t (id BIGINT PRIMARY KEY, a TIMESTAMP, b INT, c JSON, d TIME(3))",
        """(1, NULL, NULL, NULL, NULL, 1, NULL, '["1"]')""",
        "ALTER TABLE t MODIFY a DATETIME, MODIFY b YEAR, MODIFY c DATE, MODIFY d TIME",
    )
    assert [tuple(row) for row in lake.spark.sql(f"SELECT a, b, c, d FROM {name}").collect()] == [(None,) * 4]


CHANGED_WITHOUT_STRICT_MODE = [
    ("INT", "9000000", "MEDIUMINT"),
    ("INT", "300", "TINYINT UNSIGNED"),
    ("BIGINT", "-1L", "BIGINT UNSIGNED"),
    ("DECIMAL(9,2)", "-0.5", "DECIMAL(9,2) UNSIGNED"),
    ("VARBINARY(9)", "x'616263'", "VARBINARY(2)"),
    ("BLOB", "CAST(repeat('a', 256) AS BINARY)", "TINYBLOB"),
    ("INT", "256", "BIT(8)"),
    ("BIGINT", "-1L", "BIT(64)"),
    ("BIT(9)", "256L", "BIT(8)"),
    ("FLOAT(10,2)", "12345.5F", "FLOAT(5,2)"),
    ("INT", "12345", "VARCHAR(4)"),
    ("JSON", "'[1, 2]'", "VARCHAR(5)"),
    ("ENUM('abc')", "'abc'", "CHAR(2)"),
    ("VARCHAR(200)", "repeat('é', 128)", "TINYTEXT"),
    ("VARCHAR(30)", "'2023-02-29'", "DATE"),
    ("VARCHAR(30)", "'2024-01-01 24:00:00'", "DATETIME"),
    ("VARCHAR(30)", "'9999-12-31 23:59:59.5'", "DATETIME"),
    ("DATETIME(1)", "TIMESTAMP_NTZ'9999-12-31 23:59:59.5'", "DATETIME"),
    ("DOUBLE", "1e300D", "BIGINT"),
    ("DOUBLE", "1e300D", "FLOAT"),
]


def test_values_that_tidb_changes_without_strict_mode_block_the_table(lake: Lake) -> None:
    """Each column of one table in turn."""
    columns = ", ".join(f"v{at} {before}" for at, (before, _, _) in enumerate(CHANGED_WITHOUT_STRICT_MODE))
    values = ", ".join(value for _, value, _ in CHANGED_WITHOUT_STRICT_MODE)
    (table,) = tables_from_sql(f"CREATE TABLE d.t (id BIGINT PRIMARY KEY, {columns})")
    fill(lake, table, f"""(1, {values}, 1, NULL, '["1"]')""")
    for at, (before, _, after) in enumerate(CHANGED_WITHOUT_STRICT_MODE):
        with pytest.raises(ApplyError, match=rf"v{at}\b.* cannot be converted from {before.partition('(')[0]}"):
            alter_live_table(lake, table, f"ALTER TABLE t MODIFY v{at} {after}")


# Most protocols tell no digits: `a` is a DATETIME(1), `d` a DATETIME(3), `t` a TIME(3), `n` a DECIMAL(5,2).
DAY = "2024-01-01 10:00:00"
OF_WIRE = {"d": f"TIMESTAMP_NTZ'{DAY}.120'", "t": "'10:00:00.120'", "n": "'1.55'"}
WIRE_TYPES = {"d": "datetime", "t": "time", "n": "decimal"}


def wire_table(*names: str) -> tuple[Table, str]:
    """A table with key (a, b) and columns of these names, known by their first letters; and a row of it."""
    key = (Column(name="a", type="datetime", key=True), Column(name="b", type="int", key=True))
    table = table_from_wire("d", "t", (*key, *(Column(name=name, type=WIRE_TYPES[name[0]]) for name in names)))
    values = "".join(f"{OF_WIRE[name[0]]}, " for name in names)
    return table, f"(TIMESTAMP_NTZ'{DAY}.5', 7, {values}1, NULL, '[\"{DAY}.5\",\"7\"]')"


def test_values_have_digits_that_messages_do_not_show(lake: Lake) -> None:
    expected = {
        "d1 DATETIME": DAY,
        "d2 DATETIME(2)": f"{DAY}.12",
        "d3 DATETIME(6)": f"{DAY}.12",
        "d4 DATE": DAY[:10],
        "t1 TIME(6)": "10:00:00.120000",
        "t2 TIME(3)": "10:00:00.120",
        "t3 VARCHAR(20)": "10:00:00.120",
        "n1 DECIMAL(10,0)": "2",
        "n2 VARCHAR(9)": "1.55",
    }
    names = [column.partition(" ")[0] for column in expected]
    name = altered_table(lake, *wire_table(*names), f"ALTER TABLE t {', '.join(f'MODIFY {c}' for c in expected)}")
    texts = ", ".join(f"CAST({column} AS STRING)" for column in names)
    assert list(lake.spark.sql(f"SELECT {texts} FROM {name}").collect()[0]) == list(expected.values())


@pytest.mark.parametrize(
    ("ddl", "key"), [("MODIFY a DATETIME(6)", (f"{DAY}.500000", "7")), ("ADD PRIMARY KEY (b)", ("7",))]
)
def test_a_key_has_digits_that_messages_do_not_show(lake: Lake, ddl: str, key: tuple[str, ...]) -> None:
    name = altered_table(lake, *wire_table(), f"ALTER TABLE t {ddl}")
    assert [row[0] for row in lake.spark.sql(f"SELECT _ticdc_key FROM {name}").collect()] == [wire_key(*key)]


def test_texts_of_unknown_digits_block_the_table(lake: Lake) -> None:
    table, row = wire_table("d")
    fill(lake, table, row)
    for ddl in ("MODIFY d VARCHAR(30)", "RENAME COLUMN a TO z", "MODIFY b BIGINT"):
        with pytest.raises(ApplyError, match="do not show how many digits"):
            alter_live_table(lake, table, f"ALTER TABLE t {ddl}")


@pytest.mark.parametrize("change", ["t VARCHAR(20)", "n VARCHAR(9)"])
def test_texts_that_debezium_writes_in_its_own_way_block_the_table(lake: Lake, change: str) -> None:
    """It sends a TIME with three digits or six, and a DECIMAL with those that it needs."""
    table, row = wire_table(change[0])
    fill(lake, table, row)
    traits = ProtocolTraits(noncanonical_key_digits=True)
    with pytest.raises(ApplyError, match="do not show how many digits"):
        alter_live_table(lake, table, f"ALTER TABLE t MODIFY {change}", traits=traits)


def test_digits_that_are_not_known_are_shown_as_far_as_they_are_not_0(spark: SparkSession) -> None:
    texts = [stored_text_sql(typed_column(c), "UTC") for c in wire_table("d")[0].columns if c.name == "d"]
    row = f"(SELECT TIMESTAMP_NTZ'{DAY}.120' AS d, CAST(NULL AS MAP<STRING, STRING>) AS {IRREGULAR})"
    assert answers(spark, texts, f"FROM {row}") == [f"{DAY}.12"]
