"""Whether a folder has a Delta table is asked in every round, for each table of a feed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ticdc_lakehouse.folder_lake import holds_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


def test_a_folder_holds_a_table_if_its_log_has_a_commit(tmp_path: Path) -> None:
    assert not holds_table(tmp_path / "missing")
    (tmp_path / "_delta_log" / "_staged_commits").mkdir(parents=True)
    assert not holds_table(tmp_path)
    (tmp_path / "_delta_log" / "00000000000000000000.json").touch()
    assert holds_table(tmp_path)
    (tmp_path / "file").touch()
    assert not holds_table(tmp_path / "file")


def test_a_long_log_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, scandir, read = tmp_path / "_delta_log", os.scandir, []

    class Scan:
        def __init__(self, folder: Any) -> None:
            self._entries = scandir(folder)

        def __enter__(self) -> Scan:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator[Any]:
            for entry in self._entries:
                read.append(entry.name)
                yield entry

    log.mkdir()
    for version in range(100):
        (log / f"{version:020}.json").touch()
    monkeypatch.setattr(os, "scandir", Scan)
    assert holds_table(tmp_path)
    assert len(read) == 1
