"""Sessions in random case that a real TiDB recorded, as changefeeds: after every statement each table is defined as
TiDB has it, or is blocked by a statement that no message explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from played_session import PROTOCOLS, differences

SESSIONS = sorted((Path(__file__).parents[1] / "data").glob("session*.jsonl.gz"))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda file: file.name.split(".")[0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_statement_leaves_the_definitions_of_tidb(session: Path, protocol: str, tmp_path: Path) -> None:
    assert list(differences(session, protocol, tmp_path)) == []
