"""Every kind of statement, as TiCDC and as people write it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from one_statement import T, read

from ticdc_lakehouse.schema.definition import Partition, Partitioning
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import (
    Action,
    AddColumn,
    AddKey,
    AddPartitions,
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropColumn,
    DropDatabase,
    DropKey,
    DropPartitions,
    DropTables,
    ExchangePartition,
    ModifyColumn,
    NoChange,
    RenameColumn,
    RenameKey,
    RenameTables,
    ResizeHash,
    RestoreTable,
    SetPartitioning,
    Statement,
    TruncateTable,
    Unread,
)

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
HOSTILE = [
    "a`b",
    "a.b",
    "a'b",
    'a"b',
    "a\\",
    "größe 表 😀",
    "; DROP TABLE t; --",
    "/*T! x */",
    "#",
    "primary",
    "TO",
    ",",
    "(",
]


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def renamed(*pairs: tuple[TableName, TableName]) -> RenameTables:
    return RenameTables(pairs=pairs)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("DROP DATABASE `d`", DropDatabase(database="d")),
        ("drop schema if exists e;", DropDatabase(database="e")),
        ("CREATE TABLE t LIKE m.model", CreateTableLike(name=T, source=("m", "model"))),
        (
            "CREATE TABLE IF NOT EXISTS `e`.`t` (LIKE u)",
            CreateTableLike(name=("e", "t"), source=("e", "u"), unqualified=True),
        ),
        ("DROP TABLE `d`.`t`", DropTables(names=(T,))),
        ("DROP TABLE IF EXISTS t, e.u CASCADE", DropTables(names=(T, ("e", "u")))),
        ("TRUNCATE TABLE t", TruncateTable(name=T)),
        ("TRUNCATE `e`.`t`", TruncateTable(name=("e", "t"))),
        ("RENAME TABLE `d`.`t` TO `e`.`u`;", renamed((T, ("e", "u")))),
        ("RENAME TABLE a TO b, b TO c", renamed((("d", "a"), ("d", "b")), (("d", "b"), ("d", "c")))),
        ("ALTER TABLE t RENAME u", renamed((T, ("d", "u")))),
        ("ALTER TABLE `e`.`t` RENAME AS `u`", renamed((("e", "t"), ("d", "u")))),
        ("RENAME TABLE `e`.`t` TO `u`", renamed((("e", "t"), ("d", "u")))),
        ("ALTER TABLE t RENAME TO e.u", renamed((T, ("e", "u")))),
        ("RENAME TABLE `t` TO `d`.`t`", RenameTables(pairs=((T, T),), unqualified=True)),
        ("RENAME TABLE t TO `D`.u;", RenameTables(pairs=((T, ("d", "u")),), unqualified=True)),
        ("ALTER TABLE t RENAME d.u", RenameTables(pairs=((T, ("d", "u")),), unqualified=True)),
        ("RENAME TABLE d.t TO d.u", renamed((T, ("d", "u")))),
        ("RENAME TABLE t TO u", renamed((T, ("d", "u")))),
        ("RECOVER TABLE `t`", RestoreTable(name=T, to=T)),
        ("RECOVER TABLE `t` 3", RestoreTable(name=T, to=T)),
        ("RECOVER TABLE BY JOB 105", RestoreTable(name=T, to=T, by_job=True)),
        ("DROP INDEX `i` ON `t` ALGORITHM = INPLACE LOCK = NONE", AlterTable(name=T, actions=(DropKey(index="i"),))),
        ("FLASHBACK TABLE `e`.`t` TO `u`", RestoreTable(name=("e", "t"), to=("e", "u"))),
        ("CREATE TABLE e.t LIKE m.u", CreateTableLike(name=("e", "t"), source=("m", "u"))),
        ("CREATE TABLE t LIKE u", CreateTableLike(name=T, source=("d", "u"))),
        (
            "ALTER TABLE p EXCHANGE PARTITION `p0` WITH TABLE d.x",
            ExchangePartition(partitioned=("d", "p"), partition="p0", plain=("d", "x"), unqualified=True),
        ),
        (
            "ALTER TABLE e.p EXCHANGE PARTITION `p0` WITH TABLE x",
            ExchangePartition(partitioned=("e", "p"), partition="p0", plain=("d", "x")),
        ),
        (
            "ALTER TABLE p EXCHANGE PARTITION `p0` WITH TABLE e.x WITHOUT VALIDATION",
            ExchangePartition(partitioned=("d", "p"), partition="p0", plain=("e", "x")),
        ),
    ],
)
def test_ddl_text_is_read_as_its_statement(query: str, expected: Statement) -> None:
    assert read(query) == expected
    assert getattr(read(query), "unqualified", None) == getattr(expected, "unqualified", None)  # not compared


def test_an_empty_name_is_not_understood() -> None:
    """TiCDC may not know the old name (ticdc#4392): the table of the new one is blocked, as it lacks its rows."""
    unread = read("RENAME TABLE `d`.`` TO `d`.`x`", "x")
    assert isinstance(unread, Unread)
    assert unread.names == (("d", "x"),)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE DATABASE d",
        "create schema if not exists `d` CHARACTER SET = gbk",
        "ALTER DATABASE d COLLATE = utf8mb4_bin",
        "CREATE OR REPLACE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER SQL SECURITY DEFINER VIEW v AS SELECT 1",
        "CREATE VIEW t AS SELECT 1",
        "CREATE TEMPORARY TABLE u (a INT)",
        "CREATE GLOBAL TEMPORARY TABLE IF NOT EXISTS `d`.`u` (id BIGINT PRIMARY KEY) ON COMMIT DELETE ROWS",
        "DROP GLOBAL TEMPORARY TABLE u",
        "DROP VIEW v",
        "CREATE SEQUENCE s",
        "ALTER PLACEMENT POLICY p FOLLOWERS=2",
        "DROP GLOBAL BINDING FOR SELECT 1",
        "CREATE USER 'x'",
        "RENAME USER a TO b",
        "GRANT ALL ON *.* TO x",
        "ALTER TABLE t",
        "ALTER TABLE t DROP FOREIGN KEY g",
        "ALTER TABLE t ADD CONSTRAINT CHECK (a > 0) NOT ENFORCED, DROP CHECK c, DROP CONSTRAINT d",
        "ALTER TABLE t ALTER CHECK c ENFORCED",
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT _UTF8MB4'x,y', ALTER b DROP DEFAULT, ALTER INDEX i INVISIBLE",
        "ALTER TABLE t COMMENT = 'DROP COLUMN a, b' ENGINE=InnoDB, AUTO_INCREMENT = 5, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "ALTER TABLE t /*T![ttl] TTL = `a` + INTERVAL 1 DAY */ /*T![ttl] TTL_ENABLE = 'OFF' */",
        "ALTER TABLE t /*T![ttl] REMOVE TTL */",
        "ALTER TABLE t /*T![placement] PLACEMENT POLICY=`p` */",
        "ALTER TABLE t SET TIFLASH REPLICA 2 LOCATION LABELS 'a', 'b'",
        "ALTER TABLE t ORDER BY `b`, `a` DESC",
        "ALTER TABLE t CACHE",
        "ALTER TABLE t NOCACHE, AUTO_ID_CACHE 5, SHARD_ROW_ID_BITS = 4, FORCE AUTO_RANDOM_BASE = 7",
        "ALTER TABLE t ADD STATS_EXTENDED s CORRELATION(a, b)",
        "ALTER TABLE t REORGANIZE PARTITION",
        "ALTER TABLE t REORGANIZE PARTITION NO_WRITE_TO_BINLOG",
        "ALTER TABLE t REBUILD PARTITION p0, p1",
        "ALTER TABLE t PARTITION p0 PLACEMENT POLICY = x",
    ],
)
def test_ddl_that_changes_no_table_is_read_as_such(query: str) -> None:
    assert read(query) == NoChange()


