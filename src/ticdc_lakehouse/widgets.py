"""What notebooks beside those of the layers call with their widgets: alarm, verification, as_of, selftest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import job_parameters
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.gold.time_travel import AsOf, as_of
from ticdc_lakehouse.ops.selftest import Environment, Outcome, selftest
from ticdc_lakehouse.ops.verify.results import Verified


def alarm_from_widgets(spark: SparkSession, dbutils: Any) -> None:
    """Makes the run of a notebook's widgets fail if it needs somebody: ``bronze``, ``silver``, ``gold`` say how each
    layer's task ended.

    Raises ConfigError if one did not succeed, before the feed file is read, which may be why; else as `Run.alarm`.
    """
    _check_tasks(dbutils.widgets.getAll())
    Run.from_widgets(spark, dbutils).alarm()


def _check_tasks(parameters: Mapping[str, str]) -> None:
    """Raises ConfigError that says how each layer's task ended, unless all succeeded."""
    states = {task: job_parameters.given(parameters, task) for task in (Layer.BRONZE, Layer.SILVER, Layer.GOLD)}
    if any(state != "success" for state in states.values()):
        ended = ", ".join(f"{task}: {state}" for task, state in states.items())
        raise ConfigError(f"feed {job_parameters.given(parameters, 'feed')}: a task did not succeed: {ended}")


def verify_from_widgets(spark: SparkSession, dbutils: Any) -> Verified:
    """Runs `Run.verify_source` with a notebook's widgets: dsn (empty: the feed's), table (empty: all), threads, sleep,
    repair."""
    run, parameters = Run.from_widgets(spark, dbutils), dbutils.widgets.getAll()
    table = parameters.get("table", "")
    return run.verify_source(
        parameters.get("dsn") or None,
        [table] if table else [],
        threads=job_parameters.number(parameters, "threads", least=1) or 4,
        sleep=job_parameters.seconds(parameters, "sleep"),
        repair=job_parameters.choice(parameters, "repair", ("no", "yes")) == "yes",
    )


def snapshot_from_widgets(spark: SparkSession, dbutils: Any) -> AsOf:
    """Returns the tables of the feed that a notebook's widgets name, as of their ``tso``, or the newest if that is
    empty.

    Reads only the lake: the widgets need name no feed files and no checkpoints.
    """
    parameters = {"checkpoint_root": "", **dbutils.widgets.getAll()}
    feed, tso = job_parameters.given(parameters, "feed"), job_parameters.number(parameters, "tso")
    return as_of(spark, feed, tso, lake=job_parameters.lake_from(spark, parameters))


def selftest_from_widgets(spark: SparkSession, dbutils: Any) -> DataFrame:
    """Returns the checks of `ops.selftest` in the lake that a notebook's widgets describe: check, outcome, detail,
    meaning."""
    parameters = dbutils.widgets.getAll()
    env = Environment(
        lake=job_parameters.lake_from(spark, parameters),
        principal=parameters.get("principal", ""),
        secret=parameters.get("secret", ""),
        read_secret=dbutils.secrets.get,
        job_parameter=parameters.get("job_parameter", ""),
        nested_parameter=parameters.get("nested_parameter", ""),
    )
    rows = [(each.check, each.outcome.value, each.detail, each.meaning) for each in selftest(env)]
    return spark.createDataFrame(rows, "check STRING, outcome STRING, detail STRING, meaning STRING")


def selftest_verdict(results: DataFrame) -> str:
    """Returns how many checks there were. Raises ConfigError naming those that failed, with what follows from it."""
    rows = results.collect()
    failed = [row for row in rows if row["outcome"] == Outcome.FAILED]
    if failed:
        raise ConfigError("\n".join(f"{row['check']}: {row['detail']}: {row['meaning']}" for row in failed))
    return f"{len(rows)} checks, none failed"
