"""When a window makes the view of irregular values again: Spark resolves each table that the view counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ticdc_lakehouse.gold.apply_plan import TableOutcome
from ticdc_lakehouse.gold.publication import counts_change
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.policy import OnIrregular, Policy, Views
from ticdc_lakehouse.schema.script import tables_from_sql

CONFIG = GoldConfig(feed="f", time_zone="UTC")
TEXTS = replace(CONFIG, policy=lambda _database, _table: Policy(on_irregular=OnIrregular.TEXT))
T = "CREATE TABLE d.t (id BIGINT PRIMARY KEY, day DATE)"
PLAIN = "CREATE TABLE d.u (id BIGINT PRIMARY KEY)"


def outcome(sql: str, *, new: bool = True, version: int = 1) -> TableOutcome:
    (table,) = tables_from_sql(sql)
    lake_name = f"f_{table.database}_{table.table}"
    named = Definition(
        table=table, commit_ts=1, origin=Origin.DDL, lake_name=lake_name, stable_id=f"{lake_name}__data", named_at=1
    )
    state = TableState(lake_name=lake_name, stable_id=named.stable_id, version=version, applied_tso=9)
    return TableOutcome(name=table.name, state=state, definition=named, new_definitions=(named,) * new)


def published(*outcomes: TableOutcome) -> Published:
    definitions = {o.state.stable_id: o.definition for o in outcomes if o.definition}
    return Published(tso=5, number=1, tables={o.name: o.state for o in outcomes}, definitions=definitions)


def changes(config: GoldConfig, before: list[str], *now: TableOutcome) -> bool:
    return counts_change(config, published(*(outcome(sql, new=False) for sql in before)), now)


@pytest.mark.parametrize(
    "now",
    [
        (outcome(T, new=False, version=2), outcome(PLAIN, new=False)),
        (outcome("CREATE TABLE d.t (id BIGINT PRIMARY KEY, day DATE, n INT, v VARCHAR(9))"), outcome(PLAIN, new=False)),
        (outcome(T, new=False), outcome("CREATE TABLE d.u (id BIGINT PRIMARY KEY, v TEXT)")),
        (outcome(T, new=False), outcome(PLAIN, new=False), outcome("CREATE TABLE d.w (id BIGINT PRIMARY KEY)")),
        (outcome(T, new=False),),
    ],
    ids=["rows", "column without dates", "the other table", "a table without dates", "a table without dates ends"],
)
def test_it_stays_where_nothing_that_it_counts_changes(now: tuple[TableOutcome, ...]) -> None:
    assert not changes(CONFIG, [T, PLAIN], *now)


@pytest.mark.parametrize(
    "now",
    [
        (outcome("CREATE TABLE d.t (id BIGINT PRIMARY KEY)"), outcome(PLAIN, new=False)),
        (outcome("CREATE TABLE d.t (id BIGINT PRIMARY KEY, day DATE, at DATETIME)"), outcome(PLAIN, new=False)),
        (outcome(T, new=False), outcome("CREATE TABLE d.u (id BIGINT PRIMARY KEY, price DECIMAL(9,2))")),
        (outcome("CREATE TABLE d.renamed (id BIGINT PRIMARY KEY, day DATE)"), outcome(PLAIN, new=False)),
        (outcome(T, new=False), outcome(PLAIN, new=False), outcome("CREATE TABLE e.t (id BIGINT PRIMARY KEY, d DATE)")),
        (outcome(PLAIN, new=False),),
    ],
    ids=["a date less", "a date more", "a DECIMAL", "another name", "a new table", "a table ends"],
)
def test_it_is_made_again_where_it_must_count_something_else(now: tuple[TableOutcome, ...]) -> None:
    assert changes(CONFIG, [T, PLAIN], *now)


def test_dates_that_are_shown_as_texts_do_not_matter() -> None:
    assert not changes(TEXTS, [T], outcome("CREATE TABLE d.t (id BIGINT PRIMARY KEY, day DATE, at DATETIME)"))
    now = outcome("CREATE TABLE d.t (id BIGINT PRIMARY KEY, day DATE, n DECIMAL(9,2))")
    assert changes(replace(TEXTS, views=Views.NONE), [T], now)
