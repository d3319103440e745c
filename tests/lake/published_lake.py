"""A lake whose live tables and published state are made by gold's own functions, out of texts: no Kafka, no silver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from changefeed import lake_in
from pyspark.sql import SparkSession

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import USER_METADATA
from ticdc_lakehouse.gold import views, windows
from ticdc_lakehouse.gold.live_commits import Commits, version_of
from ticdc_lakehouse.gold.live_table import create_live_table
from ticdc_lakehouse.gold.own_columns import COMMIT_TS, KEY
from ticdc_lakehouse.gold.state import commit_window
from ticdc_lakehouse.ops.feed_tables import create_feed_tables
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.sql.key_text import key_text_sql
from ticdc_lakehouse.sql.text import quoted
from ticdc_lakehouse.sql.typed_columns import (
    IRREGULAR,
    by_name,
    irregular_sql,
    irregular_texts_sql,
    typed_column,
    values_sql,
)

Texts = Sequence[str | None]


def published_lake(
    spark: SparkSession, folder: Path, config: GoldConfig, tables: Mapping[Table, Sequence[Texts]], tso: int
) -> Lake:
    """A lake with these rows at a watermark; a table to the MySQL texts of its rows."""
    lake = lake_in(spark, folder, config.feed)
    lake.register()
    create_feed_tables(lake, config.feed)
    windows.create_tables(lake)
    commits = Commits(lake=lake, feed=config.feed, run="made")
    with closing(commits):
        states = {table.name: _filled(commits.at(tso), config, table, rows, tso) for table, rows in tables.items()}
    found = [
        Definition(
            table=table,
            commit_ts=0,
            origin=Origin.FILE,
            lake_name=states[table.name].lake_name,
            stable_id=states[table.name].stable_id,
        )
        for table in tables
    ]
    commit_window(lake, config.feed, Published(), Published(tso=tso, tables=states), found, 0)
    views.refresh(lake, config)
    return lake


def _filled(lake: Lake, config: GoldConfig, table: Table, rows: Sequence[Texts], tso: int) -> TableState:
    name = f"{config.feed}_{table.database}_{table.table}"
    create_live_table(lake, name, table, stable_id=name, config=config)
    typed = tuple(typed_column(by_name(column)) for column in table.sent)
    texts, values = [f"t{i}" for i in range(len(typed))], [f"v{i}" for i in range(len(typed))]
    given = pa.table({text: pa.array([row[i] for row in rows], pa.string()) for i, text in enumerate(texts)})
    inlined = f"inline(array({values_sql(typed, texts, config.time_zone)})) AS ({', '.join(values)})"
    filled = lake.spark.createDataFrame(given).selectExpr("*", inlined)
    converted = filled.selectExpr("*", f"{irregular_texts_sql(typed, texts, values)} AS irregular_texts")
    key = key_text_sql([texts[[c.name for c in typed].index(column)] for column in table.key_text_columns])
    own = [f"{key} AS {KEY}", f"{tso}L AS {COMMIT_TS}", f"{irregular_sql('irregular_texts')} AS {IRREGULAR}"]
    shown = [f"{value} AS {quoted(column.name)}" for column, value in zip(typed, values, strict=True)]
    writer = converted.selectExpr(*own, *shown).write.format("delta").mode("append")
    metadata = lake.spark.conf.get(USER_METADATA)
    writer.option("userMetadata", metadata).saveAsTable(lake.table(Layer.LIVE, name))
    return TableState(lake_name=name, stable_id=name, version=version_of(lake, name), applied_tso=tso)
