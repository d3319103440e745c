"""A table without columns that a version before this one left: a run removes it, who only reads leaves it there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import AnalysisException

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.job_parameters import READS_ONLY_CONF, ROOT_CONF, lake_from
from ticdc_local import session
from ticdc_local.java import find_java

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COMMIT = r'{"metaData":{"schemaString":"{\"type\":\"struct\",\"fields\":[]}"}}'
PARAMETERS = {"catalog": "c", "checkpoint_root": "", **{f"{layer}_schema": layer.value for layer in Layer}}


class WithoutColumnsError(AnalysisException):
    def __init__(self) -> None:
        self._cause = None

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        return "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG"


def session_of(root: Path, scratch: Path | None, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session with the settings that the process's own one would have; Delta finds no columns in any folder."""
    monkeypatch.setattr(session, "class_path", lambda _: "")
    settings: dict[str, Any] = session._places(root, scratch, find_java())
    assert settings[ROOT_CONF] == str(root)

    def sql(statement: str) -> None:
        if statement.startswith("CREATE TABLE"):
            raise WithoutColumnsError

    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
    return cast("SparkSession", SimpleNamespace(sql=sql, conf=conf))


@pytest.mark.parametrize("reads_only", [True, False])
def test_only_a_run_that_writes_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads_only: bool
) -> None:
    log = tmp_path / "lake" / Layer.LIVE / "empty" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text(COMMIT)
    spark = session_of(tmp_path / "lake", tmp_path / "scratch" if reads_only else None, monkeypatch)
    before = sorted((tmp_path / "lake").rglob("*"))
    lake_from(spark, PARAMETERS)
    assert log.exists() == reads_only
    if reads_only:
        assert sorted((tmp_path / "lake").rglob("*")) == before
    assert (spark.conf.get(READS_ONLY_CONF) == "true") == reads_only
