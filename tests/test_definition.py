"""Tables read from the CREATE TABLE texts that TiDB prints."""

from __future__ import annotations

import re

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column
from ticdc_lakehouse.schema.definition import table_from_json, table_from_wire, table_to_json
from ticdc_lakehouse.schema.script import tables_from_sql

WHOLE = """
CREATE DATABASE shop;
USE `shop`;
SET NAMES utf8mb4;
CREATE TABLE IF NOT EXISTS `orders` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT COMMENT 'a, (b) ''PRIMARY KEY''',
  `key` varchar(20) CHARACTER SET gbk COLLATE gbk_chinese_ci NOT NULL DEFAULT 'x',
  `kind` enum('a','b,c','d''e') DEFAULT NULL,
  `amount` decimal(12,2) NOT NULL DEFAULT '0',
  `at` timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `twice` int(11) GENERATED ALWAYS AS (`id` * 2) VIRTUAL,
  `kept` int(11) GENERATED ALWAYS AS (length(`key`)) STORED,
  PRIMARY KEY (`id`,`key`(10)) /*T![clustered_index] CLUSTERED */,
  UNIQUE KEY `u` (`key`),
  KEY `k` (`kind`,`amount`),
  CONSTRAINT `c` CHECK (`amount` > 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin PARTITION BY HASH (`id`) PARTITIONS 4;
"""


def test_create_table_is_read_with_all_its_columns() -> None:
    (table,) = tables_from_sql(WHOLE)
    assert (table.database, table.table, table.key) == ("shop", "orders", ("id", "key"))
    assert [(c.name, c.type.text, c.nullable, c.virtual) for c in table.columns] == [
        ("id", "bigint(20) unsigned", False, False),
        ("key", "varchar(20)", False, False),
        ("kind", "enum('a','b,c','d''e')", True, False),
        ("amount", "decimal(12,2)", False, False),
        ("at", "timestamp(3)", True, False),
        ("twice", "int(11)", True, True),
        ("kept", "int(11)", True, False),
    ]
    assert [c.name for c in table.sent] == ["id", "key", "kind", "amount", "at", "kept"]
    assert table_from_json(table_to_json(table)) == table


@pytest.mark.parametrize(
    ("entries", "key"),
    [
        ("a INT PRIMARY KEY, b INT", ("a",)),
        ("a INT, b INT, PRIMARY KEY (b, a)", ("b", "a")),
        ("a INT NOT NULL UNIQUE, b INT", ("a",)),
        ("a INT UNIQUE, b INT", ()),
        ("a INT, b INT NOT NULL, UNIQUE (b)", ("b",)),
        ("a INT, b INT NOT NULL, UNIQUE KEY (a, b)", ()),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE INDEX x (b), UNIQUE INDEX y (a)", ("b",)),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE (a), CONSTRAINT p PRIMARY KEY (b)", ("b",)),
        ("A INT NOT NULL, b INT, UNIQUE (a)", ("A",)),
        ("a INT NOT NULL, KEY (a)", ()),
    ],
)
def test_handle_key_is_the_primary_or_a_unique_key(entries: str, key: tuple[str, ...]) -> None:
    assert tables_from_sql(f"CREATE TABLE d.t ({entries})")[0].key == key


@pytest.mark.parametrize("name", ["primary", "key", "a b", "a.b", "a`b", "größe", "unsigned", "(", ","])
def test_quoted_names_may_have_any_characters(name: str) -> None:
    quoted = name.replace("`", "``")
    (table,) = tables_from_sql(
        f"CREATE TABLE `{quoted}`.`{quoted}` (`{quoted}` INT UNSIGNED, PRIMARY KEY (`{quoted}`))"
    )
    assert (table.database, table.table, table.key) == (name, name, (name,))
    assert [(c.name, c.type.text) for c in table.columns] == [(name, "INT UNSIGNED")]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("CREATE TABLE t (a INT)", "with its database"),
        ("USE d;\nDROP TABLE t", "x.sql, line 2: expected CREATE TABLE or USE, found 'DROP'"),
        ("CREATE TABLE d.t", "expected (, found the end"),
        ("CREATE TABLE d.t (a)", "x.sql, line 1: expected a column name and its type, found the end"),
        ("USE `d", "x.sql, line 1: expected SQL"),
    ],
)
def test_a_mistake_names_file_line_and_what_was_expected(text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(mistake)):
        tables_from_sql(text, source="x.sql")


def test_table_is_defined_by_the_columns_of_its_rows() -> None:
    columns = (Column(name="a", type="int", key=True), Column(name="b", type="enum", by="index"))
    table = table_from_wire("d", "t", columns)
    assert (table.key, [(c.name, c.type.text, c.by) for c in table.columns]) == (
        ("a",),
        [("a", "int", None), ("b", "enum", "index")],
    )


@pytest.mark.parametrize(
    ("others", "sized"), [("int", False), ("int(11)", True), ("bit(1)", False), ("datetime(6)", False)]
)
def test_digits_that_messages_do_not_show(others: str, sized: bool) -> None:
    """A protocol that tells sizes tells that a DATETIME has none. Debezium tells those of BIT, and calls a DATETIME(4)
    ``datetime(6)``."""
    columns = tuple(Column(name=kind, type=kind) for kind in (others, "datetime", "varchar"))
    table = table_from_wire("d", "t", columns)
    assert [column.sized for column in table.columns] == [others != "datetime(6)", sized, True]
    assert table_from_json(table_to_json(table)) == table
