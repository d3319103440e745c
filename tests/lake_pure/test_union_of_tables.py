"""The view that counts irregular values, for many tables; without Spark."""

from __future__ import annotations

import re

from ticdc_lakehouse.gold.irregular import _union


def depth(text: str) -> int:
    """The most brackets that are open at once."""
    deepest = now = 0
    for bracket in re.findall(r"[()]", text):
        now += 1 if bracket == "(" else -1
        deepest = max(deepest, now)
    return deepest


def test_a_union_of_thousands_of_queries_is_not_deep() -> None:
    """Spark reads ``a UNION ALL b UNION ALL c`` by recursion, as deep as there are queries."""
    queries = [f"SELECT {number} AS n" for number in range(5000)]
    union = _union(queries)
    assert depth(union) == 13
    assert not re.search(r"UNION ALL SELECT \d+ AS n UNION ALL", union)
    assert [f"SELECT {n} AS n" for n in re.findall(r"SELECT (\d+) AS n", union)] == queries


def test_a_union_of_few_queries() -> None:
    assert _union(["SELECT 1"]) == "SELECT 1"
    assert _union(["SELECT 1", "SELECT 2"]) == "(SELECT 1) UNION ALL (SELECT 2)"
    assert _union([]).endswith("WHERE false")
