"""Rows of the new TiCDC's Open Protocol without their columns' flags, or with those of others: bytes as texts, and
texts as bytes."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unicodedata import category

import pytest
from changefeed import Changefeed, at

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column
from ticdc_codec.open_protocol.frame import framed
from ticdc_codec.open_protocol.value import quoted, unquoted
from ticdc_codec.writer_defects import OPEN_FLAGS
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold.learned_defaults import text_before_sql
from ticdc_lakehouse.gold.misread_values import as_defined_sql, value_sql
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import RowGroup
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.go_quoted import quoted_sql, unquoted_sql
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


def test_bytes_are_quoted_as_the_codec_does_it(spark: SparkSession) -> None:
    """Code points that Unicode has not assigned stand for themselves, since Go may know them. Of the others these are
    the first and last of each kind, and some between them."""
    assigned = [c for c in map(chr, (*range(0xD800), *range(0xE000, 0x110000))) if category(c) != "Cn"]
    ends = {c for pair in pairwise(assigned) if pair[0].isprintable() != pair[1].isprintable() for c in pair}
    assigned = [c for c in assigned if c in ends or ord(c) % 50 == 0]
    parts = [b"", b"\xe2\xc3\xa9\xf0\x9f\x98\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80", bytes(range(256)), b"a" * 70_000]
    parts += ["".join(assigned[at : at + 4096]).encode() for at in range(0, len(assigned), 4096)]
    rows = json.dumps([{"digits": data.hex(), "text": quoted(data)} for data in parts])
    listed = f"SELECT inline(from_json({literal(rows)}, 'ARRAY<STRUCT<digits: STRING, text: STRING>>'))"
    assert spark.sql(f"SELECT * FROM ({listed}) WHERE NOT {quoted_sql('digits')} <=> text").collect() == []
    assert spark.sql(f"SELECT {quoted_sql(repr(chr(0x378).encode().hex()))}").collect()[0][0] == chr(0x378)


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_not_quoted_is_no_bytes(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {unquoted_sql(literal(text))}").collect()[0][0] is None
    with pytest.raises(DecodeError):
        unquoted(text)


def row_group(table: Table, *columns: Column) -> RowGroup:
    """A row with these columns beside its id."""
    listed = (Column(name="id", type="bigint", key=True), *columns)
    return RowGroup(
        name=table.name, columns=listed, is_upsert=True, handle_only=False, keyed=True, first=1, last=1, rows=1
    )


def test_a_value_is_bytes_in_hex_also_where_a_default_is_learned_from_it(spark: SparkSession) -> None:
    (table,) = tables_from_sql("CREATE TABLE t (id BIGINT PRIMARY KEY, b VARBINARY(20))", "d")
    plain = Column(name="b", type="varchar", defect=OPEN_FLAGS)
    rows = MergeRows(table=table, after=0, through=1, groups=(row_group(table, plain),))
    declared = {kind: json.dumps([{"name": "b", "type": kind}]) for kind in ("varchar", "varbinary")}
    events = [("varchar", r"é\xff"), ("varchar", "a\\"), ("varbinary", "c3a9"), ("varchar", None)]
    listed = ", ".join(f"({literal(declared[kind])}, {literal(v) if v else 'NULL'})" for kind, v in events)
    found = spark.sql(f"SELECT {value_sql(rows, 'b', 'v')} FROM VALUES {listed} AS t(columns, v)").collect()
    assert [row[0] for row in found] == ["c3a9ff", None, "c3a9", None]
    assert value_sql(replace(rows, groups=()), "b", "v") == "v"
    assert value_sql(rows, "b", "old.`b`") in text_before_sql(rows, table.columns[1], "UTC")


def test_an_image_has_its_values_as_the_definition_has_them(spark: SparkSession) -> None:
    sql = "CREATE TABLE t (id BIGINT PRIMARY KEY, b VARBINARY(9), v VARCHAR(9), l TEXT) PARTITION BY HASH (id)"
    (table,) = tables_from_sql(sql, "d")
    layouts = [
        dict(zip("bvl", kinds, strict=True))
        for kinds in (("varchar", "varbinary", "blob"), ("varbinary", "varchar", "text"))
    ]
    groups = [row_group(table, *(Column(name=n, type=t) for n, t in layout.items())) for layout in layouts]
    rows = MergeRows(table=table, after=0, through=1, groups=tuple(groups))
    assert rows.misread == {"b": {"varchar"}, "v": {"varbinary"}, "l": {"blob"}}
    stale, right = ([{"name": n, "type": t} for n, t in layout.items()] for layout in layouts)
    images = [
        (stale, {"b": "\\xff", "v": "5c00", "l": "c3a9"}, {"b": "ff", "v": "\\\\\\x00", "l": "é"}),
        (stale, {"b": "\\q", "v": None, "l": "ff"}, {"b": "\uffff\\q", "v": None, "l": "\uffffff"}),
        (right, {"b": "ff", "v": "5c00", "l": "c3a9"}, {"b": "ff", "v": "5c00", "l": "c3a9"}),
    ]
    listed = ", ".join(f"({literal(json.dumps(of))}, {literal(json.dumps(image))})" for of, image, _ in images)
    found = spark.sql(f"SELECT {as_defined_sql(rows)} FROM VALUES {listed} AS t(columns, after)").collect()
    assert [json.loads(row[0]) for row in found] == [expected for _, _, expected in images]


STALE = "CREATE TABLE shop.p (id BIGINT, k VARCHAR(20), v VARCHAR(90), l TEXT, b VARBINARY(20), PRIMARY KEY (id, k))"
LAYOUT = {"id": (8, 11), "k": (15, 10), "v": (15, 64), "l": (252, 64), "b": (15, 65)}
"""Codes and flags; stale ones are the opposite of BINARY."""


def cells(*values: Any, stale: bool) -> dict[str, Any]:
    """An image of p, as ticdc writes it."""
    found = {}
    for (name, (code, flags)), value in zip(LAYOUT.items(), values, strict=True):
        wire = b64encode(value.encode()).decode() if name == "l" else quoted(value) if name == "b" else value
        key = {"h": True} if name in ("id", "k") else {}
        found[name] = {"t": code, **key, "f": flags ^ (stale and name != "id"), "v": wire}
    return found


def change(commit_ts: int, **images: dict[str, Any]) -> KafkaMessage:
    head = {"ts": commit_ts, "scm": "shop", "tbl": "p", "t": 1, "ptn": 7}
    texts = [json.dumps(part, ensure_ascii=False).encode() for part in (head, images)]
    return KafkaMessage(partition=0, key=(1).to_bytes(8) + framed(texts[:1]), value=framed(texts[1:]))


TEXTS = ["plain", "C:\\dir", "a\\nb", 'say "hi"', "two\nlines", "naïve 😀", "no\u00a0break", "\\u00e9\\x41", "", "c3a9"]


@pytest.mark.long
def test_texts_with_the_flags_of_numbers_are_texts_and_make_keys(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Until the changefeed restarts; then the same rows come with right flags."""
    feed = Changefeed(spark, broker, tmp_path, protocol="open-protocol", schema=f"{STALE} {PARTITIONED};")
    rows = {at_: (at_, text, text, text, text.encode() + b"\xff") for at_, text in enumerate(TEXTS)}
    feed.produce([change(at(1), u=cells(*values, stale=True)) for values in rows.values()])
    feed.resolve(at(2))
    assert feed.go().blocked == {}
    assert feed.rows("p") == {key: values[1:] for key, values in rows.items()}
    shown = spark.table(feed.lake.table(Layer.SILVER, feed.shown_name("p"))).select("id", "k", "v", "l", "b")
    assert {row[0]: tuple(row[1:]) for row in shown.collect()} == {key: values[1:] for key, values in rows.items()}

    moved, new = (2, "mo\\ved", "x", "y", b"z"), (1, "C:\\dir", "new\\n", "", b"")
    feed.produce(
        [
            change(at(3), u=cells(*new, stale=False), p=cells(*rows[1], stale=False)),
            change(at(3), d=cells(*rows[0], stale=False)),
            change(at(3), u=cells(*moved, stale=True), p=cells(*rows[2], stale=True)),
            change(at(3), d=cells(*rows[3], stale=True)),
        ]
    )
    feed.resolve(at(4))
    assert feed.go().blocked == {}
    left = {**{key: values for key, values in rows.items() if key not in (0, 3)}, 1: new, 2: moved}
    assert feed.rows("p") == {key: values[1:] for key, values in left.items()}

    no_text = cells(*rows[5], stale=True) | {"l": {"t": 252, "f": 65, "v": "/w=="}}
    feed.produce([change(at(5), u=no_text)])
    feed.resolve(at(6))
    (reason,) = feed.go().blocked.values()
    assert f"a row at {at(5)} came with flags that are not its columns'" in reason
    assert feed.rows("p") == {key: values[1:] for key, values in left.items()}
