"""Why a message in quarantine blocks its table."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.gold.watermark import quarantined
from ticdc_lakehouse.silver.quarantine import BlockingMessage


@pytest.mark.parametrize(
    ("reason", "way_out"),
    [("schema_missing", "send-bootstrap-interval-in-sec"), ("bad_value", "`ticdc-lake quarantine list` shows it")],
)
def test_blocked_table_says_what_to_do_about_its_message(reason: str, way_out: str) -> None:
    message = BlockingMessage(topic="t", partition=0, offset=17, reason=reason, database="d", table="t")
    assert way_out in str(quarantined(message))
