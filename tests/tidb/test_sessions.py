"""Fresh sessions of random statements in strict mode, without it, and in both, recorded on a real TiDB and played as
changefeeds."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "planning"))

from played_session import PROTOCOLS, differences
from record_session import clear, session, write_session
from statement_texts import MODES
from tidb_server import TiDB, server

PROGRAM = server()
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no tidb-server: `make verify-test` builds it, and needs Go"),
    pytest.mark.timeout(1800),
]


@pytest.mark.parametrize("modes", MODES)
def test_fresh_session_leaves_definitions_and_rows_of_tidb(database: TiDB, modes: str, tmp_path: Path) -> None:
    seed = int(time.time())
    clear(database)
    file = tmp_path / "session.jsonl.gz"
    write_session(session(database, seed, 200, modes), file)
    found = [text for protocol in PROTOCOLS for text in differences(file, protocol, tmp_path / protocol)]
    assert found == [], f"seed {seed}, {modes}"
