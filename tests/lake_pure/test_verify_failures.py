"""What a comparison with TiDB still does where a table cannot be compared or repaired; without Spark and TiDB."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PythonException

from ticdc_lakehouse.ops.verify import verification
from ticdc_lakehouse.ops.verify.results import Result, TableResult
from ticdc_lakehouse.ops.verify.row_differences import Difference, DifferenceKind
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, TableState
from ticdc_lakehouse.schema.names import TableName


def test_what_spark_refuses_for_one_table_keeps_no_other_from_being_compared_and_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker of a repair reports TiDB's error as one of Spark."""
    vacuumed = AnalysisException("[DELTA_VERSION_NOT_FOUND] Cannot time travel to version 7.\n\tat x.Y")
    damaged = Py4JError("An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted\n")
    in_a_worker = PythonException(
        "Job aborted.\nTraceback (most recent call last):\n  File ...\nticdc_codec.errors.ConfigError: TiDB is gone\n"
    )
    failures = {"t1": vacuumed, "t2": damaged}
    names = [TableName("d", table) for table in (*failures, "t3", "t4")]
    state = TableState(lake_name="t", stable_id="t", version=7, applied_tso=9)
    recorded: list[TableResult] = []

    def compared(
        _lake: object, _config: object, _source: object, _before: object, name: TableName, _: object
    ) -> object:
        if name.table in failures:
            raise failures[name.table]
        different = Difference(table=name, kind=DifferenceKind.MISSING)
        result = TableResult(name=name, tso=9, version=7, result=Result.DIFFERENT, differences=(different,))
        return result, SimpleNamespace(name=name, rows=1) if name.table == "t4" else None

    def gone(*_: object) -> None:
        raise in_a_worker

    monkeypatch.setattr(verification, "published", lambda *_: Published(tso=9, tables=dict.fromkeys(names, state)))
    monkeypatch.setattr(verification, "_verify_table", compared)
    monkeypatch.setattr(verification, "repair", gone)
    monkeypatch.setattr(verification.results, "create_tables", lambda _: None)
    monkeypatch.setattr(verification.results, "record", lambda *given: recorded.extend(given[-1]))
    session = SimpleNamespace(connect=lambda: SimpleNamespace(close=lambda: None))
    config = GoldConfig(feed="f", time_zone="UTC")
    settings = verification.VerifySettings(repair=True)
    found = verification.verify(None, config, lambda _: session, settings)  # type: ignore[arg-type, return-value]
    assert [*found.tables] == recorded
    assert [(table.name.table, table.result, table.detail) for table in recorded] == [
        ("t1", Result.FAILED, "[DELTA_VERSION_NOT_FOUND] Cannot time travel to version 7."),
        ("t2", Result.FAILED, "org.apache.spark.SparkException: Job aborted"),
        ("t3", Result.DIFFERENT, None),
        ("t4", Result.DIFFERENT, "not repaired: ConfigError: TiDB is gone"),
    ]
    assert [len(table.differences) for table in recorded] == [0, 0, 1, 1]
