"""What ADD COLUMN says of a column and of the rows that were there before it."""

from __future__ import annotations

import pytest
from known_defaults import DEFAULTS

from ticdc_codec.errors import ConfigError
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


@pytest.mark.parametrize(("text", "value"), DEFAULTS)
def test_literals_become_what_rows_have(text: str, value: str | None) -> None:
    action = add(f"c {text}")
    assert (action.default, action.computed) == (Default(value=value), None)


@pytest.mark.parametrize("text", ["1e", "-1.5e+", ".1.2", "0x_1"])
def test_digits_that_are_no_number_are_not_understood(text: str) -> None:
    """The tokenizer takes them for one."""
    (statement,) = read_ddl(f"ALTER TABLE t ADD COLUMN c INT DEFAULT {text}", "d", "t")
    assert isinstance(statement, Unread)
    with pytest.raises(ConfigError, match="line 1: expected"):
        tables_from_sql(f"CREATE TABLE d.t (c INT DEFAULT {text})")
    (bounded,) = read_ddl(f"ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN ({text}))", "d", "t")
    assert isinstance(bounded, AlterTable)


@pytest.mark.parametrize("kind", ["TEXT", "MEDIUMTEXT", "BLOB", "TINYBLOB", "VARBINARY(9)", "VARCHAR(9)"])
def test_an_empty_default_is_an_empty_value(kind: str) -> None:
    """TiDB lets a TEXT and a BLOB have it in a session without strict mode."""
    assert add(f"c {kind} DEFAULT ''").default == Default(value="")


@pytest.mark.parametrize(
    "text",
    [
        "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
        "TIMESTAMP DEFAULT NOW()",
        "VARCHAR(36) DEFAULT (UUID()) NOT NULL",
        "BIGINT DEFAULT NEXT VALUE FOR s",
        "INT DEFAULT (1 + 1)",
        "INT DEFAULT 'abc'",
        "INT DEFAULT 1e999999999",
        "VARCHAR(9) DEFAULT 1e99999999",
        "DOUBLE DEFAULT 1e400",
        "DOUBLE DEFAULT 1e99999999999999999999999",
        "FLOAT DEFAULT 1e39",
        "FLOAT(10,2) DEFAULT 1.545",
        "DECIMAL(5,2) DEFAULT 'NaN'",
        "DECIMAL(65,400) DEFAULT 1",
        "DATETIME DEFAULT '20-1-2'",
        "DATETIME DEFAULT 101112",
        "DATE DEFAULT x'323032302d30312d3032'",
        "TIME DEFAULT 0x0b",
        "YEAR DEFAULT b'110010'",
        "VARCHAR(9) DEFAULT 0xC3A9",  # é in utf8mb4, another in gbk: which one the column has is the table's matter
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
        # Beyond the type's range: only sessions without strict mode may give them, and rows have another value.
        "TINYINT DEFAULT '11111111'",
        "TINYINT UNSIGNED DEFAULT 300",
        "INT UNSIGNED DEFAULT '-1'",
        "MEDIUMINT DEFAULT 9000000",
        "BIT(4) DEFAULT 255",
        "DECIMAL(5,2) DEFAULT 99999",
        "DECIMAL(5,2) DEFAULT 999.995",
        "DECIMAL(5,2) UNSIGNED DEFAULT -1",
        "DOUBLE UNSIGNED DEFAULT -1",
        "FLOAT(4,1) DEFAULT 12345",
        "YEAR DEFAULT 1800",
        "INT DEFAULT '1_000'",
        "INT DEFAULT '\uff11\uff12'",
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
        ("c DECIMAL(10,2) /* of (2) */ UNSIGNED", "DECIMAL(10,2) UNSIGNED", True, False, None),
        ("c INT -- was (5)\n UNSIGNED /* # */ ZEROFILL NULL", "INT UNSIGNED ZEROFILL", True, False, None),
        ("c DATETIME /* since (6) */ (3)", "DATETIME (3)", True, False, None),
        ("c INT REFERENCES u (a) ON DELETE SET NULL ON UPDATE CASCADE", "INT", True, False, None),
        ("c INT REFERENCES `u` MATCH FULL ON UPDATE SET NULL", "INT", True, False, None),
        ("c INT CONSTRAINT `positive` CHECK (c > 0) NULL", "INT", True, False, None),
        ("c INT CONSTRAINT CHECK (c > 0) NOT NULL", "INT", False, False, None),
        ("c BIGINT NOT NULL /*T![auto_rand] AUTO_RANDOM(5, 32) */", "BIGINT", False, False, None),
        ("c BIGINT /*T![auto_rand] AUTO_RANDOM */ NOT NULL", "BIGINT", False, False, None),
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


@pytest.mark.parametrize(
    "before",
    [
        "`TABLE` INT, ADD COLUMN `e`",
        "`v` VARCHAR(9) DEFAULT _UTF8MB4'TABLE', ADD COLUMN `e`",
        "`v` INT COMMENT 'TABLE', ADD COLUMN `e`",
    ],
)
def test_the_word_table_that_is_no_keyword_does_not_make_a_text_hand_written(before: str) -> None:
    (statement,) = read_ddl(rf"ALTER TABLE `t` ADD COLUMN {before} ENUM('VIEW','TABLE','a\b')", "d", "t")
    assert isinstance(statement, AlterTable)
    *_, added = statement.actions
    assert isinstance(added, AddColumn)
    assert added.column.type.elements == ("VIEW", "TABLE", "a\\b")


def test_a_column_that_is_called_table_does_not_make_a_text_hand_written() -> None:
    (statement,) = read_ddl(r"ALTER TABLE `t` ADD COLUMN `TABLE` ENUM('a\b','c')", "d", "t")
    assert isinstance(statement, AlterTable)
    (added,) = statement.actions
    assert isinstance(added, AddColumn)
    assert added.column.type.elements == ("a\\b", "c")
