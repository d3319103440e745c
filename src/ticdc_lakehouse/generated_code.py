"""Whether Spark generates Java code for a run's queries: it pays for many rows, and costs more than it saves for few.

A laptop's session has it off (`ticdc_local.session`): a window of three small tables takes half the time without. A run
that has many rows before it turns it on for itself; where it is on anyway, as on a cluster, nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ticdc_lakehouse.session_settings import settings

MANY_ROWS = 50_000
_ON = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@contextmanager
def generated_code(spark: SparkSession, rows: int) -> Iterator[None]:
    """Queries and streams that begin within have generated code if about so many ``rows`` wait for them."""
    with settings(spark, _ON if rows >= MANY_ROWS else {}):
        yield
