"""Settings that a session refuses, by the conditions of its errors; without Spark.

What a session of open-source Spark refuses is in `tests/lake/test_session_settings.py`; the conditions here come from
Databricks alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.session_settings import set_if_allowed, set_needed, setting_of, settings


@dataclass
class Refusing:
    """A session, and its settings, each of which it refuses with this condition."""

    condition: str

    @property
    def conf(self) -> Refusing:
        return self

    def get(self, name: str, _default: str | None) -> str:
        raise PySparkException(f"[…] {name}", errorClass=self.condition)

    def set(self, name: str, _value: str) -> None:
        raise PySparkException(f"[…] {name}", errorClass=self.condition)

    def unset(self, name: str) -> None:
        raise PySparkException(f"[…] {name}", errorClass=self.condition)


@pytest.mark.parametrize(
    "condition",
    [
        "CONFIG_NOT_AVAILABLE",
        "CONFIG_NOT_AVAILABLE.WITHOUT_SUGGESTION",
        "CONFIG_NOT_AVAILABLE.WITH_SUGGESTION",
        "CANNOT_MODIFY_CONFIG",
        "CANNOT_MODIFY_STATIC_CONFIG",
    ],
)
def test_a_refusal_leaves_a_setting_as_it_is(condition: str) -> None:
    spark: Any = Refusing(condition)
    assert setting_of(spark, "a") is None
    set_if_allowed(spark, "a", "1")
    with settings(spark, {"a": "1"}):
        set_if_allowed(spark, "a", None)
    with pytest.raises(ConfigError, match="this compute refuses the setting a, without which nothing works: use comp"):
        set_needed(spark, "a", "1", "without which nothing works")


@pytest.mark.parametrize("condition", ["INVALID_CONF_VALUE.TIME_ZONE", "CONFIG_NOT_AVAILABLE_HERE"])
def test_any_other_error_is_one(condition: str) -> None:
    spark: Any = Refusing(condition)
    for act in (
        lambda: setting_of(spark, "a"),
        lambda: set_if_allowed(spark, "a", "1"),
        lambda: set_needed(spark, "a", "1", "without which nothing works"),
    ):
        with pytest.raises(PySparkException, match="a"):
            act()
