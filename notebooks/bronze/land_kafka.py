# Databricks notebook source
# MAGIC %md
# MAGIC # Bronze: land a feed's Kafka messages
# MAGIC - **In**: the feed's topics, as `resources/feeds/<feed>.yml` names them.
# MAGIC - **Out**: `bronze.<feed>_messages`, every message byte for byte; `bronze.<feed>_offsets`, per batch the
# MAGIC   offset read to in every partition, also those without messages.
# MAGIC - **Contract**: each message lands exactly once, whatever is killed when. Messages that Kafka deleted before
# MAGIC   they were read stop the feed with `OffsetGapError`.
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
dbutils.widgets.text("bootstrap_servers", "", "Brokers (empty: those of the feed file)")
dbutils.widgets.dropdown("trigger", "available_now", ["available_now", "continuous"], "Trigger")
dbutils.widgets.text("max_offsets_per_trigger", "", "Offsets a micro-batch (empty: no limit)")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

landed = run.bronze()
print(landed)

# COMMAND ----------

display(run.status())
