"""Rows of a table that are listed as different: those that differ in value count, not those that differ in text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import pytest

from ticdc_lakehouse.ops.verify import comparison
from ticdc_lakehouse.ops.verify.chunk import Chunk
from ticdc_lakehouse.ops.verify.compared_table import Checksum
from ticdc_lakehouse.ops.verify.comparison import DifferentRows, Unlisted, _Compared, _list_rows

MOST, CHUNKS = 10, 12


class Sides:
    """Both sides of a table: rows of a chunk are numbered, and each differs in text. ``changed`` differ in value."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *changed: str) -> None:
        self.changed = changed
        self.read: list[str] = []
        monkeypatch.setattr(comparison, "_MOST_LISTED", MOST)
        monkeypatch.setattr(comparison, "_different_rows", self.different_rows)
        monkeypatch.setattr(comparison, "of_keys", self.of_keys)

    def different_rows(self, _spark: object, _source: object, _table: object, chunk: Chunk) -> DifferentRows:
        keys = [f"{chunk.lake} {row}" for row in range(3)]
        lake, source = (Counter({(key, f"{key} {side}"): 1 for key in keys}) for side in ("lake", "TiDB"))
        return DifferentRows(chunk=chunk, lake=lake, source=source)

    def of_keys(
        self, _spark: object, _source: object, _table: object, chunk: Chunk, keys: Collection[str]
    ) -> Iterator[tuple[str, list[object]]]:
        self.read.append(chunk.lake)
        return ((key, []) for key in sorted(keys) if key in self.changed)

    def listed(self) -> tuple[set[str], list[Unlisted]]:
        """The keys of the rows that are listed, and the chunks that are only counted."""
        chunks = [Chunk(lake=f"c{number}") for number in range(CHUNKS)]
        compared = [_Compared(chunk, Checksum(3, 1), Checksum(3, 2)) for chunk in chunks]
        rows, unlisted = _list_rows(None, None, None, compared, 20)  # type: ignore[arg-type]
        return {key for each in rows for key in each.keys}, unlisted


def test_rows_whose_texts_alone_differ_never_make_a_chunk_be_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Sides(monkeypatch, "c1 2", "c11 0")
    keys, unlisted = sides.listed()
    assert unlisted == []
    assert keys >= {"c1 2", "c11 0"}
    assert Counter(sides.read).most_common(1)[0][1] == 1, "each chunk is compared by value once at most"


def test_chunks_are_only_counted_once_too_many_rows_differ_in_value(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [f"c{chunk} {row}" for chunk in range(4) for row in range(3)]
    keys, unlisted = Sides(monkeypatch, *changed).listed()
    assert [each.chunk.lake for each in unlisted] == [f"c{number}" for number in range(2, CHUNKS)]
    assert keys == {f"c{chunk} {row}" for chunk in range(2) for row in range(3)}


def test_few_rows_are_not_read_to_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read once, when what they differ in is listed."""
    sides = Sides(monkeypatch)
    monkeypatch.setattr(comparison, "_MOST_LISTED", 6 * CHUNKS)
    keys, unlisted = sides.listed()
    assert (len(keys), unlisted, sides.read) == (3 * CHUNKS, [], [])
