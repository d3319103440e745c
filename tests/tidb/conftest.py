"""A TiDB server for each test file that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tidb_server import TiDB, server, tidb


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TiDB]:
    """A running server; a file that asks for it is skipped where there is no program."""
    program = server()
    assert program is not None
    with tidb(program, tmp_path_factory.mktemp("tidb")) as running:
        yield running
