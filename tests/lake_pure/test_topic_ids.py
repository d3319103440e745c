"""When bronze does not ask Kafka for the ids of topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ticdc_lakehouse.bronze.topic_ids import check_topic_ids


class SessionThatCannotLogIn:
    """Asked without the credential, Kafka would not answer in ten seconds."""

    @property
    def _jvm(self) -> Any:
        raise AssertionError("Kafka was asked")


def test_with_a_service_credential_ids_are_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t":{"0":5}}', encoding="utf-8")
    options = {"kafka.bootstrap.servers": "msk:9098", "databricks.serviceCredential": "msk"}
    spark: Any = SessionThatCannotLogIn()
    check_topic_ids(spark, "f", options, str(tmp_path))
    assert not (tmp_path / "topic_ids.json").exists()
