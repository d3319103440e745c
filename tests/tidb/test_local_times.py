"""The instant that a real TiDB takes for a local time, where clocks are set back."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

sys.path.append(str(Path(__file__).parents[1] / "codec"))

from test_local_time import TWICE
from tidb_server import server, tidb

from ticdc_codec.local_time import instant_of

PROGRAM = server()


@pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go")
@pytest.mark.timeout(600)
def test_tidb_takes_the_same_instants(tmp_path: Path) -> None:
    assert PROGRAM is not None
    with tidb(PROGRAM, tmp_path) as running, running.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE test.t (id INT PRIMARY KEY, at TIMESTAMP, d DATETIME)")
        for number, (zone, text, _) in enumerate(TWICE):
            cursor.execute(f"SET time_zone = '{zone}'")
            cursor.execute(f"INSERT INTO test.t VALUES ({number}, '{text}', '{text}')")
        cursor.execute("SET time_zone = 'UTC'")
        cursor.execute("SELECT at FROM test.t ORDER BY id")
        taken = [str(at) for (at,) in cursor.fetchall()]
    assert taken == [utc for _, _, utc in TWICE]
    ours = [instant_of(datetime.fromisoformat(text), ZoneInfo(zone)) for zone, text, _ in TWICE]
    assert ours == [datetime.fromisoformat(utc).replace(tzinfo=UTC) for *_, utc in TWICE]
