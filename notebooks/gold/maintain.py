# Databricks notebook source
# MAGIC %md
# MAGIC # Gold: delete what is older than the retention, compact what stays
# MAGIC - **In**: the states of a feed's gold tables, and `retention_days` of the sections `gold`, `silver` and `bronze`
# MAGIC   of its feed file.
# MAGIC - **Out**: Delta tables and versions that no readable state needs are gone; views show the compacted versions.
# MAGIC   Batches of bronze and silver that nothing needs are gone.
# MAGIC - **Contract**: no row that analysts read changes. `as_of` refuses what is older than the retention.

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

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

print(run.maintain())
