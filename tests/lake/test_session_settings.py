"""Settings that a session refuses stay as they are; any other error is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.session_settings import set_if_allowed, set_needed, setting_of, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATIC, OWN = "spark.sql.warehouse.dir", "spark.sql.shuffle.partitions"


def test_a_refused_setting_stays_as_it_is(spark: SparkSession) -> None:
    before = setting_of(spark, STATIC)
    with settings(spark, {STATIC: "elsewhere", OWN: "7"}):
        assert (setting_of(spark, STATIC), setting_of(spark, OWN)) == (before, "7")
    assert setting_of(spark, OWN) == "4"


def test_a_setting_that_was_not_set_is_unset_again(spark: SparkSession) -> None:
    with settings(spark, {"ticdc.test": "1"}):
        assert setting_of(spark, "ticdc.test") == "1"
    assert setting_of(spark, "ticdc.test") is None


def test_a_wrong_value_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        set_if_allowed(spark, OWN, "many")


def test_a_refused_setting_that_is_needed_is_an_error_with_a_way_out(spark: SparkSession) -> None:
    wanted = f"refuses the setting {STATIC}, by which nothing works: use compute in dedicated access mode"
    with pytest.raises(ConfigError, match=wanted):
        set_needed(spark, STATIC, "elsewhere", "by which nothing works")
    with pytest.raises(PySparkException):
        set_needed(spark, OWN, "many", "by which nothing works")
