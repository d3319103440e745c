# Databricks notebook source
# MAGIC %md
# MAGIC # Gold: apply what the watermark has made complete
# MAGIC - **In**: the changes of `silver.<feed>_events` in the window (last published watermark, W], where W is the
# MAGIC   lowest of the partitions' highest watermarks, or `until_tso` if that is lower.
# MAGIC - **Out**: one MERGE per changed table, then W published; the views read the tables as of W.
# MAGIC - **Contract**: at every published W the tables equal what TiDB held at that TSO. Running it again changes
# MAGIC   nothing.
# MAGIC - **See**: <a href="$../tour">the tour</a>, which goes through all layers of a feed.

# COMMAND ----------

dbutils.widgets.text("feed", "shop_craft", "Feed")
dbutils.widgets.text("catalog", "main", "Catalog")
dbutils.widgets.text("bronze_schema", "bronze", "Bronze schema")
dbutils.widgets.text("silver_schema", "silver", "Silver schema")
dbutils.widgets.text("live_schema", "live", "Schema of live tables")
dbutils.widgets.text("gold_schema", "gold", "Gold schema")
dbutils.widgets.text("ops_schema", "ops", "Ops schema")
dbutils.widgets.text("checkpoint_root", "/Volumes/main/ops/checkpoints", "Folder of checkpoints")
dbutils.widgets.text("feeds_root", "../../resources/feeds", "Folder of feed files")
dbutils.widgets.text("until_tso", "", "Gold stops at this TSO (empty: at the watermark)")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

applied = run.gold()
print(applied)

# COMMAND ----------

display(run.status())
