"""Names in the lake: one table each, whatever TiDB's names are, and the same ones after a run that died."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import ticdc_lakehouse.planning.naming
from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.planning.naming import NameInUse, NamesNeeded, Naming, TakenNames, dropped_name
from ticdc_lakehouse.schema.names import TableName

T = TableName("d", "t")


def naming(*taken: NameInUse) -> Naming:
    return Naming(feed="f", taken=TakenNames(names=taken))


def taken(table: TableName, name: str, stable_id: str = "", feed: str = "f") -> NameInUse:
    return NameInUse(feed=feed, table=table, lake_name=name, stable_id=stable_id or f"{name}__data")


def test_plain_names_are_joined_and_stay() -> None:
    names = naming()
    assert [names.lake_name(T), names.lake_name(T)] == ["f_d_t", "f_d_t"]
    assert naming(taken(T, "f_d_t")).lake_name(T) == "f_d_t"


@pytest.mark.parametrize(
    "tables",
    [
        (("x", "y_z"), ("x_y", "z")),
        (("d", "a b"), ("d", "a_b"), ("d", "a.b")),
        (("d", "表"), ("d", "桌")),
        (("d", "l" * 200), ("d", "l" * 201)),
    ],
)
def test_no_two_tables_share_a_name(tables: tuple[tuple[str, str], ...]) -> None:
    """Catalogs take letters, digits and ``_``, and ignore case."""
    names = naming()
    lake_names = [names.lake_name(TableName(*table)) for table in tables]
    found = [*lake_names, *(names.new_stable_id(TableName(*table), 0) for table in tables)]
    assert len({name.lower() for name in found}) == len(found)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_") for name in found)


def test_one_table_has_one_name_however_it_is_spelled() -> None:
    assert {naming().lake_name(TableName(*name)) for name in (("d", "t"), ("d", "T"), ("D", "t"))} == {"f_d_t"}
    assert naming(taken(T, "f_d_t")).lake_name(TableName("D", "T")) == "f_d_t"
    assert naming().lake_name(TableName("d", "ÄB")) == naming().lake_name(TableName("D", "äb"))


@pytest.mark.parametrize("other", [taken(TableName("d_t", ""), "f_d_t"), taken(T, "f_d_t", feed="f_d")])
def test_a_name_of_the_history_is_not_given_again(other: NameInUse) -> None:
    assert naming(other).lake_name(T) == naming(other).lake_name(T) != "f_d_t"


@pytest.mark.parametrize("name", ["events", "quarantine", "accounting", "schemas"])
def test_no_view_stands_where_another_feed_has_its_own(name: str) -> None:
    """Feed f_d has a table f_d_events in silver."""
    table, plain = TableName("d", name), f"f_d_{name}"
    assert naming().lake_name(table) == plain
    feeds = frozenset({"f", "f_d"})
    beside = Naming(feed="f", taken=TakenNames(feeds=feeds))
    assert beside.lake_name(table) == beside.lake_name(table) != plain
    named = Naming(feed="f", taken=TakenNames(names=(taken(table, plain),), feeds=feeds))
    assert named.lake_name(table) == plain, "its own view"


@pytest.mark.parametrize("name", ["t__data", "t__data_17", "t__dropped_17", "t__renaming"])
def test_no_view_stands_where_rows_lie(name: str) -> None:
    assert naming().lake_name(("d", name)).startswith(f"f_d_{name}_")


def test_rows_of_a_new_table_lie_where_none_lay() -> None:
    assert naming().new_stable_id(T, 9) == "f_d_t__data"
    assert naming(taken(T, "f_d_t")).new_stable_id(T, 9) == "f_d_t__data_9"
    names = naming()
    assert [names.new_stable_id(T, 9), names.new_stable_id(T, 10)] == ["f_d_t__data", "f_d_t__data_10"]


def test_a_table_that_was_renamed_leaves_its_rows_where_they_lie() -> None:
    assert naming(taken(TableName("d", "u"), "f_d_u", "f_d_t__data")).new_stable_id(T, 9) == "f_d_t__data_9"


def test_a_table_has_its_last_name() -> None:
    """Whose it is at a commit_ts: that of one which it has just got is not."""
    used = [("t", "one", 0), ("tmp", "one", 5), ("u", "one", 5), ("t", "two", 7), ("t", "three", 9)]
    history = [
        NameInUse(feed="f", table=TableName("d", t), lake_name="", stable_id=d, named_at=at) for t, d, at in used
    ]
    found = [naming(*history).ids_named_at(T, commit_ts) for commit_ts in (1, 5, 6, 7, 8, 10)]
    assert found == [{"one"}, {"one"}, set(), set(), {"two"}, {"two", "three"}]
    assert naming(*history).ids_named_at(TableName("d", "u"), 6) == {"one"}


@pytest.mark.parametrize(
    "answer",
    [
        lambda names: names.lake_name(T),
        lambda names: names.new_stable_id(T, 9),
        lambda names: names.ids_named(T),
        lambda names: names.ids_named_at(T, 9),
        lambda names: names.ids_named_between(T, 1, 9),
        lambda names: names.got_name_at(T, 9),
        lambda names: names.left_name(T, 9),
    ],
)
def test_without_the_names_that_are_taken_nothing_is_answered(answer: Callable[[Naming], object]) -> None:
    with pytest.raises(NamesNeeded):
        answer(Naming(feed="f"))


def test_a_reserved_id_is_taken_also_once_the_names_are_read() -> None:
    """An export's tables have theirs before they are published."""
    without = Naming(feed="f", reserved=frozenset({"f_d_t__data"}))
    assert replace(without, taken=TakenNames()).new_stable_id(T, 9) == "f_d_t__data_9"