@pytest.mark.parametrize(
    ("query", "indexes"),
    [
        ("CREATE INDEX `i` ON `d`.`t` (`a`, c(10) DESC) COMMENT 'x' INVISIBLE", [("i", ("a", "c"))]),
        ("CREATE INDEX `i` ON `d`.`t` (`a`, (b + 1))", [("i", ())]),
        ("CREATE INDEX `i` ON `t` (`a`) WHERE `partition` IN (1, 2)", [("i", ("a",))]),
        ("ALTER TABLE t ADD INDEX i (a) WHERE b > 1, ADD INDEX (b)", [("i", ("a",)), (None, ("b",))]),
        ("CREATE VECTOR INDEX i ON t ((VEC_COSINE_DISTANCE(v))) USING HNSW", [("i", ())]),
        ("ALTER TABLE t ADD INDEX i (a), ADD KEY (b)", [("i", ("a",)), (None, ("b",))]),
        (
            "ALTER TABLE t ADD FULLTEXT INDEX (c) WITH PARSER x, ADD VECTOR INDEX v ((f(a)))",
            [(None, ("c",)), ("v", ())],
        ),
        ("ALTER TABLE t ADD UNIQUE KEY i ((a * 2))", [("i", ())]),
    ],
)
def test_indexes_are_read_for_their_names(query: str, indexes: list[tuple[str | None, tuple[str, ...]]]) -> None:
    statement = read(query)
    assert isinstance(statement, AlterTable)
    assert statement.of_indexes
    added = [action for action in statement.actions if isinstance(action, AddKey)]
    assert [(key.index, key.columns) for key in added] == indexes


