"""Scripts of CREATE TABLE statements, as people and dump programs write them."""

from __future__ import annotations

import re

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.schema.script import tables_from_sql

DUMPLING = """/*!40014 SET FOREIGN_KEY_CHECKS=0*/;
/*!40101 SET NAMES binary*/;
CREATE TABLE `orders` (
  `id` bigint NOT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
"""
SEMICOLON = ";\n"
DUMPLING_VIEW = """DROP TABLE IF EXISTS `paid`;
DROP VIEW IF EXISTS `paid`;
CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `paid` (`id`) AS SELECT `id` FROM `orders`;
"""
MYSQLDUMP = """-- MySQL dump 10.13
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (`id` bigint NOT NULL, PRIMARY KEY (`id`));
LOCK TABLES `orders` WRITE;
UNLOCK TABLES;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`%` SQL SECURITY DEFINER */
/*!50001 VIEW `paid` AS SELECT `id` FROM `orders` */;
"""


def names(text: str) -> list[tuple[str, str]]:
    return [(table.database, table.table) for table in tables_from_sql(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"USE shop;\n{DUMPLING}",
        f"USE shop;\n{DUMPLING}{DUMPLING_VIEW}",
        MYSQLDUMP,
        f"CREATE VIEW shop.v AS SELECT 1; USE shop; {DUMPLING}",
        f"CREATE OR REPLACE VIEW shop.v AS SELECT 1; USE shop; {DUMPLING}",
        f"CREATE SEQUENCE shop.s; USE shop; {DUMPLING}",
        f"USE shop;\n{DUMPLING.removesuffix(SEMICOLON)} /*T![region_split] SPLIT BETWEEN (0) AND (10) REGIONS 2 */;",
        "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, v VECTOR<FLOAT>(3)) SPLIT PRIMARY KEY BY (1), (2)"
        " SPLIT INDEX i BETWEEN (1) AND (2) REGIONS 3 PARTITION BY HASH (id) PARTITIONS 4",
        f"USE shop;\nCREATE GLOBAL TEMPORARY TABLE `g` (\n  `a` int\n) ON COMMIT DELETE ROWS;\n{DUMPLING}",
    ],
)
def test_what_dumps_write_around_tables_is_passed_over(text: str) -> None:
    assert names(text) == [("shop", "orders")]


def test_a_file_of_dumpling_alone_names_no_database() -> None:
    with pytest.raises(ConfigError, match=re.escape("line 3: expected a table name with its database")):
        tables_from_sql(DUMPLING)


def test_a_table_defined_twice_must_be_the_same() -> None:
    first = "CREATE TABLE d.t (a INT);\nCREATE TABLE d.u (a INT);\n"
    assert names(f"{first}CREATE TABLE d.t (a INT);") == [("d", "t"), ("d", "u")]
    with pytest.raises(ConfigError) as caught:
        tables_from_sql(f"{first}CREATE TABLE D.T (\n  b INT\n);", source="x.sql")
    assert str(caught.value) == "x.sql, line 3: expected one table D.T, found another, with other columns or keys"


def test_a_column_that_stands_twice_is_a_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        tables_from_sql("USE d;\nCREATE TABLE t (\n  a INT PRIMARY KEY,\n  A TEXT\n);", source="x.sql")
    assert str(caught.value) == "x.sql, line 2: expected each column of d.t once, found A again"


def test_a_table_that_was_dropped_may_come_again() -> None:
    again = "CREATE TABLE d.t (a INT);\nDROP TABLE IF EXISTS D.T, d.u;\nCREATE TABLE d.t (b INT);"
    (table,) = tables_from_sql(again)
    assert [column.name for column in table.columns] == ["b"]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE d.t",
        "INSERT INTO d.t VALUES (1)",
        "CREATE TEMPORARY TABLE d.t (a INT)",
        "CREATE TABLE d.t LIKE d.u",
    ],
)
def test_any_other_statement_is_a_mistake(statement: str) -> None:
    with pytest.raises(ConfigError, match="SQL, line 1: expected CREATE TABLE"):
        tables_from_sql(statement)


@pytest.mark.parametrize(
    ("statement", "found"),
    [("CREATE TABEL d.t (a INT)", "CREATE TABEL"), ("create index i on d.t (a)", "create index")],
)
def test_a_statement_that_only_begins_like_create_table_is_quoted(statement: str, found: str) -> None:
    with pytest.raises(ConfigError, match=f"line 1: expected CREATE TABLE, found '{found}'"):
        tables_from_sql(statement)


SHOWN = r"""CREATE TABLE `t` (
  `id` int NOT NULL COMMENT 'c\\d\n''e',
  `e` enum('a\b','q''x','it\\s') DEFAULT 'a\\b',
  `s` set('k\','m') DEFAULT NULL
);"""


def test_a_backslash_in_an_enum_is_as_show_create_table_prints_it() -> None:
    """It doubles them in comments and DEFAULTs alone: a real TiDB v8.5.6 printed such a table."""
    (table,) = tables_from_sql(f"USE d;\n{SHOWN}")
    assert [column.type.elements for column in table.columns[1:]] == [("a\\b", "q'x", r"it\\s"), ("k\\", "m")]


@pytest.mark.parametrize(
    "beside", ["use d;", r"use d; create table u (e enum('it\'s;', 'a\\b'));", "use d; create table u (a INT);"]
)
def test_a_statement_is_read_as_its_own_author_wrote_it(beside: str) -> None:
    """A printed one beside one of people, in either order."""
    alone = {table.table: table for table in tables_from_sql(f"USE d;\n{SHOWN}") + tables_from_sql(beside)}
    for script in (f"{beside}\n{SHOWN}", f"USE d;\n{SHOWN}\n{beside}"):
        assert {table.table: table for table in tables_from_sql(script)} == alone
    for table in alone.values():
        assert table.table != "u" or table.columns[0].type.elements in ((), ("it's;", "a\\b"))


def test_the_line_of_a_mistake_is_that_of_the_script() -> None:
    with pytest.raises(ConfigError, match=r"line 8: expected CREATE TABLE or USE, found 'INSERT'"):
        tables_from_sql(f"use d;\n{SHOWN}\n\nINSERT INTO t VALUES ('\\\\');")


def test_a_name_that_show_create_table_prints_as_another_is_refused() -> None:
    printed = "USE d;\nCREATE TABLE `t` (\n  `e` enum('a','n" + r"\n" + "')\n);"
    with pytest.raises(ConfigError, match=r"line 3: expected names in ENUM and SET that TiDB prints clearly"):
        tables_from_sql(printed)
    for written, name in [(r'"n\n"', "n\n"), (r'"n\\n"', r"n\n")]:
        (table,) = tables_from_sql(printed.replace(r"'n\n'", written))
        assert table.columns[0].type.elements == ("a", name)


def test_a_script_with_escaped_quotes_is_of_people_in_spite_of_its_backquotes() -> None:
    (table,) = tables_from_sql(r"CREATE TABLE `d`.`t` (`e` ENUM('it\'s', 'a\\b'))")
    assert table.columns[0].type.elements == ("it's", "a\\b")
