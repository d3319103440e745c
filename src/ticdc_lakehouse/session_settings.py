"""Optional settings of the session: standard access mode and serverless compute refuse most of them, and
a session keeps the platform's own there (https://docs.databricks.com/spark/conf#serverless)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError

MANY_ROWS = 50_000
_GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    # A method of more bytes of code Java interprets for ever (HotSpot's HugeMethodLimit); Spark then generates several.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
_REFUSED = {"CONFIG_NOT_AVAILABLE", "CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG"}
"""Error conditions of a setting that the session does not have, or may not change."""


def is_connect(spark: SparkSession) -> bool:
    """True if the session is a client of Spark Connect, as on serverless compute and in standard access mode."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def setting_of(spark: SparkSession, name: str) -> str | None:
    """Returns a setting's value; None where it is not set, or not readable."""
    with _unless_refused():
        return spark.conf.get(name, None)
    return None


def set_if_allowed(spark: SparkSession, name: str, value: str | None) -> None:
    """Sets a setting, or unsets it (None), where the session may."""
    with _unless_refused():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def set_needed(spark: SparkSession, name: str, value: str, purpose: str) -> None:
    """Sets a setting without which nothing works. Raises ConfigError, with its ``purpose``, where the session may
    not."""
    try:
        spark.conf.set(name, value)
    except PySparkException as error:
        if not _is_refusal(error):
            raise
        raise ConfigError(
            f"this compute refuses the setting {name}, {purpose}: use compute in dedicated access mode "
            "(docs/databricks.md, Standard access mode and serverless)"
        ) from None


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Applies these settings to queries and streams that start within, where the session may set them. A stream keeps
    those that it was started with."""
    before = {name: setting_of(spark, name) for name in wanted}
    for name, value in wanted.items():
        set_if_allowed(spark, name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            set_if_allowed(spark, name, former)


@contextmanager
def generated_code(spark: SparkSession, rows: int) -> Iterator[None]:
    """Lets queries and streams that start within run as generated Java code if about MANY_ROWS ``rows`` or more wait
    for them: it pays for many rows, and costs more than it saves for few.

    A laptop's session has it off (`ticdc_local.session`): a window of three small tables takes half the time without.
    Where it is on anyway, as on a cluster, only methods that Java would not compile become smaller.
    """
    with settings(spark, _GENERATED_CODE if rows >= MANY_ROWS else {}):
        yield


def partial_offsets_allowed(spark: SparkSession) -> AbstractContextManager[None]:
    """Lets streams that start within begin also where an earlier attempt ended while it planned the first batch, as on
    a full disk: it leaves a part of a file in the checkpoint's ``offsets``, and Spark 4.1 refuses a folder that is not
    empty."""
    return settings(spark, {"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"})


@contextmanager
def _unless_refused() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        if not _is_refusal(error):
            raise


def _is_refusal(error: PySparkException) -> bool:
    """True for a setting that the session refuses. Serverless compute adds a condition of its own:
    ``CONFIG_NOT_AVAILABLE.WITHOUT_SUGGESTION``."""
    return (error.getCondition() or "").partition(".")[0] in _REFUSED