RANGE = Partitioning(
    method="range",
    column="a",
    function=None,
    partitions=(Partition(name="p0", bounds=("-5",)), Partition(name="p1")),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP COLUMN `a`, DROP b CASCADE", (DropColumn(name="a"), DropColumn(name="b"))),
        ("DROP COLUMN IF EXISTS a", (DropColumn(name="a", lenient=True),)),
        ("RENAME COLUMN a TO `b c`", (RenameColumn(old="a", new="b c"),)),
        (
            "DROP COLUMN `x`, ORDER BY `b` DESC,`a`, RENAME COLUMN p TO q",
            (DropColumn(name="x"), RenameColumn(old="p", new="q")),
        ),
        ("DROP COLUMN t.a, DROP d.`t`.b", (DropColumn(name="a"), DropColumn(name="b"))),
        ("ADD PRIMARY KEY (`t`.`a`, d.t.b(3))", (AddKey(primary=True, index=None, columns=("a", "b")),)),
        ("RENAME INDEX a TO b, RENAME KEY c TO d", (RenameKey(old="a", new="b"), RenameKey(old="c", new="d"))),
        ("DROP PRIMARY KEY", (DropKey(index="PRIMARY"),)),
        ("DROP INDEX i, DROP KEY IF EXISTS j", (DropKey(index="i"), DropKey(index="j", lenient=True))),
        (
            "ADD PRIMARY KEY(`a`, b) /*T![clustered_index] NONCLUSTERED */",
            (AddKey(primary=True, index=None, columns=("a", "b")),),
        ),
        (
            "ADD UNIQUE (a), ADD UNIQUE KEY k USING BTREE (a, b(3) DESC)",
            (
                AddKey(primary=False, index=None, columns=("a",)),
                AddKey(primary=False, index="k", columns=("a", "b")),
            ),
        ),
        ("ADD CONSTRAINT c UNIQUE INDEX (a)", (AddKey(primary=False, index="c", columns=("a",)),)),
        ("ADD CONSTRAINT c UNIQUE d (a)", (AddKey(primary=False, index="c", columns=("a",)),)),
        ("DROP PARTITION p0, `p 1`", (DropPartitions(names=("p0", "p 1"), keep=False),)),
        ("DROP PARTITION IF EXISTS p0", (DropPartitions(names=("p0",), keep=False, lenient=True),)),
        ("TRUNCATE PARTITION p0", (DropPartitions(names=("p0",), keep=True),)),
        ("TRUNCATE PARTITION ALL", (DropPartitions(names=(), keep=True),)),
        (
            "ADD PARTITION (PARTITION p0 VALUES LESS THAN (-5) COMMENT 'x', PARTITION p1 VALUES LESS THAN MAXVALUE)",
            (AddPartitions(partitions=RANGE.partitions),),
        ),
        (
            "ADD PARTITION (PARTITION l VALUES IN (1, NULL, 'x'), PARTITION m VALUES IN (DEFAULT))",
            (
                AddPartitions(
                    partitions=(Partition(name="l", bounds=("1", None, "x")), Partition(name="m", default=True))
                ),
            ),
        ),
        (
            "ADD PARTITION (PARTITION p VALUES LESS THAN (TO_DAYS('2024-01-01')), PARTITION q VALUES LESS THAN"
            " (TO_DAYS(20240101)))",
            (
                AddPartitions(
                    partitions=(
                        Partition(name="p", bounds=("739251",)),
                        Partition(name="q", bounds=("TO_DAYS(20240101)",)),
                    )
                ),
            ),
        ),
        (
            "REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (0x10))",
            (AddPartitions(partitions=(Partition(name="p", bounds=("0x10",)),), replaces=("p0", "p1")),),
        ),
        ("ADD PARTITION PARTITIONS 4", (ResizeHash(by=4),)),
        ("ADD PARTITION NO_WRITE_TO_BINLOG PARTITIONS 4", (ResizeHash(by=4),)),
        (
            "ADD PARTITION LOCAL (PARTITION p0 VALUES LESS THAN (-5), PARTITION p1 VALUES LESS THAN MAXVALUE)",
            (AddPartitions(partitions=RANGE.partitions),),
        ),
        (
            "REORGANIZE PARTITION NO_WRITE_TO_BINLOG `local` INTO (PARTITION p VALUES LESS THAN (0x10))",
            (AddPartitions(partitions=(Partition(name="p", bounds=("0x10",)),), replaces=("local",)),),
        ),
        ("COALESCE PARTITION NO_WRITE_TO_BINLOG 2", (ResizeHash(by=-2),)),
        ("REMOVE PARTITIONING", (SetPartitioning(partitioning=None),)),
        ("ALGORITHM = INPLACE, LOCK = NONE REMOVE PARTITIONING", (SetPartitioning(partitioning=None),)),
        (
            "ADD INDEX i (a) COMMENT 'x' REMOVE PARTITIONING",
            (
                AddKey(primary=False, index="i", columns=("a",), unique=False),
                SetPartitioning(partitioning=None),
            ),
        ),
        (
            "COMMENT = 'x' PARTITION BY RANGE (`a`) (PARTITION p0 VALUES LESS THAN (-5), PARTITION p1 VALUES LESS THAN"
            " (MAXVALUE))",
            (SetPartitioning(partitioning=RANGE),),
        ),
        (
            "PARTITION BY RANGE (`a`) (PARTITION p0 VALUES LESS THAN (-5), PARTITION p1 VALUES LESS THAN (MAXVALUE))",
            (SetPartitioning(partitioning=RANGE),),
        ),
    ],
)
def test_alter_table_text_is_read_as_its_actions(text: str, expected: tuple[Action, ...]) -> None:
    assert read(f"ALTER TABLE `t` {text}") == AlterTable(name=T, actions=expected)


