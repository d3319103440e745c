# Databricks notebook source
# MAGIC %md
# MAGIC # A feed's tables as TiDB held them at a TSO
# MAGIC - **In**: a feed and a TSO. In TiDB, `SELECT TIDB_CURRENT_TSO()` inside a transaction gives one.
# MAGIC - **Out**: the feed's tables as DataFrames, all at the newest published watermark that is not after the TSO.
# MAGIC - **Contract**: reads only. The tables belong together: no transaction shows in one and is missing in
# MAGIC   another.

# COMMAND ----------

dbutils.widgets.text("feed", "shop_craft", "Feed")
dbutils.widgets.text("tso", "9223372036854775807", "TSO (the default is after everything)")

# COMMAND ----------

from ticdc_lakehouse import as_of

snapshot = as_of(spark, dbutils.widgets.get("feed"), int(dbutils.widgets.get("tso")))
print(f"watermark {snapshot.tso}, {snapshot.time}")

# COMMAND ----------

# In SQL: `SELECT … FROM shop_craft_shop_orders`, with no schema before the name, reads the table as of then.
for name in snapshot.create_views():
    print(name)
    display(spark.sql(f"SELECT * FROM {name} LIMIT 20"))
