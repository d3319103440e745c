"""Which tables a statement names: those that get a name from it, and those that one which cannot be read may touch."""

from __future__ import annotations

import pytest
from one_statement import T, read

from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import Unread, given_names, is_of_all_tables, may_give_name


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("CREATE TABLE t (a INT)", [T]),
        ("CREATE TABLE t LIKE u", [T]),
        ("RECOVER TABLE t", [T]),
        ("FLASHBACK TABLE t TO u", [("d", "u")]),
        ("RENAME TABLE t TO u, x TO t", [("d", "u"), T]),
        ("ALTER TABLE t RENAME u", [("d", "u")]),
        ("ALTER TABLE t ADD COLUMN a INT", []),
        ("DROP TABLE t", []),
        ("TRUNCATE t", []),
    ],
)
def test_names_that_a_statement_gives_are_known(query: str, names: list[TableName]) -> None:
    statement = read(query)
    assert list(given_names(statement)) == names
    assert [may_give_name(statement, TableName("d", each)) for each in "tu"] == [("d", each) in names for each in "tu"]


@pytest.mark.parametrize(
    ("query", "database", "table", "may_give"),
    [
        ("nonsense", "d", "t", [("d", "t")]),
        ("ALTER TABLE t NEW THING, RENAME TO u", "d", "t", [("d", "t"), ("d", "u")]),
        ("FLASHBACK DATABASE D", "d", None, [("d", "t"), ("d", "u")]),
        ("nonsense", None, None, [("d", "t"), ("d", "u"), ("e", "t")]),
    ],
)
def test_a_statement_that_is_not_understood_may_give_every_name_that_it_is_about(
    query: str, database: str | None, table: str | None, may_give: list[tuple[str, str]]
) -> None:
    (statement,) = read_ddl(query, database, table)
    asked = [TableName(*name) for name in (("d", "t"), ("d", "u"), ("e", "t"))]
    assert [name for name in asked if may_give_name(statement, name)] == may_give


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", [T]),
        ("not 'SQL", [T]),
        ("nonsense", [T]),
        ("ALTER TABLE t ADD COLUMN `rename` INT WHATEVER", [T]),
        ("ALTER TABLE t FIRST PARTITION LESS THAN (5)", [T]),
        ("ALTER TABLE t RENAME COLUMN a TO b, NEW THING", [T]),
        ("ALTER TABLE t NEW THING, RENAME AS e.u", [T, ("e", "u")]),
        ("ALTER TABLE t NEW THING, RENAME u", [T, ("d", "u")]),
        ("ALTER TABLE x NEW THING", [T, ("d", "x")]),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u AND MORE", [T, ("d", "u")]),
        ("ALTER TABLE t PARTITION p0 NEW THING", [T]),
        ("ALTER TABLE t ADD COLUMN a INT ON NEW THING", [T]),
        ("ALTER TABLE t ADD COLUMN a INT COMMENT", [T]),
        ("ALTER TABLE t RENAME COLUMN a TO", [T]),
        ("ALTER TABLE t RENAME COLUMN a TO 5", [T]),
        ("ALTER TABLE t PARTITION BY NEW (a)", [T]),
        ("ALTER TABLE t ADD PARTITION PARTITIONS 100000", [T]),
        ("ALTER TABLE t ADD PARTITION PARTITIONS many", [T]),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES IN (1,,2))", [T]),
        ("ALTER TABLE t CHARACTER SET binary", [T]),
        ("ALTER TABLE t ADD COLUMN (a INT", [T]),
        ("ALTER TABLE t DROP COLUMN a b", [T]),
        ("RENAME TABLE a TO tmp, b TO a, tmp TO b, c", [T, ("d", "a"), ("d", "tmp"), ("d", "b"), ("d", "c")]),
        ("DROP TABLE IF EXISTS a, e.`b` NOW", [T, ("d", "a"), ("e", "b")]),
        ("TRUNCATE a b", [T, ("d", "a")]),
        ("RECOVER TABLE BY JOB x", [T]),
        ("FLASHBACK TABLE a TO b TIMESTAMP x", [T, ("d", "a"), ("d", "b")]),
        ("CREATE TABLE t (a INT", [T]),
        ("CREATE TABLE t ()", [T]),
        ("CREATE TABLE t (a SERIAL)", [T]),
        ("ALTER TABLE t ADD UNIQUE ()", [T]),
        ("CREATE TABLE t (a INT) AS SELECT 1", [T]),
        ("CREATE TABLE t AS SELECT * FROM u", [T]),
        ("CREATE TABLE t (a INT) SPLIT BY (1) AS SELECT 1", [T]),
        ("CREATE TABLE t (a INT KEY) SOFTDELETE RETENTION 7 DAY", [T]),
        ("CREATE TABLE t (a INT KEY) /*T![active_active] ACTIVE_ACTIVE = 'ON' */", [T]),
        ("CREATE TABLE t (a TEXT) CHARSET=binary", [T]),
        ("CREATE TABLE t (a TEXT) DEFAULT COLLATE 'binary'", [T]),
        ("ALTER TABLE t CONVERT TO CHARACTER SET `binary`", [T]),
        ("CREATE TABLE t (a INT NOT NULL, UNIQUE KEY u (a) WHERE b > 1)", [T]),
        ("ALTER TABLE t ADD UNIQUE KEY u (a) WHERE b > 1", [T]),
        ("CREATE UNIQUE INDEX u ON t (a) WHERE b > 1", [T]),
        ("INSERT INTO t VALUES (1)", [T]),
    ],
)
def test_unread_names_what_it_may_touch(query: str, names: list[TableName]) -> None:
    unread = read(query)
    assert isinstance(unread, Unread)
    assert (list(unread.names), unread.database) == (names, None)
    assert all(isinstance(name, TableName) for name in unread.names), "else its spelling would count"
    assert unread.reason


@pytest.mark.parametrize(
    ("query", "database"),
    [
        ("nonsense", "d"),
        ("not 'SQL", "d"),
        ("RECOVER TABLE BY JOB 105", "d"),
        ("FLASHBACK DATABASE `e`", "e"),
        ("FLASHBACK SCHEMA e TO `f`", "f"),
        ("FLASHBACK CLUSTER TO TIMESTAMP 'x'", "d"),
        ("DROP DATABASE e NOW", "e"),
    ],
)
def test_unreadable_statement_about_a_database_names_it(query: str, database: str) -> None:
    unread = read(query, None)
    assert isinstance(unread, Unread)
    assert (unread.names, unread.database) == ((), database)


@pytest.mark.parametrize("database", [None, ""])
@pytest.mark.parametrize("query", ["nonsense", "DROP TABLE t", "FLASHBACK CLUSTER TO TIMESTAMP 'x'", ""])
def test_unreadable_statement_that_names_nothing_may_be_about_all_tables(query: str, database: str | None) -> None:
    (statement,) = read_ddl(query, database, None)
    assert is_of_all_tables(statement)


@pytest.mark.parametrize(
    ("query", "database", "table"),
    [
        ("nonsense", "d", None),
        ("DROP TABLE d.t, u", None, None),
        ("CREATE VIEW v", None, None),
    ],
)
def test_other_statements_are_not_about_all_tables(query: str, database: str | None, table: str | None) -> None:
    assert not any(map(is_of_all_tables, read_ddl(query, database, table)))
