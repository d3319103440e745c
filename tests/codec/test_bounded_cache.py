"""The cache of what is compiled for tables."""

from __future__ import annotations

import pytest

from ticdc_codec import bounded_cache
from ticdc_codec.bounded_cache import cached


def test_a_missing_value_is_made_once() -> None:
    cache: dict[str, list[int]] = {}
    first = cached(cache, "t", lambda: [1])
    assert cached(cache, "t", lambda: [2]) is first
    assert cache == {"t": [1]}


def test_a_full_cache_is_cleared_only_for_a_missing_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_cache, "_MOST_KEPT", 2)
    cache = {"t": 1, "u": 2}
    assert cached(cache, "u", lambda: 3) == 2
    assert cache == {"t": 1, "u": 2}
    assert cached(cache, "v", lambda: 3) == 3
    assert cache == {"v": 3}
