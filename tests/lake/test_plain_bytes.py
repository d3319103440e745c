"""Rows of the new TiCDC's Open Protocol that came without their columns' flags: bytes as texts."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, at

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column
from ticdc_codec.open_protocol.frame import framed
from ticdc_codec.open_protocol.value import quoted, unquoted
from ticdc_codec.writer_defects import OPEN_FLAGS
from ticdc_lakehouse.gold.learned_defaults import _shown_sql
from ticdc_lakehouse.gold.plain_bytes import value_sql
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.go_quoted import unquoted_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

PARTITIONED = "PARTITION BY HASH (id) PARTITIONS 2"
SCHEMA = "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, b VARBINARY(20), l BLOB, v VARCHAR(20))"
BINARY, TEXT = 65, 64
HANDLE_KEY = 11


def message(commit_ts: int, key: int, value: bytes | None, **how: bool) -> KafkaMessage:
    """A row as ticdc writes it, after a DDL with columns that have no flags (wire.md 8.4): it quotes bytes and encodes
    BLOBs all the same."""
    text = None if value is None else quoted(value)
    return sent(commit_ts, key, text, value, **how)


def sent(
    commit_ts: int, key: int, text: str | None, blob: bytes | None, *, flagged: bool, partition: bool = True
) -> KafkaMessage:
    head = {"ts": commit_ts, "scm": "shop", "tbl": "t", "t": 1} | ({"ptn": 7} if partition else {})
    cells: dict[str, Any] = {
        "id": {"t": 8, "h": True, "f": HANDLE_KEY, "v": key},
        "b": {"t": 15, "f": BINARY if flagged else 0, "v": text},
        "l": {"t": 252, "f": BINARY if flagged else 0, "v": None if blob is None else b64encode(blob).decode()},
        "v": {"t": 15, "f": TEXT if flagged else 0, "v": r"te\xt"},
    }
    texts = [json.dumps(part, ensure_ascii=False).encode() for part in (head, {"u": cells})]
    return KafkaMessage(partition=0, key=(1).to_bytes(8) + framed(texts[:1]), value=framed(texts[1:]))


@pytest.mark.long
@pytest.mark.parametrize("partition", [True, False])
def test_texts_without_flags_are_the_bytes_that_they_quote(
    spark: SparkSession, broker: Broker, tmp_path: Path, partition: bool
) -> None:
    """Of a table without partitions, on a node that did not write its DDL."""
    schema = f"{SCHEMA} {PARTITIONED if partition else ''};"
    feed = Changefeed(spark, broker, tmp_path, protocol="open-protocol", schema=schema)
    values = {
        1: b"\x89PNG\r\n\x1a\n",
        2: "é\0\\\"'\N{GRINNING FACE}".encode(),
        3: b"ff",
        4: None,
        5: b"",
        6: "\N{ZERO WIDTH SPACE}\N{REPLACEMENT CHARACTER}".encode() + b"\xff\x7f",
    }
    feed.produce(
        [
            message(at(1), 1, b"old", flagged=True, partition=partition),
            message(at(1), 7, b"\xff\0a", flagged=True, partition=partition),
        ]
    )
    feed.produce([message(at(2), key, value, flagged=False, partition=partition) for key, value in values.items()])
    feed.resolve(at(3))
    assert feed.go().blocked == {}
    values[7] = b"\xff\0a"
    assert feed.rows("t") == {key: (value, value, r"te\xt") for key, value in values.items()}

    feed.produce(
        [
            message(at(4), 8, b"whole", flagged=False, partition=partition),
            sent(at(5), 1, r"C:\temp\q", b"", flagged=False, partition=partition),
        ]
    )
    feed.resolve(at(6))
    (reason,) = feed.go().blocked.values()
    assert "column b, l: a row at" in reason
    assert feed.state.tables["shop", "t"].applied_tso == at(5) - 1
    assert feed.rows("t") == {key: (value, value, r"te\xt") for key, value in {**values, 8: b"whole"}.items()}


POINTS = [0x80, 0xFF, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0xFFFFF, 0x10FFFF]
QUOTED = [
    *map(quoted, (bytes(range(256)), b"a" * 70_000, bytes(65_535))),
    *(f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}" for number in POINTS),
]
REFUSED = ['"', "\n", "\\", "\\x4", "\\q", "a\\", r"\u12", r"\ud800", r"\u0041", r"\U00110000", "\x7f", r"\xg0"]


@pytest.mark.parametrize("text", QUOTED, ids=lambda text: text[:12])
def test_bytes_are_unquoted_as_the_codec_does_it(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {unquoted_sql(literal(text))}").collect()[0][0] == unquoted(text).hex()


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_not_quoted_is_no_bytes(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {unquoted_sql(literal(text))}").collect()[0][0] is None
    with pytest.raises(DecodeError):
        unquoted(text)


def test_a_value_is_bytes_in_hex_also_where_a_default_is_learned_from_it(spark: SparkSession) -> None:
    (table,) = tables_from_sql("CREATE TABLE t (id BIGINT PRIMARY KEY, b VARBINARY(20))", "d")
    plain = Column(name="b", type="varchar", defect=OPEN_FLAGS)
    group = RowGroup(
        name=table.name,
        columns=(Column(name="id", type="bigint", key=True), plain),
        whole=True,
        handle_only=False,
        keyed=True,
        first=1,
        last=1,
        rows=3,
    )
    rows = MergeRows(table=table, after=0, through=1, groups=(group,))
    declared = {kind: json.dumps([{"name": "b", "type": kind}]) for kind in ("varchar", "varbinary")}
    events = [("varchar", r"é\xff"), ("varchar", "a\\"), ("varbinary", "c3a9"), ("varchar", None)]
    listed = ", ".join(f"({literal(declared[kind])}, {literal(v) if v else 'NULL'})" for kind, v in events)
    found = spark.sql(f"SELECT {value_sql(rows, 'b', 'v')} FROM VALUES {listed} AS t(columns, v)").collect()
    assert [row[0] for row in found] == ["c3a9ff", None, "c3a9", None]
    assert value_sql(replace(rows, groups=()), "b", "v") == "v"
    assert value_sql(rows, "b", "old.`b`") in _shown_sql(rows, table.columns[1], "UTC")
