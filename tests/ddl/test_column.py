"""What ADD COLUMN says of a column and of the rows that were there before it."""

from __future__ import annotations

import pytest

from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.literal import zero
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.schema.statement import AddColumn, AlterTable, CreateTable, Default, Position, Unread


def add(text: str) -> AddColumn:
    (statement,) = read_ddl(f"ALTER TABLE t ADD COLUMN {text}", "d", "t")
    assert isinstance(statement, AlterTable), statement
    action = statement.actions[0]
    assert isinstance(action, AddColumn)
    return action


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INT DEFAULT NULL", None),
        ("INT DEFAULT -5", "-5"),
        ("INT DEFAULT '012'", "12"),
        ("INT DEFAULT (7)", "7"),
        ("INT DEFAULT 1e3", "1000"),
        ("TINYINT(1) DEFAULT TRUE", "1"),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", "18446744073709551615"),
        ("INT DEFAULT 0x1F", "31"),
        ("BIT(8) DEFAULT b'101'", "5"),
        ("BIT(16) DEFAULT 258", "258"),
        ("BIT(16) DEFAULT 'a'", "97"),
        ("DECIMAL(12,4) DEFAULT -809.38", "-809.3800"),
        ("DECIMAL(38,18) DEFAULT '12345678901.5'", "12345678901.500000000000000000"),
        (f"DECIMAL(65,30) DEFAULT -{'9' * 35}.{'9' * 30}", f"-{'9' * 35}.{'9' * 30}"),
        ("DECIMAL DEFAULT 1.5", "2"),
        ("DECIMAL(5,2) DEFAULT '-0.001'", "0.00"),
        ("DOUBLE DEFAULT 1122.3403", "1122.3403"),
        ("DOUBLE DEFAULT 1e21", "1e+21"),
        ("DOUBLE DEFAULT 100000000000000000000", "100000000000000000000"),
        ("DOUBLE DEFAULT 0.0000001", "1e-07"),
        ("DOUBLE DEFAULT -0.0", "0"),
        ("FLOAT DEFAULT 3.1400001", "3.14"),
        ("FLOAT(7,1) DEFAULT 3.1", "3.1"),
        ("YEAR DEFAULT 2024", "2024"),
        ("YEAR DEFAULT '69'", "2069"),
        ("YEAR DEFAULT 70", "1970"),
        ("YEAR DEFAULT 0", "2000"),  # of old rows; an INSERT of 0 gives 0000: measured on TiDB v8.5.6
        ("YEAR DEFAULT '0000'", "0000"),
        ("DATE DEFAULT _UTF8MB4'2020-12-31 00:00:00.0'", "2020-12-31"),
        ("VARCHAR(2) DEFAULT _UTF8MB4'ab   '", "ab"),
        ("VARCHAR(9) DEFAULT -0.0", "0.0"),
        ("VARBINARY(9) DEFAULT -0", "30"),
        ("TIME DEFAULT _UTF8MB4'012:00:00'", "12:00:00"),
        ("TIME DEFAULT _UTF8MB4'000:00:00'", "00:00:00"),
        ("DATE DEFAULT _UTF8MB4'2019-12-31'", "2019-12-31"),
        ("DATETIME DEFAULT '2020-1-2'", "2020-01-02 00:00:00"),
        ("DATETIME(3) DEFAULT '2020-01-02 03:04:05.67'", "2020-01-02 03:04:05.670"),
        ("DATETIME DEFAULT '2020-01-02 03:04:05.000'", "2020-01-02 03:04:05"),
        ("TIMESTAMP(1) DEFAULT '0000-00-00 00:00:00'", "0000-00-00 00:00:00.0"),
        ("TIME(2) DEFAULT '-8:01:02'", "-08:01:02.00"),
        # Rounded: measured on TiDB v8.5.6, as are the two texts of bytes, and the numbers of ENUM and SET.
        ("DATETIME(3) DEFAULT '2020-01-02 03:04:05.678999'", "2020-01-02 03:04:05.679"),
        ("DATETIME(3) DEFAULT '2020-01-02 23:59:59.9996'", "2020-01-03 00:00:00.000"),
        ("DATETIME(1) DEFAULT '2020-01-02 03:04:05.1499'", "2020-01-02 03:04:05.1"),
        ("DATETIME DEFAULT '2020-12-31 23:59:59.5'", "2021-01-01 00:00:00"),
        ("DATE DEFAULT '2020-01-02 23:59:59.9'", "2020-01-03"),
        ("TIME(3) DEFAULT '-12:34:56.7894'", "-12:34:56.789"),
        ("TIME(1) DEFAULT '99:59:59.95'", "100:00:00.0"),
        ("TIME(2) DEFAULT '-00:00:00.001'", "00:00:00.00"),
        ("TIME(2) DEFAULT '-00:00:00.005'", "-00:00:00.01"),
        ("VARBINARY(20) DEFAULT x'eda08041'", "efbfbdefbfbdefbfbd41"),
        ("VARBINARY(3) DEFAULT x'00ff'", "00efbf"),
        ("BINARY(4) DEFAULT 0xFF", "efbfbd00"),
        ("BINARY(3) DEFAULT x'00ff'", "00efbf"),
        ("ENUM('2','r') DEFAULT 2", "r"),
        ("SET('x','y','z') DEFAULT 5", "x,z"),
        ("TIME(1) DEFAULT '-00:00:00'", "00:00:00.0"),
        ("VARCHAR(9) DEFAULT _UTF8MB4' \\\\-😀%'''", " \\-😀%'"),
        ("VARCHAR(9) DEFAULT '\\n\\%\\_\\x' 'y'", "\n\\%\\_xy"),
        ("""VARCHAR(9) DEFAULT "a""b''\"""", """a"b''"""),
        ('VARCHAR(9) DEFAULT _UTF8MB4\'{"a":""}\'', '{"a":""}'),
        ("VARCHAR(9) DEFAULT 1.50", "1.50"),
        ("VARCHAR(9) DEFAULT 0x4142", "AB"),
        ("CHAR(9) DEFAULT 'a '", "a"),
        ("VARBINARY(9) DEFAULT _UTF8MB4'b1'", "6231"),
        ("VARCHAR(9) DEFAULT 'b1' COLLATE binary", "6231"),
        ("BINARY(4) DEFAULT 0x7F", "7f000000"),
        ("VARCHAR(4) CHARACTER SET binary DEFAULT 'a'", "61"),
        ("ENUM('x','Y') DEFAULT _UTF8MB4'y'", "Y"),
        ("ENUM('a','A','') DEFAULT 'a'", "a"),
        ("ENUM('a','A','') DEFAULT ''", ""),
        ("SET('A','a','B') DEFAULT 'b,a'", "a,B"),
        ("SET('p','q','r') DEFAULT 'r,p'", "p,r"),
        ("SET('p','q','r') DEFAULT ''", ""),
        ("JSON DEFAULT NULL", None),
    ],
)
def test_literals_become_what_rows_have(text: str, value: str | None) -> None:
    action = add(f"c {text}")
    assert (action.default, action.computed) == (Default(value=value), None)


