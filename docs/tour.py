# Databricks notebook source
# MAGIC %md
# MAGIC # Tour: from Kafka's bytes to a gold table that equals TiDB
# MAGIC - **In**: a feed of which silver has decoded rows, with the default `gold.schema` and `gold.views`. `make demo`
# MAGIC   leaves a lake with five; there `ticdc-lake run notebooks/tour.ipynb --feed shop_craft` runs this notebook.
# MAGIC - **Out**: what each layer holds of the feed, with plots.
# MAGIC - **Contract**: reads, and runs gold as the job does. With `replay` = `yes` it also decodes the feed's
# MAGIC   quarantined messages again. Running it again changes nothing.
# MAGIC
# MAGIC `docs/tour.md` shows this notebook with its outputs, with `replay` = `yes` on a lake whose feed `shop` has a
# MAGIC quarantined message. `make tour` generates both from `docs/tour.py`.

# COMMAND ----------

dbutils.widgets.text("feed", "shop_craft", "Feed")
dbutils.widgets.text("catalog", "main", "Catalog")
dbutils.widgets.text("bronze_schema", "bronze", "Bronze schema")
dbutils.widgets.text("silver_schema", "silver", "Silver schema")
dbutils.widgets.text("live_schema", "live", "Schema of live tables")
dbutils.widgets.text("gold_schema", "gold", "Gold schema")
dbutils.widgets.text("ops_schema", "ops", "Ops schema")
dbutils.widgets.text("checkpoint_root", "/Volumes/main/ops/checkpoints", "Folder of checkpoints")
dbutils.widgets.text("feeds_root", "../resources/feeds", "Folder of feed files")
dbutils.widgets.dropdown("replay", "no", ["no", "yes"], "Decode quarantined messages again")
dbutils.widgets.text("answers", "tests/data/streams/tiflow-basic", "Folder of a recording, with TiDB's answers")

