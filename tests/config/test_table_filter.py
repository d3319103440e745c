"""Which tables the patterns of a feed file include and exclude."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.config.table_filter import TableFilter, TablePattern

# (include, exclude, database, table, whether it matches)
FILTERS = [
    (["shop.*"], [], "shop", "orders", True),
    (["shop.*"], [], "SHOP", "Orders", True),
    (["İstanbul.ΟΔΟΣ"], [], "istanbul", "οδοσ", True),
    (["STRASSE.*"], [], "straße", "x", False),
    (["shop.*"], [], "shop2", "orders", False),
    (["shop.*"], ["shop.tmp_*"], "shop", "tmp_1", False),
    (["shop?.o*s"], [], "shop1", "orders", True),
    (["s*.x"], [], "s.y", "x", True),
    (["s*.x"], [], "s", "y.x", False),
    (["a.b.c"], [], "a", "b.c", True),
    (["a.[b]"], [], "a", "b", False),
    (["a.b", "c.d"], [], "c", "d", True),
]


@pytest.mark.parametrize("pattern", ["*.*", "shop.order_?", "my shop.größe", "a.b.c", "$1.#t-2!", "a.x y"])
def test_names_with_odd_characters_are_patterns(pattern: str) -> None:
    assert TablePattern.parse(pattern) == pattern


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["*.*"], ["*.*"], True),
        (["*.*"], ["shop.*"], False),
        (["*.*"], ["*.a*", "*.*"], True),
        (["shop.a", "shop.b_?"], ["SHOP.a", "*.b*"], True),
        (["shop.a", "shop.b"], ["shop.a"], False),
        (["s*.a"], ["s?.a"], False),
        (["s?.a"], ["s*.a"], True),
        (["s?*.a.b"], ["s*.a*"], True),
        (["s*.a"], ["*s.a"], False),
        (["*.*"], [], False),
    ],
)
def test_filter_that_leaves_nothing_is_found(include: list[str], exclude: list[str], expected: bool) -> None:
    assert TableFilter(include=tuple(include), exclude=tuple(exclude)).leaves_nothing is expected


@pytest.mark.parametrize(("include", "exclude", "database", "table", "expected"), FILTERS)
def test_filter_includes_and_excludes_tables_by_pattern(
    include: list[str], exclude: list[str], database: str, table: str, expected: bool
) -> None:
    chosen = TableFilter(include=tuple(include), exclude=tuple(exclude))
    assert chosen.matches(database, table) is expected