@pytest.mark.parametrize(
    "text",
    [
        "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
        "TIMESTAMP DEFAULT NOW()",
        "VARCHAR(36) DEFAULT (UUID()) NOT NULL",
        "BIGINT DEFAULT NEXT VALUE FOR s",
        "INT DEFAULT (1 + 1)",
        "INT DEFAULT 1.5",
        "INT DEFAULT 'abc'",
        "INT DEFAULT 1e999999999",
        "VARCHAR(9) DEFAULT 1e99999999",
        "DOUBLE DEFAULT 1e400",
        "FLOAT DEFAULT 1e39",
        "FLOAT(10,2) DEFAULT 1.545",
        "DECIMAL(5,2) DEFAULT 'NaN'",
        "DATETIME DEFAULT 20200102",
        "TIMESTAMP DEFAULT '2020-01-02 03:04:05'",
        "TIME DEFAULT '1 2'",
        "TIME DEFAULT '838:59:59.5'",
        "DATETIME DEFAULT '9999-12-31 23:59:59.5'",
        "DATETIME DEFAULT '2020-00-00 00:00:00.6'",
        "YEAR DEFAULT 'x'",
        "ENUM('x') DEFAULT 'z'",
        "ENUM('x') DEFAULT 2",
        "ENUM('x') DEFAULT 0",
        "SET('x') DEFAULT 2",
        "SET('x') DEFAULT 'x,z'",
        "JSON DEFAULT '{}'",
        "VARCHAR(9) DEFAULT 0xFF",
        "VARCHAR(9) CHARACTER SET GBK DEFAULT x'c4a3'",
        "INT AS (a + 1) STORED",
    ],
)
def test_what_the_text_does_not_tell(text: str) -> None:
    action = add(f"c {text}")
    assert action.default is None
    assert action.computed


