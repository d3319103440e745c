"""Sessions in random case that a real TiDB recorded, as changefeeds: after every statement each table is defined as
TiDB has it, or is blocked by a statement that no message explains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from played_session import PROTOCOLS, differences

SESSIONS = sorted((Path(__file__).parents[1] / "data").glob("session*.jsonl.gz"))
IN_ALL, OTHERS = "session", ("canal_json", "open_protocol")
"""The session that every protocol plays in `make test`, and the protocols of the other ones there."""


def cases() -> Iterator[Any]:
    for protocol, session in product(PROTOCOLS, SESSIONS):
        name = session.name.split(".")[0]
        quick = name == IN_ALL or protocol in OTHERS
        yield pytest.param(session, protocol, id=f"{name}-{protocol}", marks=() if quick else pytest.mark.long)


@pytest.mark.parametrize(("session", "protocol"), list(cases()))
def test_every_statement_leaves_the_definitions_of_tidb(session: Path, protocol: str, tmp_path: Path) -> None:
    assert list(differences(session, protocol, tmp_path)) == []