@pytest.mark.parametrize(
    ("text", "method", "column", "function"),
    [
        ("RANGE (YEAR(`a`)) (PARTITION p VALUES LESS THAN (2000))", "range", "a", "year"),
        ("RANGE COLUMNS(a) (PARTITION p VALUES LESS THAN (2000))", "range", "a", None),
        ("RANGE (`d`.`t`.`a`) (PARTITION p VALUES LESS THAN (2000))", "range", "a", None),
        ("LIST (YEAR(`t`.`a`)) (PARTITION p VALUES IN (2000))", "list", "a", "year"),
        ("RANGE COLUMNS(a, b) (PARTITION p VALUES LESS THAN (1, 2))", "range", None, None),
        ("LIST (a % 10) (PARTITION p VALUES IN (1))", "list", None, None),
        ("LIST (secret(a)) (PARTITION p VALUES IN (1))", "list", None, None),
        ("LINEAR HASH (a) PARTITIONS 4", "hash", "a", None),
        ("HASH (a + b)", "hash", None, None),
        ("HASH ()", "hash", None, None),
        ("KEY ALGORITHM = 2 (a) PARTITIONS 4", "key", None, None),
        ("RANGE (a) INTERVAL (100) FIRST PARTITION LESS THAN (0) LAST PARTITION LESS THAN (500)", "range", None, None),
    ],
)
def test_partitioning_of_a_new_table_is_read(text: str, method: str, column: str | None, function: str | None) -> None:
    made = read(f"CREATE TABLE t (a INT, b INT) COMMENT 'x' PARTITION BY {text}")
    assert isinstance(made, CreateTable)
    assert made.table.partitioning is not None
    found = made.table.partitioning
    assert (found.method, found.column, found.function) == (method, column, function)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_may_have_any_characters(name: str) -> None:
    q = quoted(name)
    both = (name, name)
    assert read(f"DROP TABLE {q}.{q}") == DropTables(names=(both,))
    assert read(f"RENAME TABLE {q}.{q} TO {q}.{q};") == renamed((both, both))
    assert read(f"ALTER TABLE {q}.{q} DROP COLUMN {q}, DROP INDEX {q}, TRUNCATE PARTITION {q}") == AlterTable(
        name=both,
        actions=(DropColumn(name=name), DropKey(index=name), DropPartitions(names=(name,), keep=True)),
    )
    made = read(f"CREATE TABLE {q}.{q} ({q} INT DEFAULT '`;' COMMENT {name!r}, UNIQUE KEY {q} ({q}))")
    assert isinstance(made, CreateTable)
    assert made.table.keys is not None
    found = [*(c.name for c in made.table.columns), made.table.keys[0].name, *made.table.keys[0].columns]
    assert (made.table.database, made.table.table, found) == (name, name, [name, name, name])


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("ADD vector VECTOR(3)", "vector", None),
        ("ADD COLUMN columnar JSON", "columnar", None),
        ("ADD (hybrid VARCHAR(20))", "hybrid", None),
        ("ADD COLUMN t.a INT AFTER `d`.`t`.`b`", "a", "b"),
        ("MODIFY t.a INT AFTER t.b", "a", "b"),
        ("CHANGE t.x t.a INT FIRST", "a", None),
    ],
)
def test_columns_are_called_by_words_and_with_their_tables(text: str, name: str, after: str | None) -> None:
    altered = read(f"ALTER TABLE t {text}")
    assert isinstance(altered, AlterTable)
    (action,) = altered.actions
    assert isinstance(action, AddColumn | ModifyColumn)
    assert action.column.name == name
    assert (action.position and action.position.after) == after