@pytest.mark.parametrize(
    ("text", "type_text", "nullable", "virtual", "position"),
    [
        ("`a b` BIGINT UNSIGNED", "BIGINT UNSIGNED", True, False, None),
        ("c DOUBLE PRECISION NOT NULL FIRST", "DOUBLE PRECISION", False, False, Position(after=None)),
        ("c ENUM('a,b','c''d') CHARACTER SET gbk COLLATE x AFTER `first`", "ENUM('a,b','c''d')", True, False, "first"),
        ("c INT COMMENT 'NOT NULL' NULL VISIBLE", "INT", True, False, None),
        ("c INT AS (`x` + 1)", "INT", True, True, None),
        ("c INT GENERATED ALWAYS AS (f(',')) VIRTUAL NOT NULL", "INT", False, True, None),
        ("IF NOT EXISTS c DECIMAL ( 10 , 2 ) CHECK (c > 0) NOT ENFORCED", "DECIMAL ( 10 , 2 )", True, False, None),
        ("c INT REFERENCES u (a) ON DELETE SET NULL ON UPDATE CASCADE", "INT", True, False, None),
        ("c BIGINT NOT NULL /*T![auto_rand] AUTO_RANDOM(5, 32) */", "BIGINT", False, False, None),
        ("c TEXT CHARACTER SET binary", "blob", True, False, None),
        ("c VARCHAR(4) COLLATE binary", "varbinary(4)", True, False, None),
        ("c VARCHAR(4) COLLATE utf8mb4_bin", "VARCHAR(4)", True, False, None),
    ],
)
def test_attributes_of_an_added_column_are_read(
    text: str, type_text: str, nullable: bool, virtual: bool, position: Position | str | None
) -> None:
    action = add(text)
    column = action.column
    assert (column.type.text, column.nullable, column.virtual) == (type_text, nullable, virtual)
    assert action.position == (Position(after=position) if isinstance(position, str) else position)
    assert action.lenient is text.startswith("IF")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "0"),
        ("decimal(10,2)", "0.00"),
        ("double", "0"),
        ("bit(8)", "0"),
        ("year", "0000"),
        ("date", "0000-00-00"),
        ("datetime(3)", "0000-00-00 00:00:00.000"),
        ("timestamp", "0000-00-00 00:00:00"),
        ("time(1)", "00:00:00.0"),
        ("text", ""),
        ("binary(3)", "000000"),
        ("varbinary(3)", ""),
        ("enum('b','a')", "b"),
        ("set('b')", ""),
        ("json", "null"),
    ],
)
def test_each_type_has_its_zero_value(kind: str, value: str) -> None:
    assert zero(parse_type(kind)) == value


def test_several_columns_and_keys_are_added_in_brackets() -> None:
    (statement,) = read_ddl("ALTER TABLE t ADD COLUMN (a INT, b TEXT, KEY (a), UNIQUE u (b(3)))", "d", "t")
    assert isinstance(statement, AlterTable)
    assert [type(action).__name__ for action in statement.actions] == ["AddColumn", "AddColumn", "AddKey", "AddKey"]


def test_backslashes_are_those_that_tidb_writes() -> None:
    """Its parser doubles quotes, and backslashes in DEFAULTs alone; what people write (schema_file) has escapes."""
    written = r"CREATE TABLE d.t (e ENUM('a\b','it''s') DEFAULT 'a\\b' COMMENT 'C:\', s SET('x\','y')) COMMENT = 'z\'"
    (created,) = read_ddl(written, None, None)
    assert isinstance(created, CreateTable)
    assert [c.type.elements for c in created.table.columns] == [("a\\b", "it's"), ("x\\", "y")]
    (added,) = read_ddl(r"ALTER TABLE d.t ADD UNIQUE u (a) COMMENT 'x\', ADD COLUMN b CHAR(3) DEFAULT '\\'", None, None)
    assert isinstance(added, AlterTable)
    _, column = added.actions
    assert isinstance(column, AddColumn)
    assert column.default == Default(value="\\")
    by_hand = r"CREATE TABLE d.t (e ENUM('a\\b','it\'s') COMMENT 'it\'s')"
    for table in (tables_from_sql(by_hand)[0], create_of(by_hand)):
        assert table.columns[0].type.elements == ("a\\b", "it's")


