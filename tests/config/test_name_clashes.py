"""Tables that would get one name in the lake."""

from __future__ import annotations

import time

from ticdc_lakehouse.config.name_clashes import clashes
from ticdc_lakehouse.schema.names import TableName

MANY = 40_000


def test_each_two_tables_of_one_name_are_named() -> None:
    one = "one", {TableName("a", "t"): "t", TableName("B", "T"): "t", TableName("a", "u"): "u"}
    other = "two", {TableName("c", "t"): "t"}
    pairs = [each.partition(" would both be called t: ")[0] for each in clashes([one, other])]
    assert pairs == [
        "table a.t of feed one and table B.T of feed one",
        "table a.t of feed one and table c.t of feed two",
        "table B.T of feed one and table c.t of feed two",
    ]


def test_the_names_of_a_large_database_are_compared_in_a_moment() -> None:
    """Each command and each notebook of a feed compares them: two by two they took half a minute."""
    names = {TableName("shop", f"t{number}"): f"shop_t{number}" for number in range(MANY)}
    began = time.monotonic()
    assert list(clashes([("f", names)])) == []
    assert time.monotonic() - began < 10