@pytest.mark.parametrize(
    ("query", "typed"),
    [
        (r"ALTER TABLE `t` ADD COLUMN `e` ENUM('a\\b')", False),
        (r"ALTER TABLE `t` ADD COLUMN `e` ENUM('a\\b') COMMENT 'a\'", False),
        (r"CREATE TABLE IF NOT EXISTS `t` (`a\` INT, `e` ENUM('a\\b'))", False),
        (r"ALTER TABLE t ADD COLUMN `e` ENUM('a\\b')", True),
        (r"alter TABLE `t` ADD COLUMN `e` ENUM('a\\b')", True),
        (r"""ALTER TABLE `t` ADD COLUMN `e` ENUM('a\\b',"c")""", True),
        (r"ALTER TABLE `t` ADD COLUMN `e` ENUM('a\\b') COMMENT 'it\'s'", True),
        (r"ALTER TABLE `t` COMMENT '\'', ADD COLUMN `e` ENUM('a\\b'), COMMENT '\''", True),
    ],
)
def test_backslashes_are_read_as_people_write_them_where_people_wrote(query: str, typed: bool) -> None:
    """Two characters of one ENUM's name: TiDB's parser writes each of them as it is."""
    statement = read(query)
    columns = (
        statement.table.columns
        if isinstance(statement, CreateTable)
        else tuple(a.column for a in statement.actions if isinstance(a, AddColumn))
        if isinstance(statement, AlterTable)
        else ()
    )
    assert columns[-1].type.elements[0] == ("a\\b" if typed else "a\\\\b")


def test_each_of_several_statements_is_read() -> None:
    query = "DROP TABLE `a;b`; nonsense; ALTER TABLE t DROP COLUMN a, RENAME TO u;;"
    dropped, unread, altered, moved = read_ddl(query, "d", None)
    assert dropped == DropTables(names=(("d", "a;b"),))
    assert isinstance(unread, Unread)
    assert altered == AlterTable(name=T, actions=(DropColumn(name="a"),))
    assert moved == renamed((T, ("d", "u")))


def _ddls(value: Any) -> Iterator[dict[str, Any]]:
    """Every DDL among the expected events of a case."""
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and value.get("kind") == "ddl":
        yield value
    for child in children:
        yield from _ddls(child)


def test_every_text_of_the_vectors_is_read() -> None:
    found = {
        (ddl["query"], ddl["schema"], ddl["table"])
        for file in sorted(VECTORS.glob("*.jsonl.gz"))
        for line in gzip.decompress(file.read_bytes()).splitlines()
        if b'"ddl"' in line
        for ddl in _ddls(json.loads(line))
    }
    assert len(found) > 100
    for query, database, table in found:
        assert not any(isinstance(statement, Unread) for statement in read_ddl(query, database, table or None)), query
