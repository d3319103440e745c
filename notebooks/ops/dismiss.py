# Databricks notebook source
# MAGIC %md
# MAGIC # Quarantine: do without messages
# MAGIC - **In**: the open messages of `silver.<feed>_quarantine` that `dismiss` names, and the reason.
# MAGIC - **Out**: neither the watermark nor a table waits on them any more; `ops.quarantine_actions` has the reason.
# MAGIC - **Contract**: what they held is not applied. A dismissed message can still be replayed by its position.

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
dbutils.widgets.text("dismiss", "", "Messages: topic/partition/offset, several with spaces between; or all")
dbutils.widgets.text("reason", "", "Why they are not needed")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

print(run.dismiss(dbutils.widgets.get("dismiss").split(), dbutils.widgets.get("reason")))

# COMMAND ----------

display(run.quarantined())
