# Databricks notebook source
# MAGIC %md
# MAGIC # Gold compared with TiDB itself
# MAGIC - **In**: live tables at the TSO that gold has published, and TiDB read at exactly that TSO.
# MAGIC - **Out**: `ops.verifications` has each table's result, `ops.differences` the rows and cells that differ.
# MAGIC - **Contract**: writes nothing to TiDB. With `repair` = `yes` rows that differ take TiDB's values, a commit a
# MAGIC   table. Fails if something differs and was not repaired.

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

dbutils.widgets.text("dsn", "", "TiDB: mysql://USER@HOST:4000/?secret=SCOPE/KEY (empty: the feed's source)")
dbutils.widgets.text("table", "", "Table: database.table (empty: all)")
dbutils.widgets.text("threads", "4", "Queries that TiDB answers at once")
dbutils.widgets.text("sleep", "0", "Seconds that a thread rests after a query")
dbutils.widgets.text("repair", "", "yes: put rows that differ in place as TiDB has them")

# COMMAND ----------

from ticdc_lakehouse.widgets import verify_from_widgets

verify_from_widgets(spark, dbutils).raise_if_different()
