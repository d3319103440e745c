"""What a DDL text is about."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.ddl.script import tables_from_sql
from ticdc_lakehouse.definition import Table
from ticdc_lakehouse.lake.ddl import CreateDatabase, CreateTable, Statement, Unfollowed, read_ddl
from ticdc_lakehouse.lake.state import TableName
from ticdc_lakehouse.lake.window import DdlEvent

MODEL = tables_from_sql("CREATE TABLE m.model (id INT PRIMARY KEY)")[0]


def known(name: TableName) -> Table | None:
    return MODEL if name == ("m", "model") else None


def read(query: str, table: str | None = "t") -> Statement:
    return read_ddl(DdlEvent(commit_ts=1, database="d", table=table, query=query), known)


def stops(*tables: TableName) -> Unfollowed:
    return Unfollowed(tables=tables, database=None)


T = ("d", "t")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("TRUNCATE TABLE t", stops(T)),
        ("DROP TABLE `d`.`t`", stops(T)),
        ("ALTER TABLE t ADD COLUMN `rename` INT", stops(T)),
        ("ALTER TABLE t RENAME COLUMN a TO b", stops(T)),
        ("ALTER TABLE t RENAME INDEX a TO b", stops(T)),
        ("ALTER TABLE t RENAME TO u", stops(T, ("d", "u"))),
        ("ALTER TABLE t RENAME AS e.u", stops(T, ("e", "u"))),
        ("ALTER TABLE `t` RENAME `e`.`u`", stops(T, ("e", "u"))),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", stops(T, ("d", "u"))),
        ("alter table t exchange partition p0 with table `e`.`u` without validation", stops(T, ("e", "u"))),
        ("RENAME TABLE `d`.`t` TO `d`.`u`", stops(T, ("d", "u"))),
        ("RENAME TABLE a TO tmp, b TO a, tmp TO b", stops(T, ("d", "a"), ("d", "tmp"), ("d", "b"))),
        ("CREATE VIEW t AS SELECT 1", stops(T)),
        ("CREATE TABLE t LIKE nobody", stops(T)),
        ("CREATE TABLE t (a INT", stops(T)),
        ("not 'SQL", stops(T)),
        ("", stops(T)),
    ],
)
def test_names_of_the_tables_that_stop(query: str, expected: Unfollowed) -> None:
    assert read(query) == expected


@pytest.mark.parametrize("query", ["CREATE DATABASE d", "create schema `d`", "CREATE DATABASE IF NOT EXISTS d"])
def test_create_database(query: str) -> None:
    assert read(query, None) == CreateDatabase()


@pytest.mark.parametrize("query", ["DROP DATABASE d", "ALTER DATABASE d CHARSET utf8mb4", "nonsense"])
def test_other_ddl_of_a_database(query: str) -> None:
    assert read(query, None) == Unfollowed(tables=(), database="d")


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS `t` (id INT PRIMARY KEY) /*T![ttl] TTL=`x` + INTERVAL 1 DAY */",
        "CREATE TABLE `d`.`t` (id INT PRIMARY KEY)",
        "CREATE TABLE t LIKE m.model",
        "CREATE TABLE `t` LIKE `m`.`model`",
    ],
)
def test_create_table(query: str) -> None:
    made = read(query)
    assert isinstance(made, CreateTable)
    assert (made.table.database, made.table.table) == T
    assert [(c.name, c.type.name) for c in made.table.columns] == [("id", "int")]
    assert made.table.key == ("id",)
