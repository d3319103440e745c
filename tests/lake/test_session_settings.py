"""Settings that a session refuses stay as they are; any other error is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from ticdc_lakehouse.session_settings import set_if_allowed, setting_of, settings

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
