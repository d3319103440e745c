"""Random statements as people and tools write them: names in random case, odd names, every type, values at the edges.

Many of them TiDB refuses: that is part of a session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from column_histories import NAME, ColumnHistories
from statement_texts import (
    ADDED,
    ALTERATIONS,
    DATABASES,
    DML,
    ENTRIES,
    NAMES,
    OPTIONS,
    OTHERS,
    PARTITIONINGS,
    TYPES,
    VALUES,
)

from ticdc_codec.name_case import fold
from ticdc_lakehouse.sql.text import quoted

Tables = Sequence[Mapping[str, Any]]
"""As a session's lines have them (`record_session`)."""


class RandomStatements:
    """Gives one statement after the other, each about the tables that there are then."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.database: str | None = None
        """Of the session: names in it may stand alone."""
        self._number = 0
        self._all: Tables = ()
        self._following: list[str] = []
        """What is to come next: what needs several statements would hardly happen otherwise."""
        self._makers: dict[Callable[[Mapping[str, Any]], str], int] = {
            self._insert: 24, self._update: 10, self._delete: 3, self._add_column: 24, self._drop_column: 7,
            self._rename_column: 5, self._change_column: 7, self._modify_column: 12, self._null: 3,
            self._alter_default: 3, self._several: 8, self._add_key: 7, self._drop_key: 4, self._rename_table: 5,
            self._swap: 2, self._truncate: 2, self._drop_table: 5, self._like: 3, self._create: 3, self._partition: 8,
            self._exchange: 4, self._repartition: 4, self._convert: 2, self._database: 2, self._other: 7,
            self._history: 10,
        }  # fmt: skip
        self._histories = ColumnHistories(self.random)
        self._of_history = "", ""
        """The table, with its database, whose columns have a history now."""
        for maker in self.random.choice(self._subjects):
            self._makers[maker] *= 5

    @property
    def _subjects(self) -> Sequence[Sequence[Callable[[Mapping[str, Any]], str]]]:
        """What a session may be about above all."""
        return (
            (),
            (self._insert, self._modify_column, self._change_column),
            (self._insert, self._update, self._add_key, self._drop_key, self._null),
            (self._insert, self._partition, self._repartition, self._exchange),
            (self._rename_table, self._swap, self._drop_table, self._like, self._create),
            (self._history, self._history, self._history),
        )

    def next(self, tables: Tables) -> str:
        """A statement."""
        self._all = tables
        if self._following:
            return self._following.pop(0)
        if not tables:
            return self._create({})
        maker = self.random.choices([*self._makers], [*self._makers.values()])[0]
        return self._written(maker(self.random.choice(tables)))

    def _written(self, statement: str) -> str:
        """The statement as somebody may write it: with comments, blanks, words in any case."""
        verb, _, rest = statement.partition(" ")
        if verb in DML:
            return statement
        return self.random.choice(
            (
                *[statement] * 12,
                f"{verb.lower()} {rest}",
                f"{verb}\n\t{rest} ",
                f"{verb} /* it's -- a comment; */ {rest}",
                f"{verb} {rest} -- end",
                f"{verb} -- it's\n {rest}",
                f"{verb} # `x\n {rest}",
                f"{verb} {rest};",
                f"{verb} /*!50100 {rest.partition(' ')[0]} */ {rest.partition(' ')[2]}",
                f"{verb} /*+ hint */ {rest}",
                f"/* before */ {statement}",
                f"{verb} /*T![auto_rand] {rest.partition(' ')[0]} */ {rest.partition(' ')[2]}",
            )
        )

    # --- names and values ---

    def cased(self, name: str) -> str:
        """The name in other capitals, as far as TiDB takes them for the same."""
        if self.random.random() < 0.5:
            return name
        return "".join(self._cased(c) for c in name)

    def _cased(self, character: str) -> str:
        other = self.random.choice((character.upper(), character.lower()))
        return other if len(other) == 1 and fold(other) == fold(character) else character

    def column(self, name: str) -> str:
        return quoted(self.cased(name))

    def table(self, table: Mapping[str, Any]) -> str:
        """Its name, with its database where the session has another."""
        return self._table(table["db"], table["table"])

    def _table(self, database: str, table: str) -> str:
        name = quoted(self.cased(table)) if self.random.random() < 0.8 or not re.fullmatch(r"[a-z]+", table) else table
        alone = self.database is not None and fold(self.database) == fold(database) and self.random.random() < 0.5
        return name if alone else f"{quoted(self.cased(database))}.{name}"

    def new_name(self) -> str:
        self._number += 1
        return f"{self.random.choice(NAMES)}{self._number}"

    def value(self, column: Mapping[str, Any]) -> str:
        """A literal of the column's type; NULL where it may be."""
        kind, choice = column["data_type"], self.random.choice
        if column["nullable"] == "YES" and self.random.random() < 0.15:
            return "NULL"
        literal = choice(_fitting(VALUES.get(kind, ("NULL",)), column["type"]))
        if column["name"].startswith(NAME) and self.random.random() < 0.5:
            return self._histories.value(column)
        if self.random.random() < 0.6 and kind in ("int", "bigint", "smallint", "mediumint", "decimal"):
            self._number += 1
            literal = str(self._number if "unsigned" in column["type"] else choice((1, -1)) * self._number)
        if self.random.random() < 0.5 and kind in ("varchar", "text", "longtext"):
            self._number += 1
            literal = f"'{choice('abZé')}{self._number}'"
        return literal

    def one_column(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        column: Mapping[str, Any] = self.random.choice(table["columns"])
        return column

    def place(self, table: Mapping[str, Any]) -> str:
        after = f" AFTER {self.column(self.one_column(table)['name'])}"
        return self.random.choice(("", "", " FIRST", after))

    # --- rows ---

    def _insert(self, table: Mapping[str, Any]) -> str:
        columns = [c for c in table["columns"] if not c["generation"]]
        kept = [c for c in columns if c["nullable"] == "NO" or self.random.random() < 0.7] or columns[:1]
        rows = [f"({', '.join(map(self.value, kept))})" for _ in range(self.random.randint(1, 4))]
        names = ",".join(self.column(c["name"]) for c in kept)
        verb = self.random.choice(("INSERT", "INSERT IGNORE", "REPLACE"))
        return f"{verb} INTO {self.table(table)} ({names}) VALUES {', '.join(rows)}"

    def _order(self, table: Mapping[str, Any]) -> str:
        keys = ",".join(map(quoted, table["primary_key"]))
        return (f" ORDER BY {keys}" if keys else "") + f" LIMIT {self.random.randint(1, 2)}"

    def _update(self, table: Mapping[str, Any]) -> str:
        columns = [c for c in table["columns"] if not c["generation"]] or table["columns"]
        column = self.random.choice(columns)
        if column["data_type"] in ("int", "bigint", "decimal", "double") and self.random.random() < 0.3:
            name = self.column(column["name"])
            return f"UPDATE {self.table(table)} SET {name}={name}+1 ORDER BY {name} DESC"
        return f"UPDATE {self.table(table)} SET {self.column(column['name'])}={self.value(column)}{self._order(table)}"

    def _delete(self, table: Mapping[str, Any]) -> str:
        return f"DELETE FROM {self.table(table)}{self._order(table)}"

    # --- columns ---

    def _alter(self, table: Mapping[str, Any], *actions: str) -> str:
        return f"ALTER TABLE {self.table(table)} {', '.join(actions)}"

    def _added(self, table: Mapping[str, Any]) -> str:
        word = self.random.choice(("ADD", "ADD COLUMN"))
        kind = self.random.choice(ADDED)
        if self.random.random() < 0.06:
            kind = f"VARCHAR(30) AS (CONCAT({quoted(self.one_column(table)['name'])}, 'x'))"
        name = self.one_column(table)["name"] if self.random.random() < 0.04 else self.new_name()
        lenient = " IF NOT EXISTS" if self.random.random() < 0.06 else ""
        return f"{word}{lenient} {quoted(name)} {kind}{self.place(table)}"

    def _add_column(self, table: Mapping[str, Any]) -> str:
        if self.random.random() < 0.07:
            columns = ", ".join(f"{quoted(self.new_name())} {self.random.choice(ADDED)}" for _ in range(2))
            return self._alter(table, f"ADD COLUMN ({columns})")
        return self._alter(table, self._added(table))

    def _dropped_column(self, table: Mapping[str, Any]) -> str:
        lenient = self.random.choice(("", "", "", "IF EXISTS "))
        return f"DROP COLUMN {lenient}{self.column(self.one_column(table)['name'])}"

    def _drop_column(self, table: Mapping[str, Any]) -> str:
        return self._alter(table, self._dropped_column(table))

    def _renamed_column(self, table: Mapping[str, Any]) -> str:
        old = self.one_column(table)["name"]
        new = self.cased(old) if self.random.random() < 0.2 else self.new_name()
        return f"RENAME COLUMN {self.column(old)} TO {quoted(new)}"

    def _rename_column(self, table: Mapping[str, Any]) -> str:
        return self._alter(table, self._renamed_column(table))

    def _type(self, column: Mapping[str, Any]) -> str:
        """Its own type, one for which its values are likely to fit, or any."""
        size = int(found[1]) if (found := re.search(r"\((\d+)", column["type"])) else 9
        wider = {
            "tinyint": "SMALLINT", "smallint": "INT", "int": "BIGINT", "bigint": "DECIMAL(30)", "float": "DOUBLE",
            "varchar": f"VARCHAR({size + 9})", "char": f"VARCHAR({size})", "datetime": "DATETIME(6)",
            "date": "DATETIME", "timestamp": "TIMESTAMP(6)", "time": "TIME(6)", "text": "LONGTEXT", "year": "INT",
            "blob": "LONGBLOB", "enum": "VARCHAR(20)", "set": "TEXT", "json": "LONGTEXT", "decimal": "DECIMAL(40,9)",
        }  # fmt: skip
        kind = self.random.choice((column["type"], wider.get(column["data_type"], "TEXT"), self.random.choice(TYPES)))
        return kind + self.random.choice(
            (
                *("", "", "", " NOT NULL", " NULL", " DEFAULT NULL", " COMMENT 'x''y'", " COLLATE utf8mb4_bin"),
                *(" AUTO_INCREMENT", " ON UPDATE CURRENT_TIMESTAMP", " DEFAULT '7'", " CHARACTER SET utf8mb4"),
            )
        )

    def _modified(self, table: Mapping[str, Any]) -> str:
        column = self.one_column(table)
        return f"MODIFY COLUMN {self.column(column['name'])} {self._type(column)}{self.place(table)}"

    def _modify_column(self, table: Mapping[str, Any]) -> str:
        return self._alter(table, self._modified(table))

    def _change_column(self, table: Mapping[str, Any]) -> str:
        column = self.one_column(table)
        new = self.cased(column["name"]) if self.random.random() < 0.3 else self.new_name()
        return self._alter(
            table, f"CHANGE {self.column(column['name'])} {quoted(new)} {self._type(column)}{self.place(table)}"
        )

    def _null(self, table: Mapping[str, Any]) -> str:
        column = self.one_column(table)
        return self._alter(
            table, f"MODIFY {self.column(column['name'])} {column['type']} {self.random.choice(('NOT NULL', 'NULL'))}"
        )

    def _alter_default(self, table: Mapping[str, Any]) -> str:
        column = self.one_column(table)
        what = self.random.choice(("DROP DEFAULT", f"SET DEFAULT {self.value(column)}", "SET DEFAULT (UUID())"))
        return self._alter(table, f"ALTER COLUMN {self.column(column['name'])} {what}")

    def _several(self, table: Mapping[str, Any]) -> str:
        if self.random.random() < 0.25 and len(table["columns"]) > 1:
            one, other = self.random.sample([c["name"] for c in table["columns"]], 2)
            return self._alter(
                table,
                f"RENAME COLUMN {self.column(one)} TO {quoted(other)}",
                f"RENAME COLUMN {self.column(other)} TO {quoted(one)}",
            )
        makers = [self._added, self._added, self._dropped_column, self._renamed_column, self._modified, self._added_key]
        return self._alter(table, *(self.random.choice(makers)(table) for _ in range(self.random.randint(2, 4))))

    def _history(self, table: Mapping[str, Any]) -> str:
        """A step of a column that has a history, or a row of its table; most are about the same table."""
        same = [t for t in self._all if (t["db"], t["table"]) == self._of_history]
        if not same or self.random.random() < 0.05:
            self._of_history = table["db"], table["table"]
        table = same[0] if same else table
        if self.random.random() < 0.4:
            return self.random.choice((self._insert, self._insert, self._insert, self._update, self._delete))(table)
        return self._alter(table, self._histories.step(table))

    # --- keys ---

    def _added_key(self, table: Mapping[str, Any]) -> str:
        names = [c["name"] for c in table["columns"]]
        columns = ",".join(
            self.column(n) for n in self.random.sample(names, min(len(names), self.random.randint(1, 2)))
        )
        name = quoted(self.new_name())
        layout = self.random.choice(("", " CLUSTERED", " NONCLUSTERED"))
        kinds = (
            f"UNIQUE KEY {name}",
            "UNIQUE",
            f"INDEX {name}",
            "KEY",
            f"CONSTRAINT {name} UNIQUE",
            f"INDEX IF NOT EXISTS {name}",
            f"UNIQUE INDEX {name} USING BTREE",
            "CONSTRAINT UNIQUE KEY",
        )
        if self.random.random() < 0.2:
            return f"ADD PRIMARY KEY ({columns}){layout}"
        one = self.column(self.random.choice(names))
        columns = self.random.choice(
            (
                *(columns, columns, columns, columns, f"{columns} DESC", f"{one}(2)"),
                *(f"({one}+1)", f"(LOWER({one}))", f"{columns}, (LENGTH({one}))", "(CAST(j AS UNSIGNED ARRAY))"),
            )
        )
        end = self.random.choice(("", "", "", " INVISIBLE", " COMMENT 'k;'", " GLOBAL", " KEY_BLOCK_SIZE=8"))
        return f"ADD {self.random.choice(kinds)} ({columns}){end}"

    def _add_key(self, table: Mapping[str, Any]) -> str:
        name, column = self.new_name(), self.one_column(table)["name"]
        if self.random.random() < 0.4:
            unique = self.random.choice(("UNIQUE ", ""))
            lenient = self.random.choice(("", "", "IF NOT EXISTS "))
            end = self.random.choice(("", "", " COMMENT 'x'", " INVISIBLE", " ALGORITHM = INPLACE LOCK = NONE"))
            return f"CREATE {unique}INDEX {lenient}{quoted(name)} ON {self.table(table)} ({self.column(column)}){end}"
        return self._alter(table, self._added_key(table))

    def _drop_key(self, table: Mapping[str, Any]) -> str:
        names = [name.replace("``", "`") for name in re.findall(r"KEY `((?:[^`]|``)+)` \(", table["create"])]
        if not names or self.random.random() < 0.3:
            return self._alter(table, "DROP PRIMARY KEY")
        name = self.column(self.random.choice(names))
        new = quoted(self.new_name())
        hidden = self.random.choice(("VISIBLE", "INVISIBLE"))
        return self.random.choice(
            (
                *(self._alter(table, f"DROP KEY {name}"), f"DROP INDEX {name} ON {self.table(table)}"),
                *(
                    self._alter(table, f"RENAME INDEX {name} TO {new}"),
                    self._alter(table, f"ALTER INDEX {name} {hidden}"),
                ),
                f"DROP INDEX IF EXISTS {name} ON {self.table(table)}",
                self._alter(table, f"DROP INDEX IF EXISTS {name}", self._added(table)),
                self._alter(table, f"DROP KEY {name}", self._added_key(table)),
                self._alter(table, "DROP PRIMARY KEY", self._added_key(table)),
            )
        )

    # --- tables ---

    def _new_table(self, database: str | None = None) -> str:
        return self._table(database or self.random.choice(DATABASES[:2]), self.new_name())

    def _rename_table(self, table: Mapping[str, Any]) -> str:
        new = self._new_table(table["db"] if self.random.random() < 0.7 else None)
        if self.random.random() < 0.15:
            new = self.table(table)
        word = self.random.choice(("TO ", "AS ", ""))
        return self.random.choice(
            (f"RENAME TABLE {self.table(table)} TO {new}", self._alter(table, f"RENAME {word}{new}"))
        )

    def _swap(self, table: Mapping[str, Any]) -> str:
        other = self.random.choice(self._all)
        one, two, swap = self.table(table), self.table(other), self._new_table()
        if self.random.random() < 0.3:
            return f"RENAME TABLE {one} TO {self._new_table()}, {two} TO {self._new_table()}"
        return f"RENAME TABLE {one} TO {swap}, {two} TO {one}, {swap} TO {two}"

    def _truncate(self, table: Mapping[str, Any]) -> str:
        return f"TRUNCATE {self.random.choice(('TABLE ', ''))}{self.table(table)}"

    def _drop_table(self, table: Mapping[str, Any]) -> str:
        name = f"{quoted(table['db'])}.{quoted(self.cased(table['table']))}"
        if self.random.random() < 0.6:
            to = f" TO {quoted(self.new_name())}" if self.random.random() < 0.5 else ""
            back = self.random.choice((f"RECOVER TABLE {name}", f"FLASHBACK TABLE {name}{to}"))
            between = f"CREATE TABLE {name} (z INT PRIMARY KEY)"
            self._following += [between, back] if self.random.random() < 0.2 else [back]
        verb = self.random.choice(("DROP TABLE", "DROP TABLE IF EXISTS", "DROP TABLE", "TRUNCATE TABLE"))
        other = (
            f", {self.table(self.random.choice(self._all))}" if "DROP" in verb and self.random.random() < 0.2 else ""
        )
        return f"{verb} {name}{other}"

    def _like(self, table: Mapping[str, Any]) -> str:
        return f"CREATE TABLE {self._new_table()} LIKE {self.table(table)}"

    def _create(self, table: Mapping[str, Any]) -> str:
        if self.random.random() < 0.3:
            return f"CREATE TABLE IF NOT EXISTS {self.table(table)} (z INT)"
        key = self.random.choice(
            ("INT PRIMARY KEY", "BIGINT AUTO_RANDOM PRIMARY KEY", "VARCHAR(9) NOT NULL UNIQUE", "INT")
        )
        columns = [f"{quoted(self.new_name())} {key}"]
        columns += [f"{quoted(self.new_name())} {self.random.choice(ADDED)}" for _ in range(self.random.randint(1, 4))]
        first = columns[0].rpartition("`")[0] + "`"
        columns += self.random.sample(ENTRIES, self.random.choice((0, 0, 1, 2)))
        rest = f"({', '.join(columns)}){self.random.choice(OPTIONS)}".replace("{first}", first)
        return f"CREATE TABLE {self._new_table()} {rest}"

    # --- partitions ---

    def _partitions(self, table: Mapping[str, Any]) -> list[str]:
        if found := re.search(r"PARTITIONS (\d+)", table["create"]):
            return [f"p{number}" for number in range(int(found[1]))]
        return re.findall(r"PARTITION `(\w+)`", table["create"]) or ["p0"]

    @property
    def _partitioned(self) -> Mapping[str, Any]:
        tables = [table for table in self._all if "PARTITION BY" in table["create"]]
        return self.random.choice(tables or self._all)

    def _partition(self, _: Mapping[str, Any]) -> str:
        table = self._partitioned
        names, number = self._partitions(table), self.random.randint(1, 40)
        one, new = quoted(self.cased(self.random.choice(names))), quoted(self.new_name())
        values = self.random.choice((f"LESS THAN ({number})", f"IN ({number}, NULL)", "LESS THAN MAXVALUE"))
        last = f"PARTITION {quoted(self.new_name())} VALUES LESS THAN MAXVALUE"
        actions = (
            *(f"DROP PARTITION {one}", f"TRUNCATE PARTITION {one}", "TRUNCATE PARTITION ALL"),
            f"ADD PARTITION (PARTITION {new} VALUES {values})",
            f"REORGANIZE PARTITION {one} INTO (PARTITION {new} VALUES LESS THAN ({number}), {last})",
            *("ADD PARTITION PARTITIONS 2", "COALESCE PARTITION 1", "REMOVE PARTITIONING"),
            *(f"DROP PARTITION IF EXISTS {one}", f"TRUNCATE PARTITION {', '.join(map(quoted, names[:2]))}"),
            *(
                f"ADD PARTITION IF NOT EXISTS (PARTITION {new} VALUES {values})",
                f"PARTITION {one} ATTRIBUTES='merge_option=deny'",
            ),
            f"REORGANIZE PARTITION {', '.join(map(quoted, names[-2:]))} INTO ({last})",
            f"REORGANIZE PARTITION {', '.join(map(quoted, names[:2]))} INTO (PARTITION {new} VALUES IN (1,3,5,NULL))",
            f"ADD PARTITION (PARTITION {new} VALUES LESS THAN ('20{number % 3 + 2}0-01-01'))",
            *(f"LAST PARTITION LESS THAN ({10 * number})", f"FIRST PARTITION LESS THAN ({10 * (number % 3)})"),
            *(
                f"MERGE FIRST PARTITION LESS THAN ({10 * (number % 4)})",
                f"SPLIT MAXVALUE PARTITION LESS THAN ({10 * number})",
            ),
            *("PARTITION p0 PLACEMENT POLICY = DEFAULT", f"ANALYZE PARTITION {one}", f"CHECK PARTITION {one}"),
            *(f"TRUNCATE PARTITION {one}", f"TRUNCATE PARTITION {one}", f"DROP PARTITION {one}, {quoted(names[0])}"),
        )
        return self._alter(table, self.random.choice(actions))

    def _repartition(self, table: Mapping[str, Any]) -> str:
        column = self.column(self.random.choice(table["primary_key"] or [self.one_column(table)["name"]]))
        return self._alter(table, f"PARTITION BY {self.random.choice(PARTITIONINGS).replace('{column}', column)}")

    def _exchange(self, _: Mapping[str, Any]) -> str:
        """Of a partition with a table that is made for it, or is of the same columns."""
        table = self._partitioned
        alike = [t for t in self._all if "PARTITION BY" not in t["create"] and _shape(t) == _shape(table)]
        check = self.random.choice(("", "", " WITH VALIDATION", " WITHOUT VALIDATION"))
        action = f"EXCHANGE PARTITION {quoted(self.random.choice(self._partitions(table)))} WITH TABLE"
        if alike and self.random.random() < 0.5:
            return self._alter(table, f"{action} {self.table(self.random.choice(alike))}{check}")
        new = f"{quoted(self.random.choice(DATABASES[:2]))}.{quoted(self.new_name())}"
        self._following += [f"ALTER TABLE {new} REMOVE PARTITIONING", self._alter(table, f"{action} {new}{check}")]
        return f"CREATE TABLE {new} LIKE {self.table(table)}"

    # --- the rest ---

    def _convert(self, table: Mapping[str, Any]) -> str:
        to = self.random.choice(
            ("utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb4 COLLATE utf8mb4_bin", "utf8mb4", "latin1")
        )
        return self._alter(
            table, self.random.choice((f"CONVERT TO CHARACTER SET {to}", f"DEFAULT CHARACTER SET = {to}"))
        )

    def _database(self, _: Mapping[str, Any]) -> str:
        name = quoted(self.cased(self.random.choice(DATABASES)))
        drop = f"DROP DATABASE {quoted(self.cased(DATABASES[2]))}"
        return self.random.choice(
            (
                f"CREATE DATABASE IF NOT EXISTS {name}",
                f"ALTER DATABASE {name} COLLATE utf8mb4_bin",
                drop,
                f"ALTER SCHEMA {name} CHARACTER SET latin1",
                f"ALTER DATABASE {name} CHARACTER SET gbk",
                f"ALTER DATABASE {name} DEFAULT CHARACTER SET utf8mb4",
            )
        )

    def _other(self, table: Mapping[str, Any]) -> str:
        if self.random.random() < 0.5:
            given = {"column": self.column(self.one_column(table)["name"]), "added": self._added(table)}
            return self._alter(table, self.random.choice(ALTERATIONS).format(new=quoted(self.new_name()), **given))
        return self.random.choice(OTHERS).format(name=self._new_table(), one=self.table(table))


def _fitting(literals: Sequence[str], kind: str) -> Sequence[str]:
    """Those that are short enough for a text of the type, where there are any."""
    found = re.match(r"(?:var)?char\((\d+)\)", kind)
    return [text for text in literals if found is None or len(text) - 2 <= int(found[1])] or literals


def _shape(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(column["name"], column["type"]) for column in table["columns"]]
