"""Partitions of rows, against those that TiCDC's own dispatcher chose."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import reduce
from operator import xor
from pathlib import Path
from zlib import crc32

import pytest

from ticdc_codec.event import Column, Op, RowChange, events_of
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import Decoder
from ticdc_local.kafka import recorded_messages
from ticdc_testkit.workload.stream import Dispatch, partition_of

STREAM = Path(__file__).parents[1] / "data" / "streams" / "tiflow-bank" / "craft.jsonl.gz"
RULES = {"accounts": Dispatch.INDEX_VALUE, "ledger": Dispatch.INDEX_VALUE, "slots": Dispatch.INDEX_VALUE}
"""As stream.json has them; all others go by table."""


def test_rows_go_where_ticdc_sent_them() -> None:
    messages = list(recorded_messages(STREAM))
    batch = Decoder("craft", sink_options("craft", {})).decode([m.key for m in messages], [m.value for m in messages])
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for number, event in events_of(batch):
        if isinstance(event, RowChange):
            rule = RULES.get(event.table, Dispatch.TABLE)
            found[event.table][partition_of(event, rule, 4) == messages[number].partition] += 1
    assert len(found) == 8
    assert {table: counts[False] for table, counts in found.items()} == dict.fromkeys(found, 0)


@pytest.mark.parametrize(("key", "hashed"), [("7", (b"dt", b"id7")), ("", (b"dt", b"id")), (None, (b"dt",))])
def test_partition_is_the_xor_of_sums(key: str | None, hashed: tuple[bytes, ...]) -> None:
    """wire.md 2.2: ticdc passes over NULL."""
    columns = (Column(name="id", type="varchar", key=True), Column(name="v", type="int"))
    come = RowChange(
        op=Op.INSERT, database="d", table="t", commit_ts=1, commit_ms=0, columns=columns, before=None,
        after={"id": key, "v": "1"},
    )  # fmt: skip
    expected = reduce(xor, map(crc32, hashed)) % 1000
    assert partition_of(come, Dispatch.INDEX_VALUE, 1000) == expected
    assert partition_of(come, Dispatch.TABLE, 1000) == crc32(b"dt") % 1000


def test_a_deleted_row_goes_by_what_it_was() -> None:
    columns = (Column(name="id", type="bigint", key=True),)
    common = {"database": "d", "table": "t", "commit_ts": 1, "commit_ms": 0, "columns": columns}
    gone = RowChange(op=Op.DELETE, before={"id": "7"}, after=None, **common)
    come = RowChange(op=Op.INSERT, before=None, after={"id": "7"}, **common)
    assert partition_of(gone, Dispatch.INDEX_VALUE, 1000) == partition_of(come, Dispatch.INDEX_VALUE, 1000)
