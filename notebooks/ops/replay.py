# Databricks notebook source
# MAGIC %md
# MAGIC # Quarantine: decode messages again
# MAGIC - **In**: the open messages of `silver.<feed>_quarantine`, all of them or those that `messages` names.
# MAGIC - **Out**: what decodes now is in silver; the next run of gold puts its rows in place.
# MAGIC - **Contract**: an older row never overwrites a newer one. What fails again stays in quarantine.

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
dbutils.widgets.text("messages", "all", "Messages: topic/partition/offset, several with spaces between; or all")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

print(run.replay(dbutils.widgets.get("messages").split()))

# COMMAND ----------

display(run.quarantined())
