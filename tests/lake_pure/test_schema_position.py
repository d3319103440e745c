"""Up to where silver was searched for schemas, as one run leaves it to the next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ticdc_lakehouse.silver import schema_position
from ticdc_lakehouse.silver.schema_position import SchemaPosition

AT = datetime(2026, 11, 27, 21, 20, 0, 123456, tzinfo=UTC)
POSITION = SchemaPosition(batch=7, replayed_at=AT, schemas=3)


def test_a_run_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    assert schema_position.read(str(tmp_path), 3) == SchemaPosition()
    schema_position.write(str(tmp_path), POSITION)
    assert schema_position.read(str(tmp_path), 4) == POSITION


def test_the_search_begins_anew_where_schemas_were_lost(tmp_path: Path) -> None:
    schema_position.write(str(tmp_path), POSITION)
    assert schema_position.read(str(tmp_path), 2) == SchemaPosition()
    assert schema_position.read(str(tmp_path), 3) == SchemaPosition(), "the run that learned another one was killed"


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"batch": "seven"}', b'{"batch": 7, "replayed_at": "now"}'])
def test_an_unreadable_file_is_no_position(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "schemas_learned").write_bytes(text)
    assert schema_position.read(str(tmp_path), 3) == SchemaPosition()


def test_events_of_the_newest_batch_may_still_come() -> None:
    assert SchemaPosition().later_sql == "(batch >= 0 OR replayed_at IS NOT NULL)"
    assert POSITION.later_sql == "(batch >= 7 OR replayed_at > TIMESTAMP '2026-11-27 21:20:00.123456+00:00')"
