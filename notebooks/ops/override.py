# Databricks notebook source
# MAGIC %md
# MAGIC # A blocked table: continue
# MAGIC - **In**: a table of `ops.tables` with `blocked_at`, what to do, and why.
# MAGIC - **Out**: `skip-ddl` skips the DDL that blocks it, `resume` tries again from there.
# MAGIC   `ops.overrides` keeps the override, and the next run of gold continues with the table.
# MAGIC - **Contract**: changes no row. After `skip-ddl` the table may differ from TiDB by what the DDL did to it.

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
dbutils.widgets.text("table", "", "Table: database.table")
dbutils.widgets.dropdown("action", "resume", ["resume", "skip-ddl"], "What to do")
dbutils.widgets.text("reason", "", "Why")

# COMMAND ----------

from ticdc_lakehouse.entry import Run

run = Run.from_widgets(spark, dbutils)

# COMMAND ----------

get = dbutils.widgets.get
print(run.override(get("table"), get("action"), get("reason")))

# COMMAND ----------

display(run.status())
