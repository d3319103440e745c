# Databricks notebook source
# MAGIC %md
# MAGIC # A feed's tables as TiDB held them at a TSO
# MAGIC - **In**: a feed and a TSO. In TiDB, `SELECT TIDB_CURRENT_TSO()` inside a transaction gives one.
# MAGIC - **Out**: the feed's tables as DataFrames, all at the newest published watermark that is not after the TSO.
# MAGIC - **Contract**: reads only. The tables belong together: no transaction shows in one and is missing in
# MAGIC   another. A table that was blocked then is older: the first line below names it, with its TSO.
# MAGIC - **See**: <a href="$../tour">the tour</a>, which goes through all layers of a feed.

# COMMAND ----------

dbutils.widgets.text("feed", "shop_craft", "Feed")
dbutils.widgets.text("catalog", "main", "Catalog")
dbutils.widgets.text("bronze_schema", "bronze", "Bronze schema")
dbutils.widgets.text("silver_schema", "silver", "Silver schema")
dbutils.widgets.text("live_schema", "live", "Schema of live tables")
dbutils.widgets.text("gold_schema", "gold", "Gold schema")
dbutils.widgets.text("ops_schema", "ops", "Ops schema")
dbutils.widgets.text("tso", "", "TSO (empty: the newest watermark)")

# COMMAND ----------

from ticdc_lakehouse.widgets import snapshot_from_widgets

snapshot = snapshot_from_widgets(spark, dbutils)
print(snapshot)

# COMMAND ----------

# In SQL: `SELECT … FROM shop_craft_shop_orders`, with no schema before the name, reads the table as of then.
for name in snapshot.create_views():
    print(name)
    display(spark.sql(f"SELECT * FROM {name} LIMIT 20"))
