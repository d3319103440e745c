# Databricks notebook source
# MAGIC %md
# MAGIC # Alarm: make the run fail, so that it notifies
# MAGIC - **In**: how the tasks before it ended. It starts only if one of them failed; see
# MAGIC   `resources/ticdc_feed.job.yml`.
# MAGIC - **Out**: nothing.
# MAGIC - **Contract**: always raises. Why a task failed is in that task's output; `ops.feeds` and `ops.tables` show
# MAGIC   where each feed and table is.

# COMMAND ----------

dbutils.widgets.text("bronze", "", "How bronze ended")
dbutils.widgets.text("silver", "", "How silver ended")
dbutils.widgets.text("gold", "", "How gold ended")

# COMMAND ----------

states = {task: dbutils.widgets.get(task) for task in ("bronze", "silver", "gold")}
raise RuntimeError(", ".join(f"{task}: {state}" for task, state in states.items()))
