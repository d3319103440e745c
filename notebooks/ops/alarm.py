# Databricks notebook source
# MAGIC %md
# MAGIC # Alarm: make the run fail, so that it notifies
# MAGIC - **In**: how the tasks before it ended; the thresholds in section `alarm` of the feed file; what is published
# MAGIC   and in quarantine.
# MAGIC - **Out**: nothing.
# MAGIC - **Contract**: raises if a task failed, or if the feed passes a threshold. Why a task failed is in that task's
# MAGIC   output; `ops.feeds` and `ops.tables` show where each feed and table is.

# COMMAND ----------

dbutils.widgets.text("bronze", "success", "How bronze ended")
dbutils.widgets.text("silver", "success", "How silver ended")
dbutils.widgets.text("gold", "success", "How gold ended")
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

from ticdc_lakehouse.widgets import alarm_from_widgets

alarm_from_widgets(spark, dbutils)
