"""One column after the other type, DEFAULT and NULL, with rows from before and after each step.

In strict mode TiDB writes rows again only where values change (`ticdc_lakehouse.schema.unwritten_rows`): what a step
does to the rows that do not store the column may show only many steps later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ticdc_lakehouse.sql.text import quoted

NAME = "hist"
"""What the names of columns with a history begin with."""


@dataclass(frozen=True, slots=True)
class Kin:
    """Types that become each other, and values that most of them can have."""

    types: Sequence[str]
    values: Sequence[str]


KIN = (
    Kin(
        (
            *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INT(3)"),
            *("TINYINT UNSIGNED", "INT UNSIGNED", "BIGINT UNSIGNED"),
        ),
        ("0", "5", "7", "100", "300", "-1"),
    ),
    Kin(
        (
            *("CHAR(2)", "CHAR(9)", "CHAR(20)", "VARCHAR(2)", "VARCHAR(9)", "VARCHAR(20)", "TINYTEXT", "TEXT"),
            *("VARCHAR(9) COLLATE utf8mb4_general_ci", "CHAR(9) CHARACTER SET latin1", "VARCHAR(20) CHARACTER SET gbk"),
        ),
        ("''", "'x'", "'y '", "' '", "'ab'", "'abc'", "'Zé'"),
    ),
    Kin(
        ("BINARY(2)", "BINARY(4)", "VARBINARY(2)", "VARBINARY(9)", "BLOB", "CHAR(4)", "VARCHAR(9)"),
        ("''", "'x'", "'y '", "x'6100'"),
    ),
    Kin(
        ("DATETIME", "DATETIME(1)", "DATETIME(3)", "DATETIME(6)", "DATE"),
        ("'2020-02-29'", "'2021-03-04 05:06:07.8915'"),
    ),
    Kin(("TIMESTAMP NULL", "TIMESTAMP(2) NULL", "TIMESTAMP(6) NULL"), ("'2020-02-29'", "'2021-03-04 05:06:07.8915'")),
    Kin(("TIME", "TIME(1)", "TIME(3)", "TIME(6)"), ("'00:00:00'", "'-12:30:00.55'", "'23:59:59.999'")),
    Kin(
        ("DECIMAL(5,2)", "DECIMAL(10,2)", "DECIMAL(10,4)", "DECIMAL(20)", "DECIMAL(7,3) UNSIGNED", "BIGINT", "INT"),
        ("0", "1", "1.5", "2.345", "-7"),
    ),
    Kin(("FLOAT", "DOUBLE", "FLOAT(7,3)", "DOUBLE(10,3)", "DOUBLE(14,5)", "DOUBLE(8,2)"), ("0", "1.5", "2.3456", "-7")),
    Kin(
        ("ENUM('a','b')", "ENUM('a','b','c')", "ENUM('b','a')", "ENUM('b')", "VARCHAR(9)", "CHAR(3)"),
        ("'a'", "'b'", "'b'"),
    ),
    Kin(("SET('a','b')", "SET('a','b','c')", "SET('b','a')", "SET('b')", "VARCHAR(9)"), ("'a'", "'b'", "'a,b'", "''")),
    Kin(("BIT(1)", "BIT(4)", "BIT(12)", "INT", "TINYINT UNSIGNED"), ("0", "1", "b'1'", "5")),
)


class ColumnHistories:
    """Gives one step after the other of columns that have a history."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._number = 0
        self._dropped: list[str] = []

    def step(self, table: Mapping[str, Any]) -> str:
        """What may stand behind ALTER TABLE, or SET of an UPDATE."""
        known = [column for column in table["columns"] if column["name"].startswith(NAME)]
        if not known or self.random.random() < 0.06:
            return self._add()
        column = self.random.choice(known)
        name = quoted(column["name"])
        makers = {self._modify: 11, self._change: 3, self._default: 3, self._null: 3, self._several: 1, self._other: 2}
        return self.random.choices([*makers], [*makers.values()])[0](name, column)

    def value(self, column: Mapping[str, Any]) -> str:
        """A literal for a column that has a history: one of those that its DEFAULTs have."""
        return self.random.choice(self._kin_of(column).values)

    def _name(self) -> str:
        """A new one, or that of a column that is gone."""
        if self._dropped and self.random.random() < 0.7:
            return self._dropped.pop()
        self._number += 1
        return quoted(f"{NAME}{self._number}")

    def _described(self, kin: Kin) -> str:
        choice = self.random.choice
        kind = choice(kin.types)
        null = choice(("", "", " NOT NULL", " NULL")) if "NULL" not in kind else ""
        default = choice(("", f" DEFAULT {choice(kin.values)}", f" DEFAULT {choice(kin.values[:2])}", " DEFAULT NULL"))
        return f"{kind}{null}{'' if null == ' NOT NULL' and default == ' DEFAULT NULL' else default}"

    def _add(self) -> str:
        return f"ADD COLUMN {self._name()} {self._described(self.random.choice(KIN))}"

    def _kin_of(self, column: Mapping[str, Any]) -> Kin:
        """One of those that have its type; now and then any."""
        kin = [each for each in KIN if any(_word(kind) == column["data_type"] for kind in each.types)]
        return self.random.choice(kin if kin and self.random.random() < 0.93 else KIN)

    def _modify(self, name: str, column: Mapping[str, Any]) -> str:
        return f"MODIFY {name} {self._described(self._kin_of(column))}"

    def _change(self, name: str, column: Mapping[str, Any]) -> str:
        return f"CHANGE {name} {self._name()} {self._described(self._kin_of(column))}"

    def _default(self, name: str, column: Mapping[str, Any]) -> str:
        value = self.random.choice(self._kin_of(column).values)
        return f"ALTER COLUMN {name} {self.random.choice(('DROP DEFAULT', f'SET DEFAULT {value}', 'SET DEFAULT NULL'))}"

    def _null(self, name: str, column: Mapping[str, Any]) -> str:
        return f"MODIFY {name} {column['type']} {self.random.choice(('NULL', 'NOT NULL'))}"

    def _several(self, name: str, column: Mapping[str, Any]) -> str:
        return f"{self._modify(name, column)}, {self._add()}"

    def _other(self, name: str, _: Mapping[str, Any]) -> str:
        """An index, or none: or the column goes, and a later step may make one of its name."""
        if self.random.random() < 0.5:
            return f"ADD {self.random.choice(('INDEX', 'UNIQUE'))} ({name})"
        self._dropped.append(name)
        return f"DROP COLUMN {name}"


def _word(kind: str) -> str:
    return re.split(r"\W", kind, maxsplit=1)[0].lower()
