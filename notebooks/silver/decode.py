# Databricks notebook source
# MAGIC %md
# MAGIC # Silver: decode a feed's messages
# MAGIC - **In**: what `bronze.<feed>_messages` holds and silver has not yet seen.
# MAGIC - **Out**: one append to `silver.<feed>_events` a micro-batch: row changes, DDL, watermarks and undecodable
# MAGIC   messages.
# MAGIC - **Contract**: messages in = messages decoded + messages quarantined, per batch and partition. A message
# MAGIC   decodes whole or goes to quarantine whole, with the reason, and the rest flows on.
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
dbutils.widgets.dropdown("trigger", "available_now", ["available_now", "continuous"], "Trigger")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

decoded = run.silver()
print(decoded)

# COMMAND ----------

display(run.status())
