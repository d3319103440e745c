"""Lines of Dumpling's CSV files, in whatever batches Spark hands them over."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from dumpling_export import Value, csv_line
from hypothesis import given
from hypothesis import strategies as st

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.csv_lines import CsvLines

NAMES = ("id", 'a"b', "raw")
LINES = CsvLines(names=NAMES, raw=(False, False, True))
AWKWARD = st.text(st.sampled_from('\0\n\r\t\\",nbqrzN0 é😀'), max_size=8)
ROWS = st.lists(
    st.tuples(
        st.integers(-9, 9),
        st.none() | AWKWARD,
        st.none() | st.binary(max_size=4) | AWKWARD.map(str.encode),
    ),
    max_size=9,
)


def batches(*splits: tuple[str, int, Sequence[bytes]], size: int) -> list[pa.RecordBatch]:
    """Lines of splits of files, some at a time."""
    lines = [{"line": line, "file": file, "start": start} for file, start, split in splits for line in split]
    schema = pa.schema({"line": pa.binary(), "file": pa.string(), "start": pa.int64()})
    return [pa.RecordBatch.from_pylist(lines[at : at + size], schema) for at in range(0, len(lines), size)]


def read(*splits: tuple[str, int, Sequence[bytes]], size: int = 100) -> list[tuple[Value, ...]]:
    return [tuple(row.values()) for batch in LINES.read(batches(*splits, size=size)) for row in batch.to_pylist()]


@given(ROWS, ROWS, st.integers(1, 5))
def test_what_was_written_is_read(first: list[tuple[Value, ...]], second: list[tuple[Value, ...]], size: int) -> None:
    """Two files, the first in two splits: a header begins a file, not a split."""
    lines, others = ([csv_line(row) for row in rows] for rows in (first, second))
    header, half = csv_line(NAMES), len(lines) // 2
    splits = ("a", 0, [header, *lines[:half]]), ("a", 4096, lines[half:]), ("b", 0, [header, *others])
    assert read(*splits, size=size) == [(str(number), *rest) for number, *rest in (*first, *second)]


def test_a_row_that_looks_like_the_header() -> None:
    lines = CsvLines(names=("v",), raw=(False,))
    (batch,) = lines.read(batches(("a", 0, [b'"v"', b'"v"']), size=9))
    assert batch.to_pylist() == [{"v": "v"}]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ([b'"id","raw"'], 'a: expected the header "id","a\\\\"b","raw", found "id","raw": export with'),
        ([csv_line(NAMES), b'1,"x"'], "a: CSV parse error: Expected 3 columns"),
        ([csv_line(NAMES), b'1,"x'], "a: "),
        ([csv_line(NAMES), b'1,"\xff",""'], "a: .*invalid UTF8"),
        ([csv_line(NAMES), b'1,"\0",""'], "a: a NUL byte: export with --escape-backslash"),
    ],
)
def test_a_line_that_these_files_cannot_have(split: list[bytes], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(("a", 0, split))