def test_a_name_that_a_table_of_an_export_gets_in_this_window_is_taken() -> None:
    orders, eu_orders = TableName("shop_eu", "orders"), TableName("shop", "eu_orders")
    without = Naming(feed="f", loaded={"f_shop_eu_orders": orders})
    names = replace(without, taken=TakenNames())
    assert names.lake_name(eu_orders).startswith("f_shop_eu_orders_")
    assert names.lake_name(orders) == "f_shop_eu_orders"


def test_a_template_gives_the_names() -> None:
    names = Naming(feed="f", taken=TakenNames(), template="{database}_{table}")
    assert names.lake_name(T) == "d_t"
    assert names.lake_name(TableName("d", "a b")).startswith("d_a_b_d_a_b_")
    assert names.new_stable_id(T, 7) == "d_t__data"


def test_a_template_that_gives_two_tables_one_name_is_refused() -> None:
    names = Naming(feed="f", taken=TakenNames(), template="{table}")
    both = [(table, names.lake_name(table)) for table in (T, TableName("e", "t"))]
    with pytest.raises(ConfigError, match=r"table e.t would be called t, which has table d.t of feed f"):
        names.check_distinct(both)
    names.check_distinct([(T, "t"), (TableName("d", "u"), ""), (TableName("d", "v"), "")])
    for reserved in ("x__data", "x__dropped_7", "x__renaming"):
        with pytest.raises(ConfigError, match="is reserved"):
            names.lake_name(TableName("d", reserved))


def test_a_schema_of_a_database_holds_its_tables() -> None:
    names = Naming(feed="f", taken=TakenNames(), template="{table}", schema_template="{database}")
    assert [names.lake_name(T), names.lake_name(TableName("e", "t"))] == ["d.t", "e.t"]
    assert names.new_stable_id(T, 7) == "d.t__data"
    assert dropped_name("d.t__data_7") == "d.t__dropped_7"
    odd = names.lake_name(TableName("a b", "t"))
    assert re.fullmatch(r"a_b_a_b_[0-9a-f]{8}\.t", odd)
    of_f = TakenNames(names=(taken(T, "d.t"),), feeds=frozenset({"f", "g"}))
    other = Naming(feed="g", taken=of_f, template="{table}", schema_template="{database}")
    with pytest.raises(
        ConfigError, match=r"table D.T would be called d.t, which has table d.t of feed f: .*gold.schema"
    ):
        other.lake_name(TableName("D", "T"))


def test_a_name_without_the_feed_is_free_once_that_feed_is_removed() -> None:
    """The tables that are left of one keep their names."""
    of_f = TakenNames(names=(taken(T, "d_t"), taken(TableName("d", "u"), "d_u")), feeds=frozenset({"f", "g"}))
    names = Naming(feed="g", taken=of_f, template="{database}_{table}")
    with pytest.raises(ConfigError, match=r"would be called d_t, which has table d.t of feed f: .*remove feed f first"):
        names.lake_name(T)
    removed = replace(of_f, feeds=frozenset({"g"}), left_over=frozenset({"d_u"}))
    names = replace(names, taken=removed)
    assert names.lake_name(T) == "d_t"
    with pytest.raises(ConfigError, match=r"would be called d_u, which has table d.u of feed f"):
        names.lake_name(TableName("d", "u"))


def test_a_name_of_a_schema_takes_none_of_another_feeds_own() -> None:
    names = Naming(feed="f", taken=TakenNames(feeds=frozenset({"f", "f_d"})), schema_template="{feed}")
    assert names.lake_name(TableName("d", "events")) == "f.f_d_events"
    assert names.lake_name(TableName("x", "y_z")) == "f.f_x_y_z"
    assert re.fullmatch(r"f\.f_x_y_z_+[0-9a-f]{8}", names.lake_name(TableName("x_y", "z")))


def test_the_examples_in_docstrings_run() -> None:
    result = doctest.testmod(ticdc_lakehouse.planning.naming)
    assert (result.attempted > 0, result.failed) == (True, 0)
