"""A session of 150 statements in random case that a real TiDB recorded, as a changefeed through every layer: rows are
equal after every statement but where its ADD COLUMN gives old rows a value that no message has shown yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.planning.stop_reason import StopKind
from ticdc_lakehouse.schema.computed_default import pending_columns
from ticdc_local.verify_stream import load_stream, verify
from ticdc_testkit.recorded_session import session_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.entry import Run
    from ticdc_local.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

SESSION = Path(__file__).parents[1] / "data" / "session.jsonl.gz"


@pytest.mark.parametrize(
    ("protocol", "options"), [("canal_json", {"enable-tidb-extension": True}), ("open_protocol", {})]
)
def test_rows_are_those_of_tidb(
    spark: SparkSession, broker: Broker, tmp_path: Path, protocol: str, options: dict[str, object]
) -> None:
    stream = session_stream(SESSION, protocol, options, tmp_path / "stream")
    run = load_stream(spark, broker, stream, tmp_path, name=f"session_{protocol}")
    compared, going_on = 0, set[str]()
    for verdict in verify(run, stream):
        excused = unknown_values(run)
        wrong = [d for d in verdict.differences if (d.table.lower(), d.column) not in excused]
        assert [str(d) for d in wrong if (d.table.lower(), None) not in excused] == [], verdict.watermark
        compared += verdict.tables
        going_on = {
            ".".join(name) for name, table in published(run.lake, run.feed.name).tables.items() if not table.stop
        }
    assert compared > 1000
    # Not At9: statement 112 makes numbers of its TIMESTAMPs, in the zone of the session that ran it.
    assert going_on >= {"oracle_Side.Codes", "Oracle_Main.parts"}


def unknown_values(run: Run) -> set[tuple[str, str | None]]:
    """Pending columns, and tables that are blocked (column None): by a DDL whose effect is on no wire, or since they
    have no handle key."""
    state = published(run.lake, run.feed.name)
    found: set[tuple[str, str | None]] = set()
    for name, table in state.tables.items():
        full = ".".join(name).lower()
        if table.stop is not None:
            no_key = table.stable_id not in state.definitions or not state.definitions[table.stable_id].table.key
            assert no_key or table.stop.kind is StopKind.UNSUPPORTED_DDL, table.stop
            found.add((full, None))
        if table.stable_id in state.definitions:
            found |= {(full, column.name) for column in pending_columns(state.definitions[table.stable_id].table)}
    return found