# COMMAND ----------

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)
feed, lake = run.feed.name, run.lake
print(f"{feed}: {run.feed.protocol}, topics {', '.join(run.feed.topics)}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Bronze: what TiCDC wrote
# MAGIC Every message is one row, byte for byte. Nothing is decoded here, so nothing can be lost.

# COMMAND ----------

messages = spark.sql(f"""
    SELECT topic, partition, offset, length(value) AS bytes, key, value
    FROM {lake.table(Layer.BRONZE, f"{feed}_messages")} WHERE value IS NOT NULL""")
display(messages.drop("key").orderBy("partition", "offset").limit(5))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Inspect: what a message is
# MAGIC `inspect` recognises the protocol. This is the smallest message that has a row.

# COMMAND ----------

from ticdc_lakehouse import inspect

message = messages.where("bytes > 200").orderBy("bytes", "offset").first()
print(inspect((message["key"], message["value"])))

# COMMAND ----------

# MAGIC %md
# MAGIC The smallest message of all is a watermark: every change up to this TSO has been sent. This is what each of its
# MAGIC bytes means.

# COMMAND ----------

message = messages.orderBy("bytes", "offset").first()
print(inspect((message["key"], message["value"]), explain=True))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Silver: events
# MAGIC Row changes, DDL, watermarks and undecodable messages are rows of one table, whatever the protocol. A value is
# MAGIC MySQL's own text.

# COMMAND ----------

events = spark.table(lake.table(Layer.SILVER, f"{feed}_events"))
display(events.groupBy("kind", "op").count().orderBy("kind", "op"))

# COMMAND ----------

changes = events.where("kind = 'row' AND op = 'update'").orderBy("commit_ts")
display(changes.select("commit_ts", "table", "handle_key", "before", "after").limit(3))

# COMMAND ----------

# MAGIC %md
# MAGIC Row changes by table and by half second of their commit:

# COMMAND ----------

from ticdc_local.report.plots import bars, figure, lines, stacks

halves = "date_format(timestamp_millis(500 * (unix_millis(commit_time) DIV 500)), 'HH:mm:ss.S') AS half"
counts = {
    (row["half"], row["table"]): row["count"]
    for row in events.where("kind = 'row'").selectExpr("table", halves).groupBy("half", "table").count().collect()
}
columns, names = (sorted(set(part)) for part in zip(*counts, strict=True))
parts = {name: [counts.get((at, name), 0) for at in columns] for name in names}
displayHTML(figure(stacks(columns, parts, "row changes")))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Gold and live: tables
# MAGIC Gold applies a **window**: all changes up to the watermark W that every partition has reached, with one MERGE
# MAGIC per table. Then W is published, and the views are pinned to it: no transaction is torn, within a table or across
# MAGIC tables.

# COMMAND ----------

print(run.gold())
display(run.status())

# COMMAND ----------

windows = f"""
    SELECT number, from_tso, tso, time, row_changes FROM {lake.table(Layer.OPS, "windows")}
    WHERE feed = '{feed}' AND tso > 0 ORDER BY number"""
display(spark.sql(windows))

# COMMAND ----------

# MAGIC %md
# MAGIC An analyst reads the view in gold; its columns have TiDB's names, Spark's types and MySQL's types as comments.

# COMMAND ----------

from ticdc_lakehouse import as_of

now = as_of(spark, feed, lake=lake)
table, name = min(now.names.items())
display(spark.table(lake.table(Layer.GOLD, name)).limit(5))

# COMMAND ----------

# MAGIC %md
# MAGIC Behind it is the Delta table in the schema `live`. Each of its versions is the table as TiDB held it at the TSO
# MAGIC in the commit's metadata.

# COMMAND ----------

history = spark.sql(f"DESCRIBE HISTORY {lake.table(Layer.LIVE, name)}")
display(history.selectExpr("version", "operation", "get_json_object(userMetadata, '$.tso') AS tso").orderBy("version"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## As of: any published watermark
# MAGIC All tables of the feed together, as they were. The number of rows of each table at each published watermark:

# COMMAND ----------

from ticdc_codec.tso import time_of
from ticdc_local.report.plots import Line


def rows_at(tso):
    return {table: frame.count() for table, frame in as_of(spark, feed, tso, lake=lake).tables.items()}


found = {row["tso"]: rows_at(row["tso"]) for row in spark.sql(windows).collect()[-10:]}
tables = sorted({table for rows in found.values() for table in rows})
display(spark.createDataFrame([(tso, *map(rows.get, tables)) for tso, rows in found.items()], ["tso", *tables]))

# COMMAND ----------

by_table = [
    Line(table, [(time_of(tso), float(rows[table])) for tso, rows in found.items() if table in rows])
    for table in tables
]
displayHTML(figure(lines(by_table, "rows")))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Quarantine: what did not decode
# MAGIC A message that does not decode is kept with its reason, and gold waits for it: it may have been a change of any
# MAGIC table. Nothing is skipped silently.

# COMMAND ----------

quarantined = run.quarantined()
display(quarantined.select("topic", "partition", "offset", "reason", "detail"))

# COMMAND ----------

reasons = {row["reason"]: row["count"] for row in quarantined.groupBy("reason").count().collect()}
displayHTML(figure(bars(reasons, "message")))

# COMMAND ----------

for row in quarantined.orderBy("partition", "offset").limit(1).collect():
    place = f"topic = '{row['topic']}' AND partition = {row['partition']} AND offset = {row['offset']}"
    message = messages.where(place).first()
    print("\n".join(str(inspect((message["key"], message["value"]))).splitlines()[:10]))

# COMMAND ----------

# MAGIC %md
# MAGIC Once the cause is fixed (an option of the feed file, a limit, the code), a **replay** decodes the message again
# MAGIC from bronze, and gold applies its rows by their commit_ts.

# COMMAND ----------

if dbutils.widgets.get("replay") == "yes":
    print(run.replay(["all"]))
    print(run.gold())
display(run.status())

# COMMAND ----------

# MAGIC %md
# MAGIC ## Verification: complete and correct?
# MAGIC Every message that bronze landed is decoded, in quarantine, or waiting:

# COMMAND ----------

from ticdc_lakehouse.silver import events_table

counted = ("messages", "decoded", "quarantined", "waiting")
events_table.create_views(lake, feed)  # a laptop's session has views of its own
accounting = spark.table(lake.table(Layer.SILVER, f"{feed}_accounting"))
display(accounting.selectExpr(*(f"sum({count}) AS {count}" for count in counted)))

# COMMAND ----------

# MAGIC %md
# MAGIC If the feed is a recording, TiDB's own answers are beside it: what a MySQL client read from each table at
# MAGIC many TSOs. For any other feed, `ticdc-lake verify-source` compares with TiDB itself.

# COMMAND ----------

from pathlib import Path

published = {row["tso"] for row in spark.sql(windows).collect()}
folder = Path(dbutils.widgets.get("answers"))
if folder.is_dir():
    from ticdc_local.verify_stream import verdict
    from ticdc_testkit.recorded_streams import answers

    zone = run.feed.sink_options.time_zone.key
    verdicts = [verdict(run, answer, zone, {}) for answer in answers(folder) if answer.watermark in published]
    for each in verdicts:
        print(f"TSO {each.watermark}: {each.tables} tables, {each.rows} rows, {len(each.differences)} differences")
    assert not any(each.differences for each in verdicts)
