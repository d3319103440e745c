# Databricks notebook source
# MAGIC %md
# MAGIC # Selftest: what only this workspace can tell
# MAGIC - **In**: the lake's schemas, folder of checkpoints; `principal`, a group, and `secret`, `scope/key`, or empty.
# MAGIC - **Out**: a table: each check, how it ended, and what a failure means. Its own table and files are dropped.
# MAGIC - **Contract**: touches no feed. Fails if a check failed.

# COMMAND ----------

dbutils.widgets.text("catalog", "main", "Catalog")
dbutils.widgets.text("bronze_schema", "bronze", "Bronze schema")
dbutils.widgets.text("silver_schema", "silver", "Silver schema")
dbutils.widgets.text("live_schema", "live", "Schema of live tables")
dbutils.widgets.text("gold_schema", "gold", "Gold schema")
dbutils.widgets.text("ops_schema", "ops", "Ops schema")
dbutils.widgets.text("checkpoint_root", "/Volumes/main/ops/checkpoints", "Folder of checkpoints")
dbutils.widgets.text("principal", "", "Group to grant to and revoke from (empty: not tried)")
dbutils.widgets.text("secret", "", "Secret that feeds refer to, scope/key (empty: not tried)")
dbutils.widgets.text("job_parameter", "", "Given by the job")
dbutils.widgets.text("nested_parameter", "", "Given by the task")

# COMMAND ----------

from ticdc_lakehouse.widgets import selftest_from_widgets, selftest_verdict

results = selftest_from_widgets(spark, dbutils)
display(results)

# COMMAND ----------

print(selftest_verdict(results))
