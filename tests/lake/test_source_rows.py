"""Rows that were too large for a message, read whole from the database (``on_handle_key_only: source``).

The database is MariaDB, whatever the TSO; it records the TSOs that it is asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import every_type
import mariadb
import pytest
from changefeed import ID, Changefeed, Source, at
from every_type import COLUMNS, DECLARED, VALUES, sql_value
from pyspark import cloudpickle

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Column, RowChange
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.gold.windows import Applied

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

MISSING = mariadb.missing()
for module in (mariadb, every_type, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(module)  # Spark's workers do not have the tests
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

CREATE = f"CREATE TABLE shop.typed ({DECLARED}, PRIMARY KEY (k, t)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
CUT_FEED = {
    "gold": {"on_handle_key_only": "source"},
    "source": "mysql://reader@127.0.0.1:4000/?secret=lake/tidb",
}
BY_NUMBER = {"kind": "2", "flags": "5", "full": str(2**64 - 1)}
"""ENUM and SET as Open Protocol has them."""
KEY = ("k", "t")


@dataclass(frozen=True)
class Snapshots:
    """Snapshots of MariaDB."""

    port: int
    tso: int = 0

    def __call__(self, tso: int) -> Snapshots:
        return replace(self, tso=tso)

    def connect(self) -> Any:
        connection = mariadb.connect(self.port)
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO asked.tsos VALUES ({self.tso})")
        return connection


@dataclass(frozen=True)
class NoVersions(Snapshots):
    """A TiDB that has collected its garbage."""

    def connect(self) -> Any:
        raise ConfigError("TiDB has no versions that old")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with mariadb.mariadb(tmp_path_factory.mktemp("mariadb")) as port:
        yield port


def execute(port: int, *statements: str) -> list[Any]:
    """The rows of the last statement."""
    connection = mariadb.connect(port)
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        found = list(cursor.fetchall())
    connection.close()
    return found


@pytest.fixture(autouse=True)
def empty(port: int) -> None:
    databases = (f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}" for name in ("shop", "asked"))
    execute(port, *"; ".join(databases).split("; "), "CREATE TABLE asked.tsos (tso bigint unsigned)")


def asked(port: int) -> set[int]:
    return {tso for (tso,) in execute(port, "SELECT tso FROM asked.tsos")}


def apply(feed: Changefeed, snapshots: Snapshots) -> Applied:
    return windows.apply(feed.lake, feed.run.gold_config, source=snapshots)


def cut(change: RowChange, key: Sequence[str]) -> RowChange:
    """The change as a message that was too large has it."""

    def kept(image: Any) -> Any:
        return None if image is None else {name: image[name] for name in key}

    columns = tuple(column for column in change.columns if column.name in key)
    return replace(change, columns=columns, before=kept(change.before), after=kept(change.after), handle_only=True)


def typed_source(protocol: str) -> Source:
    form = "index" if protocol == "open-protocol" else "name"
    columns = [
        Column(name=name, type=kind, key=name in KEY, by=form if kind.startswith(("enum", "set")) else None)
        for name, kind, *_ in COLUMNS
    ]
    return Source(table="typed", columns=tuple(columns))


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["canal-json", "open-protocol", "simple"])
def test_a_row_that_was_cut_is_whole_for_every_type(
    spark: SparkSession, broker: Broker, port: int, tmp_path: Path, protocol: str
) -> None:
    """As the same row is that came whole."""
    options = {"large-message-handle-option": "handle-key-only"}
    feed = Changefeed(
        spark, broker, tmp_path, protocol=protocol, schema=f"{CREATE};\n", options=options, described=CUT_FEED
    )
    source = typed_source(protocol)
    literals = [sql_value(kind, text) for _, kind, text, _ in VALUES]
    execute(port, CREATE, *(f"INSERT INTO shop.typed VALUES ({k}, 'key', {', '.join(literals)})" for k in (1, 2)))
    texts = [text for _, _, text, _ in VALUES]
    if protocol == "open-protocol":
        texts = [BY_NUMBER.get(name, text) for name, _, text, _ in VALUES]
    whole, too_large = (source.insert(at(second), second, "key", *texts) for second in (1, 2))
    feed.send(0, whole, cut(too_large, KEY))
    feed.resolve(at(3))
    feed.load()
    assert apply(feed, Snapshots(port)).blocked == {}
    rows = feed.rows("typed")
    assert rows[2] == rows[1]
    assert asked(port) == {at(2)}


NOTES = Source(table="notes", columns=(ID, Column(name="v", type="longtext"), Column(name="w", type="int")))
NOTES_SCHEMA = "CREATE TABLE shop.notes (id bigint PRIMARY KEY, v longtext, w int)"


@pytest.fixture
def notes(spark: SparkSession, broker: Broker, port: int, tmp_path: Path) -> Changefeed:
    execute(port, NOTES_SCHEMA, "INSERT INTO shop.notes VALUES (1, 'new', 1), (3, 'three', 3), (4, 'four', 4)")
    options = {"large-message-handle-option": "handle-key-only"}
    return Changefeed(spark, broker, tmp_path, schema=f"{NOTES_SCHEMA};\n", options=options, described=CUT_FEED)


@pytest.mark.long
def test_only_the_newest_change_of_a_key_is_read(notes: Changefeed, port: int) -> None:
    notes.send(0, *(NOTES.insert(at(1), number, "old", 0) for number in (1, 2, 5)))
    notes.send(0, cut(NOTES.update(at(2), (1, "old", 0), (1, "between", 0)), ["id"]))
    notes.send(0, cut(NOTES.update(at(3), (1, "between", 0), (1, "new", 1)), ["id"]))
    notes.send(0, cut(NOTES.insert(at(3), 3, "three", 3), ["id"]), cut(NOTES.delete(at(4), 2, "old", 0), ["id"]))
    notes.send(0, cut(NOTES.update(at(5), (5, "old", 0), (5, "large", 0)), ["id"]))
    notes.send(0, NOTES.update(at(6), (5, "large", 0), (5, "small", 5)))
    notes.resolve(at(7))
    notes.load()
    assert apply(notes, Snapshots(port)).blocked == {}
    assert notes.rows("notes") == {1: ("new", 1), 3: ("three", 3), 5: ("small", 5)}
    assert asked(port) == {at(3)}
    assert list((notes.folder / "checkpoints").glob("gold_*/source/*")) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        pytest.param(NoVersions, "no versions that old", id="no versions"),
        pytest.param(Snapshots, r'TiDB has 0 rows with the key \{"id": "9"\}', id="no row"),
    ],
)
def test_a_row_that_cannot_be_read_blocks_its_table_before_it_until_it_can(
    notes: Changefeed, port: int, versions: type[Snapshots], reason: str
) -> None:
    notes.send(0, NOTES.insert(at(1), 1, "old", 0), cut(NOTES.insert(at(2), 9, "nine", 9), ["id"]))
    notes.send(0, NOTES.insert(at(3), 10, "later", 10))
    notes.resolve(at(4))
    notes.load()
    stopped = apply(notes, versions(port)).blocked
    assert set(stopped) == {("shop", "notes")}
    assert notes.rows("notes") == {1: ("old", 0)}
    assert re.search(reason, stopped["shop", "notes"])
    execute(port, "INSERT INTO shop.notes VALUES (9, 'nine', 9)")
    assert apply(notes, Snapshots(port)).blocked == {}
    assert notes.rows("notes") == {1: ("old", 0), 9: ("nine", 9), 10: ("later", 10)}


@pytest.mark.long
def test_newest_change_below_an_unreadable_row_is_whole(notes: Changefeed, port: int) -> None:
    """Up to the end of the window another change of its key is the newest, and the cut one need not be read."""
    notes.send(0, NOTES.insert(at(1), 1, "old", 0), cut(NOTES.update(at(2), (1, "old", 0), (1, "new", 1)), ["id"]))
    notes.send(0, cut(NOTES.insert(at(3), 9, "nine", 9), ["id"]), NOTES.update(at(4), (1, "new", 1), (1, "newer", 2)))
    notes.resolve(at(5))
    notes.load()
    assert set(apply(notes, Snapshots(port)).blocked) == {("shop", "notes")}
    assert notes.rows("notes") == {1: ("new", 1)}


@pytest.mark.long
def test_of_a_row_that_cannot_be_read_two_versions_are_asked_for(notes: Changefeed, port: int) -> None:
    """The table then is merged up to before the first of them, with the rows below it that can be read."""
    notes.send(0, NOTES.insert(at(1), 1, "old", 0), cut(NOTES.insert(at(2), 3, "three", 3), ["id"]))
    notes.send(0, *(cut(NOTES.insert(at(second), 9, "nine", second), ["id"]) for second in (3, 4, 5, 6)))
    notes.send(0, NOTES.insert(at(7), 4, "four", 4))
    notes.resolve(at(8))
    notes.load()
    assert set(apply(notes, Snapshots(port)).blocked) == {("shop", "notes")}
    assert asked(port) == {at(2), at(5), at(6)}
    assert notes.rows("notes") == {1: ("old", 0), 3: ("three", 3)}
    execute(port, "INSERT INTO shop.notes VALUES (9, 'nine', 6)")
    assert apply(notes, Snapshots(port)).blocked == {}
    assert notes.rows("notes") == {1: ("old", 0), 3: ("three", 3), 4: ("four", 4), 9: ("nine", 6)}
