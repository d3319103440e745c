"""How a worker's batches are cut: by what it holds while it decodes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ticdc_codec.options import SinkOptions, sink_options
from ticdc_lakehouse.silver.decode_stream import slices

PLAIN = SinkOptions()
STORE = sink_options("canal_json", {"enable-tidb-extension": True, "large-message-handle-option": "claim-check",
                                    "claim-check-storage-uri": "/objects"})  # fmt: skip
LZ4 = sink_options("canal_json", {"enable-tidb-extension": True, "large-message-handle-compression": "lz4"})
MIB = b"x" * (1 << 20)
NAMES = b'{"_tidb":{"claimCheckLocation":"/objects/1.json"}}'


def sizes(values: list[bytes | None], options: SinkOptions, keys: list[bytes | None] | None = None) -> list[int]:
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys or [None] * len(values), pa.binary()), "value": pa.array(values, pa.binary())}
    )
    parts = [*slices(batch, options)]
    assert [value for part in parts for value in part.column("value").to_pylist()] == values
    return [part.num_rows for part in parts]


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([b"a"] * 9, PLAIN, [9]),
        ([None, b""], PLAIN, [2]),
        ([], PLAIN, [0]),
        ([b"a"] * 9000, PLAIN, [4096, 4096, 808]),
        ([MIB] * 20, PLAIN, [8, 8, 4]),
        ([MIB * 20, b"a", MIB * 20], PLAIN, [1, 1, 1]),
        ([MIB] * 3, LZ4, [1, 1, 1]),
        ([NAMES] * 20, PLAIN, [20]),
        ([NAMES, *[b"a"] * 50] * 20, STORE, [7 * 51, 7 * 51, 6 * 51]),
    ],
)
def test_a_slice_holds_few_bytes(values: list[bytes | None], options: SinkOptions, expected: list[int]) -> None:
    assert sizes(values, options) == expected


def test_a_key_may_name_the_object() -> None:
    """Open Protocol's ``ccl``."""
    assert sizes([b"a"] * 9, STORE, [b'"ccl":"/objects/1.json"'] * 9) == [7, 2]
