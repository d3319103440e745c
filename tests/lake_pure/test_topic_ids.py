"""When bronze does not ask Kafka for the ids of topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ticdc_lakehouse.bronze.topic_ids import check_topic_ids


class SessionThatCannotLogIn:
    """Asked without the credential, Kafka would not answer in ten seconds."""

    @property
    def _jvm(self) -> Any:
        raise AssertionError("Kafka was asked")


@pytest.mark.parametrize("damaged", [None, "", "\0\0", '{"t":"xy', "[]"])
def test_with_a_service_credential_ids_are_not_asked_for(tmp_path: Path, damaged: str | None) -> None:
    """Nor does a file that a loss of power left damaged end the run: the ids that Kafka has count."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t":{"0":5}}', encoding="utf-8")
    options = {"kafka.bootstrap.servers": "msk:9098", "databricks.serviceCredential": "msk"}
    spark: Any = SessionThatCannotLogIn()
    noted = tmp_path / "topic_ids.json"
    if damaged is not None:
        noted.write_text(damaged, encoding="utf-8")
    check_topic_ids(spark, "f", options, str(tmp_path))
    assert (noted.read_text(encoding="utf-8") if noted.exists() else None) == damaged
