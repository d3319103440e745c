"""What the selftest makes, and where; what becomes of a check that the session's client cannot run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.errors import PySparkException

from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.ops import selftest
from ticdc_lakehouse.ops.selftest import Environment, Outcome


def test_the_view_lies_in_another_schema_than_its_table_as_gold_views_do() -> None:
    lake = Lake(spark=None, catalog="c", schemas={layer: layer.value for layer in Layer}, checkpoints="")  # type: ignore[arg-type]
    env = Environment(lake=lake, name="t")
    assert (env.table, env.view) == ("`c`.`ops`.`t`", "`c`.`gold`.`t`")


def forbidden(*_: object) -> None:
    raise PySparkException("PERMISSION_DENIED")


def test_a_check_that_the_client_cannot_run_fails_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: Environment) -> str:
        raise AttributeError("'SparkSession' object has no attribute 'thread_local'")

    monkeypatch.setattr(selftest, "_CHECKS", {"lacking": (lacking, "m"), "other": (lambda _: "found", "m")})
    spark = SimpleNamespace(sql=forbidden)
    lake = cast(
        Lake, SimpleNamespace(spark=spark, table=lambda _, name: name, drop=forbidden, checkpoint=lambda name: name)
    )
    lacks, other = selftest.selftest(Environment(lake=lake))
    assert (lacks.outcome, lacks.detail) == (
        Outcome.FAILED,
        "'SparkSession' object has no attribute 'thread_local'",
    )
    assert (other.outcome, other.detail) == (Outcome.OK, "found")


@pytest.mark.parametrize(
    ("object_types", "outcome"), [(("SCHEMA", "VIEW"), Outcome.OK), (("SCHEMA", "CATALOG"), Outcome.FAILED)]
)
def test_a_privilege_that_a_view_inherits_is_none_of_its_own(object_types: tuple[str, ...], outcome: Outcome) -> None:
    grants = [{"Principal": "p", "ActionType": "SELECT", "ObjectType": each, "ObjectKey": "k"} for each in object_types]
    spark = SimpleNamespace(sql=lambda _: None)
    lake = cast(
        Lake,
        SimpleNamespace(
            spark=spark, on_databricks=True, table=lambda _, name: name, version=lambda _: 1, rows=lambda _: grants
        ),
    )
    env = Environment(lake=lake, principal="p", name="t")
    assert selftest._result("grants", selftest._kept_grants, "m", env).outcome is outcome
