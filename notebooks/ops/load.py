# Databricks notebook source
# MAGIC %md
# MAGIC # Rows from before the changefeed
# MAGIC - **In**: a folder with an export of Dumpling's, of any TSO at which the changefeed ran already. `options` are
# MAGIC   those of `ticdc-lake load`: what dumpling was given and files do not show, such as `--csv-null-value NULL`.
# MAGIC - **Out**: each of its tables that the feed takes, as exported, and with what the changefeed sent since.
# MAGIC - **Contract**: takes the place of what gold had of these tables; a blocked one continues.

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
dbutils.widgets.text("folder", "", "Folder of the export")
dbutils.widgets.text("time_zone", "", "Time zone of the session that exported")
dbutils.widgets.text("options", "", "Options of ticdc-lake load")

# COMMAND ----------

from ticdc_lakehouse.entry import Run, load_options_from_widgets

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

print(run.load(dbutils.widgets.get("folder"), load_options_from_widgets(dbutils)))

# COMMAND ----------

display(run.status())
