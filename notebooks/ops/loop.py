# Databricks notebook source
# MAGIC %md
# MAGIC # Loop: bronze, silver and gold again and again
# MAGIC - **In**: the feeds' topics, as `resources/feeds/<feed>.yml` describe them.
# MAGIC - **Out**: what the three layers write, every `every_seconds`, and what `maintain` does, every
# MAGIC   `maintain_every_hours`; a line for each round of each feed.
# MAGIC - **Contract**: may be ended at any time. Feeds take turns: a slow round of one, or its maintenance, delays the
# MAGIC   others. A feed that fails is tried again, later each time, and the others continue meanwhile;
# MAGIC   so they do where a feed's file is wrong, which is read when the loop begins.

# COMMAND ----------

dbutils.widgets.text("feeds", "[]", "Feeds (JSON list)")
dbutils.widgets.text("catalog", "main", "Catalog")
dbutils.widgets.text("bronze_schema", "bronze", "Bronze schema")
dbutils.widgets.text("silver_schema", "silver", "Silver schema")
dbutils.widgets.text("live_schema", "live", "Schema of live tables")
dbutils.widgets.text("gold_schema", "gold", "Gold schema")
dbutils.widgets.text("ops_schema", "ops", "Ops schema")
dbutils.widgets.text("checkpoint_root", "/Volumes/main/ops/checkpoints", "Folder of checkpoints")
dbutils.widgets.text("feeds_root", "../../resources/feeds", "Folder of feed files")
dbutils.widgets.text("bootstrap_servers", "", "Brokers (empty: those of the feed file)")
dbutils.widgets.text("max_offsets_per_trigger", "", "Offsets a micro-batch (empty: no limit)")

# COMMAND ----------

dbutils.widgets.text("every_seconds", "10", "Seconds from the beginning of one round to that of the next")
dbutils.widgets.text("maintain_every_hours", "", "Hours from one maintenance of a feed to the next (empty: never)")
dbutils.widgets.text("rounds", "", "Rounds (empty: until it is ended)")

# COMMAND ----------

from ticdc_lakehouse.loop import loop_from_widgets

loop_from_widgets(spark, dbutils)
