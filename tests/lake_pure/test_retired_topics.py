"""Topics that are retired because their tables are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from ticdc_lakehouse.catalog import Layer, Values
from ticdc_lakehouse.gold.retired_topics import (
    UNSEEN,
    LastChanges,
    MinWatermarkByTopic,
    Topics,
    Watermarks,
    retired_topics,
    tables_of,
    topics_among,
)
from ticdc_lakehouse.gold.watermark import _without_retired
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import Statement

T, U = TableName("d", "t"), TableName("d", "u")
LIVE = TableState(lake_name="f_d_t", stable_id="f_d_t__data", version=1, applied_tso=10)
KEPT = TableState(
    lake_name="f_d_t",
    stable_id="f_d_t__data",
    version=1,
    applied_tso=5,
    stop=StopReason(kind=StopKind.DROPPED, commit_ts=5),
)


def statements(*texts: tuple[int, str]) -> list[tuple[int, Statement]]:
    return [(tso, statement) for tso, text in texts for statement in read_ddl(text, "d", None)]


def of_feed(_database: str, table: str) -> bool:
    return table != "hidden"


def retired_among(
    last: LastChanges, watermarks: MinWatermarkByTopic, since: Published, ddls: list[tuple[int, Statement]]
) -> set[str]:
    return {*topics_among(last, watermarks, since, ddls, of_feed).retired}


@pytest.mark.parametrize(
    ("ddls", "last", "gone"),
    [
        ([(12, "DROP TABLE t")], 11, True),
        ([(12, "DROP TABLE t")], 12, True),
        ([(12, "DROP TABLE t")], 13, False),
        ([(12, "DROP DATABASE d")], 11, True),
        ([(12, "RENAME TABLE t TO u")], 11, True),
        ([(12, "RENAME TABLE t TO x, u TO t, x TO u")], 11, False),
        ([(12, "RENAME TABLE u TO t"), (12, "RENAME TABLE t TO x"), (12, "RENAME TABLE x TO u")], 11, False),
        ([(12, "DROP DATABASE D")], 11, True),
        ([(12, "DROP TABLE t"), (13, "RECOVER TABLE t")], 11, False),
        ([(12, "DROP TABLE t"), (13, "CREATE TABLE t (id INT PRIMARY KEY)")], 11, False),
        ([(12, "DROP TABLE t"), (13, "CREATE TABLE t LIKE u")], 11, False),
        ([(12, "DROP TABLE u")], 11, False),
        ([(12, "TRUNCATE TABLE t")], 11, False),
        ([], 9, False),
    ],
)
def test_topic_is_retired_with_its_last_table(ddls: list[tuple[int, str]], last: int, gone: bool) -> None:
    now = Published(tso=10, tables={T: LIVE, U: LIVE})
    assert retired_among({"topic": {T: last}}, {"topic": 11}, now, statements(*ddls)) == ({"topic"} if gone else set())


@pytest.mark.parametrize("text", ["RENAME TABLE `t` TO `e`.`u`", "RENAME TABLE `T` TO `e`.`t`"])
def test_a_rename_that_does_not_tell_the_database_may_be_of_any(text: str) -> None:
    """It arrives in the topic of the old name."""
    now = Published(tso=10, tables={T: LIVE})
    renamed = [(12, statement) for statement in read_ddl(text, "e", None)]
    another = statements((12, "RENAME TABLE x TO y"))
    assert tables_of(renamed[0][1]) == []
    assert retired_among({"topic": {T: 11}}, {"topic": 11}, now, [*another, *renamed]) == {"topic"}


def test_rows_of_a_renamed_table_are_waited_for() -> None:
    now = Published(tso=10, tables={T: LIVE})
    for watermark, gone in ((10, set()), (11, {"topic"})):
        assert (
            retired_among({"topic": {T: 9}}, {"topic": watermark}, now, statements((12, "RENAME TABLE t TO u"))) == gone
        )


def test_a_table_that_a_new_ddl_creates_is_waited_for() -> None:
    """Its rows may not have been read yet."""
    now = Published(tso=10, tables={T: KEPT, U: LIVE})
    assert retired_among({"topic": {T: 5}}, {}, now, statements((12, "CREATE TABLE t (id INT PRIMARY KEY)"))) == set()
    assert retired_among({"topic": {T: 5}}, {}, now, statements((12, "RENAME TABLE u TO t"))) == set()


def test_an_exchange_arrives_in_the_topic_of_either_table() -> None:
    (exchange,) = (each for _, each in statements((11, "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u")))
    assert tables_of(exchange) == []


def test_retired_topic_stays_retired() -> None:
    assert retired_among({"topic": {T: 9}}, {}, Published(tso=10, tables={U: LIVE}), []) == {"topic"}
    assert retired_among({"topic": {T: 5}}, {}, Published(tso=10, tables={T: KEPT}), []) == {"topic"}


@pytest.mark.parametrize(
    ("texts", "gone"),
    [
        ([(7, "DROP TABLE `d`.`t`")], True),
        ([(7, "DROP DATABASE `d`")], True),
        ([(3, "DROP TABLE `d`.`t`")], False),
        ([(7, "DROP TABLE `d`.`t`"), (8, "CREATE TABLE `d`.`t` (id INT PRIMARY KEY)")], False),
        ([(7, "ALTER TABLE `d`.`t` ADD COLUMN c INT")], False),
        ([], False),
    ],
)
def test_topic_of_a_table_that_was_dropped_while_it_was_blocked_stays_retired(
    texts: list[tuple[int, str]], gone: bool
) -> None:
    """Gold shows the table (``on_drop: keep``) with the reason for which it was blocked."""
    blocked = replace(KEPT, stop=StopReason(kind=StopKind.UNSUPPORTED_DDL, commit_ts=5, needs_override=True))
    now = Published(tso=10, tables={T: blocked, U: LIVE}, topics={"t": frozenset({T})})
    lake = ddls(*(("t", at, text) for at, text in texts))
    found = retired_topics(lake, "f", now, [("t", 0)], read_through(UNSEEN), of_feed)
    assert found == Topics(retired={"t": UNSEEN} if gone else {}, empty=set())


def test_a_table_that_gold_does_not_know_yet_may_go_on() -> None:
    assert retired_among({"topic": {T: 11}}, {}, Published(tso=10, tables={}), []) == set()
    assert retired_among({"topic": {T: 9}}, {}, Published(), []) == set()


def test_topic_is_retired_when_all_its_tables_are_dropped_or_renamed() -> None:
    now = Published(tso=10, tables={T: LIVE, U: LIVE})
    both = {"one": {T: 9, U: 9}, "other": {T: 9}}
    assert retired_among(both, {}, now, statements((12, "DROP TABLE t"))) == {"other"}
    assert retired_among(both, {}, now, statements((12, "DROP TABLE t, u"))) == {"one", "other"}


def test_tables_of_a_topic_are_those_of_its_ddls_too() -> None:
    """A table that is dropped before its first row; one that is renamed, whose rows go to another topic."""
    created = statements((11, "CREATE TABLE t (id INT PRIMARY KEY)"))[0][1]
    renamed = statements((11, "RENAME TABLE t TO u"))[0][1]
    assert tables_of(created) == tables_of(renamed) == [T]
    now = Published(tso=10, tables={U: LIVE})
    assert retired_among({"topic": {T: 11}}, {}, now, statements((12, "DROP TABLE t"))) == {"topic"}
    assert retired_among({"topic": {T: 11}}, {}, now, []) == set(), "its first row may come"
    assert retired_among({"topic": {}}, {}, now, []) == set()


def test_topic_of_tables_that_the_feed_leaves_out_is_not_retired() -> None:
    """They are never in gold; a table of the feed may get its first row in their topic."""
    now, hidden = Published(tso=10, tables={T: LIVE}), TableName("d", "hidden")
    last = {"hidden": {hidden: 9}, "new": {hidden: 11}, "with": {hidden: 9, T: 9}, "gone": {hidden: 9, U: 9}}
    assert topics_among(last, {}, now, [], of_feed) == Topics(retired={}, empty={"hidden", "new", "gone"})
    dropped = statements((12, "DROP TABLE hidden"))
    assert topics_among(last, {}, now, dropped, of_feed) == Topics(
        retired={"hidden": 12, "new": 12, "gone": 12}, empty=set()
    )


@dataclass(frozen=True)
class Events:
    """A lake that gives these rows for any query."""

    found: Sequence[Values]

    def exists(self, _layer: Layer, _name: str) -> bool:
        return True

    def table(self, _layer: Layer, name: str) -> str:
        return name

    def columns(self, _layer: Layer, _name: str) -> list[str]:
        return []

    def rows(self, _sql: str) -> list[Values]:
        return [*self.found]


def ddls(*sent: tuple[str, int, str]) -> Events:
    """Of topic, commit_ts and text."""
    none = {"partition": None, "database": "d", "table": None}
    return Events([{**none, "kind": "ddl", "topic": topic, "last": at, "query": query} for topic, at, query in sent])


def read_through(confirmed: int) -> Watermarks:
    partitions = ((topic, number) for topic in ("t", "u", "tmp") for number in (0, 1))
    return Watermarks(batch=1, highest={}, confirmed=dict.fromkeys(partitions, confirmed))


@pytest.mark.parametrize(("second", "empty"), [(0, {"tmp"}), (1, set())])
def test_a_name_within_a_rename_has_no_table(second: int, empty: set[str]) -> None:
    """Each RENAME of one statement is sent to the topic of its old name (wire.md 2.4), also of one that no table has
    before or after. Of statements of their own, `tmp` is a table in between."""
    now = Published(tso=10, tables={T: LIVE, U: LIVE})
    lake = ddls(
        ("t", 12, "RENAME TABLE `d`.`t` TO `d`.`tmp`;"),
        ("u", 12 + second, "RENAME TABLE `d`.`u` TO `d`.`t`;"),
        ("tmp", 12 + 2 * second, "RENAME TABLE `d`.`tmp` TO `d`.`u`;"),
    )
    found = retired_topics(lake, "f", now, [("t", 0), ("u", 0), ("tmp", 0)], read_through(UNSEEN), of_feed)
    assert found == Topics(retired={}, empty=empty)


@pytest.mark.parametrize("at", [9, 10])
@pytest.mark.parametrize("query", ["ALTER TABLE t ADD c INT", "TRUNCATE TABLE t"])
def test_a_table_that_had_only_ddls_is_not_gone(query: str, at: int) -> None:
    """Gold does not have it before its first row."""
    now = Published(tso=10, tables={U: LIVE})
    found = retired_topics(ddls(("t", at, query)), "f", now, [("t", 0)], read_through(UNSEEN), of_feed)
    assert found == Topics(retired={}, empty={"t"})
    dropped = ddls(("t", at, query), ("t", 12, "DROP TABLE t"))
    found = retired_topics(dropped, "f", now, [("t", 0)], read_through(UNSEEN), of_feed)
    assert found == Topics(retired={"t": 12}, empty=set())


@pytest.mark.parametrize(("confirmed", "retired"), [(10, set()), (11, {"t"})])
def test_rows_of_a_renamed_table_are_there_once_other_topics_confirm_it(confirmed: int, retired: set[str]) -> None:
    """TiCDC sends the old topic no watermark any more if it restarts right after the RENAME."""
    now = Published(tso=10, tables={T: LIVE}, topics={"t": frozenset({T})})
    lake = ddls(("t", 12, "RENAME TABLE `d`.`t` TO `d`.`u`;"))
    assert {*retired_topics(lake, "f", now, [("t", 0)], read_through(confirmed), of_feed).retired} == retired


@pytest.mark.parametrize(("others", "waited_for"), [(15, True), (19, True), (20, False)])
def test_rows_before_a_drop_that_other_topics_have_not_passed_are_waited_for(others: int, waited_for: bool) -> None:
    """The table is shown at that watermark, and a partition of its topic may be unread."""
    now = Published(tso=10, tables={T: LIVE, U: LIVE}, topics={"t": frozenset({T}), "u": frozenset({U})})
    highest = {("t", 0): 15, ("t", 1): UNSEEN, ("u", 0): others}
    watermarks = replace(read_through(UNSEEN), highest=highest)
    found = _without_retired(ddls(("t", 20, "DROP TABLE `d`.`t`")), "f", now, watermarks, [], of_feed)
    assert found == (highest if waited_for else {("u", 0): others})
