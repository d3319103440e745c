"""What TiDB held, as Dumpling would have exported it in the middle of a recorded stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dumpling_export import Number, Value, write_metadata, write_table

from ticdc_codec.mysql_type import Family, MysqlType, parse_type
from ticdc_lakehouse.ops.load_options import LoadOptions
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_local.verify_stream import load_stream, verdict
from ticdc_testkit.recorded_streams import Answer, answers, recorded_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

STREAMS = Path(__file__).parents[1] / "data" / "streams"
NUMBERS = (Family.INTEGER, Family.FLOAT, Family.DOUBLE, Family.DECIMAL)


def exported(folder: Path, answer: Answer) -> dict[TableName, int]:
    """Write what has a key and no stored generated column, which Dumpling leaves out. Gives each table's rows."""
    write_metadata(folder, answer.watermark)
    tables = [
        (name, held) for name, held in answer.tables.items() if has_key(name, held) and " STORED" not in held["create"]
    ]
    for name, held in tables:
        kinds = [parse_type(column["type"]) for column in held["columns"]]
        rows = [[value(kind, cell) for kind, cell in zip(kinds, row, strict=True)] for row in held["rows"]]
        write_table(folder, name, held["create"], [column["name"] for column in held["columns"]], rows)
    return {TableName(*name.split(".")): len(held["rows"]) for name, held in tables}


def has_key(name: str, held: Mapping[str, Any]) -> bool:
    return bool(tables_from_sql(held["create"], name.partition(".")[0])[0].key)


def value(kind: MysqlType, cell: Any) -> Value:
    """A cell of an answer as a value that is exported."""
    match cell:
        case None:
            return None
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"name": text} | {"names": text}:
            return str(text)
        case _ if kind.family is Family.BIT:
            return int(cell).to_bytes(-(-kind.size[0] // 8))
        case _ if kind.family in NUMBERS:
            return Number(cell)
        case _:
            return str(cell)


@pytest.mark.long
def test_gold_equals_tidb_from_an_export_on(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    stream = recorded_stream(STREAMS / "tiflow-types", "canal_json.jsonl.gz", {})
    known = list(answers(stream.folder))
    middle, last = known[len(known) // 2], known[-1]
    run = load_stream(spark, broker, stream, tmp_path / "lake", name="exported")
    there = replace(run, until_tso=middle.watermark)
    there.gold()
    export = tmp_path / "export"
    rows = exported(export, middle)
    assert there.load(str(export), LoadOptions(time_zone=stream.time_zone)).rows == rows
    assert sum(rows.values()) > 20
    assert verdict(run, middle, stream.time_zone, {}).differences == ()
    run.gold()
    assert verdict(run, last, stream.time_zone, {}).differences == ()