def test_names_of_an_enum_in_any_quotes() -> None:
    table = create_of("""CREATE TABLE d.t (a ENUM("x","it's",'a  ','b""c'), b SET('p', "q'',r") NOT NULL)""")
    assert [c.type.elements for c in table.columns] == [("x", "it's", "a", 'b""c'), ("p", "q'',r")]


@pytest.mark.parametrize(
    "kind",
    ["SERIAL", "INT8", "FLOAT8", "NVARCHAR(9)", "GEOMETRY", "ENUM(0x61,'b')", "SET(b'1')", "ENUM('a' 'b')", "'x'", "("],
)
def test_types_that_are_not_known(kind: str) -> None:
    for query in (f"CREATE TABLE t (id INT, a {kind})", f"ALTER TABLE t MODIFY a {kind}"):
        (unread,) = read_ddl(query, "d", "t")
        assert isinstance(unread, Unread), unread


def create_of(query: str) -> Table:
    (created,) = read_ddl(query, None, None)
    assert isinstance(created, CreateTable)
    return created.table


def test_float_of_so_many_bits_is_float_or_double() -> None:
    """TiDB's parser makes it so, and no size is left."""
    table = create_of("CREATE TABLE d.t (a FLOAT(24), b float (25) unsigned, c FLOAT(53), d FLOAT(7,3))")
    assert [c.type.text for c in table.columns] == ["float", "double unsigned", "double", "FLOAT(7,3)"]


def test_a_type_without_size_has_the_usual_one() -> None:
    types = (
        "a DECIMAL, b NUMERIC UNSIGNED, c BINARY, e BIT, f DECIMAL(5), g DECIMAL(0,0) UNSIGNED, h DEC (0), i CHAR(0)"
    )
    columns = create_of(f"CREATE TABLE d.t ({types})").columns
    assert [(c.type.text, c.type.size) for c in columns] == [
        ("DECIMAL(10,0)", (10, 0)),
        ("NUMERIC(10,0) UNSIGNED", (10, 0)),
        ("BINARY(1)", (1,)),
        ("BIT(1)", (1,)),
        ("DECIMAL(5)", (5,)),
        ("DECIMAL(10,0) UNSIGNED", (10, 0)),
        ("DEC(10,0)", (10, 0)),
        ("CHAR(0)", (0,)),
    ]


def test_a_key_is_spelled_as_its_columns() -> None:
    assert create_of("CREATE TABLE `d`.`t` (`id` BIGINT, `v` VARCHAR(9), PRIMARY KEY(`ID`))").key == ("id",)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BLOB(255)", "tinyblob"),
        ("BLOB(256)", "blob"),
        ("BLOB(65536)", "mediumblob"),
        ("BLOB(16777216)", "longblob"),
        ("TEXT(63)", "tinytext"),
        ("TEXT(64)", "text"),
        ("TEXT(85) CHARACTER SET utf8", "tinytext"),
        ("TEXT(255) COLLATE latin1_bin", "tinytext"),
        ("TEXT(255) CHARSET binary", "tinyblob"),
        ("TEXT(16384)", "mediumtext"),
        ("TEXT", "TEXT"),
        ("TINYTEXT", "TINYTEXT"),
    ],
)
def test_text_or_blob_becomes_the_smallest_type_for_its_length(text: str, kind: str) -> None:
    """What TiDB's adjustBlobTypesFlen does: lengths of texts are characters."""
    assert add(f"c {text} NOT NULL").column.type.text == kind


def test_a_column_that_is_called_table_does_not_make_a_text_hand_written() -> None:
    (statement,) = read_ddl(r"ALTER TABLE `t` ADD COLUMN `TABLE` ENUM('a\b','c')", "d", "t")
    assert isinstance(statement, AlterTable)
    (added,) = statement.actions
    assert isinstance(added, AddColumn)
    assert added.column.type.elements == ("a\\b", "c")
