"""Rows of the new TiCDC's Open Protocol that came without their columns' flags: bytes as plain texts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, at

from ticdc_codec.event import Column
from ticdc_codec.open_protocol.frame import framed
from ticdc_codec.writer_defects import OPEN_FLAGS
from ticdc_lakehouse.gold.learned_defaults import _shown_sql
from ticdc_lakehouse.gold.plain_bytes import value_sql
from ticdc_lakehouse.planning.table_plan import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_local.broker import KafkaMessage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

SCHEMA = """CREATE TABLE shop.t (id BIGINT PRIMARY KEY, b VARBINARY(20), v VARCHAR(20))
    PARTITION BY HASH (id) PARTITIONS 2;"""
FLAGGED, UNFLAGGED = 65, 0
HANDLE_KEY, TEXT = 11, 64


def message(commit_ts: int, key: int, value: str | None, *, flags: int) -> KafkaMessage:
    """A row of a partition as ticdc writes it: after a DDL with columns that have no flags (wire.md 8.4)."""
    head = {"ts": commit_ts, "scm": "shop", "tbl": "t", "ptn": 7, "t": 1}
    cells: dict[str, Any] = {
        "id": {"t": 8, "h": True, "f": HANDLE_KEY, "v": key},
        "b": {"t": 15, "f": flags, "v": value},
        "v": {"t": 15, "f": TEXT if flags else 0, "v": "text"},
    }
    texts = [json.dumps(part, ensure_ascii=False).encode() for part in (head, {"u": cells})]
    return KafkaMessage(partition=0, key=(1).to_bytes(8) + framed(texts[:1]), value=framed(texts[1:]))


@pytest.mark.long
def test_plain_texts_are_bytes_until_some_are_lost(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path, protocol="open-protocol", schema=SCHEMA)
    feed.produce([message(at(1), 1, r"\xff\x00a", flags=FLAGGED), message(at(1), 2, "old", flags=FLAGGED)])
    feed.produce([message(at(2), 2, "é\0", flags=UNFLAGGED), message(at(2), 3, "ff", flags=UNFLAGGED)])
    feed.produce([message(at(2), 4, None, flags=UNFLAGGED)])
    feed.resolve(at(3))
    assert feed.go().blocked == {}
    shown = {1: b"\xff\0a", 2: "é\0".encode(), 3: b"ff", 4: None}
    assert feed.rows("t") == {key: (value, "text") for key, value in shown.items()}

    feed.produce([message(at(4), 5, "whole", flags=UNFLAGGED), message(at(5), 1, "a�", flags=UNFLAGGED)])
    feed.resolve(at(6))
    (reason,) = feed.go().blocked.values()
    assert "column b: a row at" in reason
    assert feed.state.tables["shop", "t"].applied_tso == at(5) - 1
    assert feed.rows("t") == {key: (value, "text") for key, value in {**shown, 5: b"whole"}.items()}


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
    events = [("varchar", "é"), ("varchar", "a\N{REPLACEMENT CHARACTER}"), ("varbinary", "c3a9"), ("varchar", None)]
    listed = ", ".join(f"({literal(declared[kind])}, {literal(v) if v else 'NULL'})" for kind, v in events)
    found = spark.sql(f"SELECT {value_sql(rows, 'b', 'v')} FROM VALUES {listed} AS t(columns, v)").collect()
    assert [row[0] for row in found] == ["c3a9", None, "c3a9", None]
    assert value_sql(replace(rows, groups=()), "b", "v") == "v"
    assert value_sql(rows, "b", "old.`b`") in _shown_sql(rows, table.columns[1], "UTC")
