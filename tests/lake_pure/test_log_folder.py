"""What is deleted of a Delta table's log."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ticdc_lakehouse import log_folder


def log_of(folder: Path, *, newest: int, checkpoints: dict[int, float]) -> Path:
    """A log with commits up to ``newest`` and checkpoints, each some seconds old."""
    log = folder / "_delta_log"
    log.mkdir()
    for version in range(newest + 1):
        commit = f"{version:020d}"
        for name in (f"{commit}.json", f".{commit}.json.crc", f"{commit}.crc", f".{commit}.crc.crc"):
            (log / name).touch()
    for version, age in checkpoints.items():
        for name in (f"{version:020d}.checkpoint.parquet", f".{version:020d}.checkpoint.parquet.crc"):
            (log / name).touch()
            os.utime(log / name, (time.time() - age,) * 2)
    if checkpoints:
        (log / "_last_checkpoint").write_text(f'{{"version":{max(checkpoints)},"size":9}}', encoding="utf-8")
    (log / "_commits").mkdir()
    (log / "not of the log.json").touch()
    return log


def versions(log: Path, pattern: str) -> list[int]:
    return sorted(
        int(path.name.lstrip(".").split(".")[0]) for path in log.glob(pattern) if path.name != "not of the log.json"
    )


@pytest.mark.parametrize(
    ("keeps_versions", "read_from", "commits", "checkpoints"),
    [
        (True, None, range(25), [10, 15, 20]),
        (False, None, range(15, 25), [15, 20]),
        (False, 20, range(15, 25), [15, 20]),
        (False, 14, range(10, 25), [10, 15, 20]),
        (False, 9, range(25), [10, 15, 20]),
    ],
    ids=[
        "all versions are kept",
        "from the newest that is old",
        "read to the end",
        "read before it",
        "read before any",
    ],
)
def test_what_stays(
    tmp_path: Path, keeps_versions: bool, read_from: int | None, commits: range, checkpoints: list[int]
) -> None:
    log = log_of(tmp_path, newest=24, checkpoints={10: 2000, 15: 1000, 20: 500})
    log_folder.trim(log, keeps_versions=keeps_versions, read_from=read_from)
    assert versions(log, "[0-9]*.json") == [*commits]
    assert versions(log, "*.checkpoint.parquet") == checkpoints
    assert versions(log, "[0-9]*.crc") == versions(log, ".*.json.crc") == [*range(20, 25)], "checksums"
    assert {"_commits", "_last_checkpoint", "not of the log.json"} < {path.name for path in log.iterdir()}


@pytest.mark.parametrize("named", [None, "", "{", '{"size":1}', '{"version":0}'])
def test_without_a_checkpoint_that_is_known_to_be_whole_all_stays(tmp_path: Path, named: str | None) -> None:
    log = log_of(tmp_path, newest=12, checkpoints={10: 2000})
    (log / "_last_checkpoint").unlink()
    if named is not None:
        (log / "_last_checkpoint").write_text(named, encoding="utf-8")
    before = sorted(log.iterdir())
    log_folder.trim(log)
    assert sorted(log.iterdir()) == before


def test_a_log_that_is_missing_or_cannot_be_changed_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_folder.trim(tmp_path / "_delta_log")
    log = log_of(tmp_path, newest=12, checkpoints={10: 2000})

    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    log_folder.trim(log)
    assert versions(log, "[0-9]*.json") == [*range(13)]


def test_a_table_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    log_folder.trim(tmp_path / "_delta_log")
    assert list(tmp_path.iterdir()) == []


def test_another_run_may_trim_the_log_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeds share the tables of ops."""
    log, listed = log_of(tmp_path, newest=12, checkpoints={5: 3000, 10: 2000}), Path.iterdir

    def trimmed_meanwhile(folder: Path) -> list[Path]:
        paths = [*listed(folder)]
        for path in paths:
            if path.name.startswith(f"{10:020d}.checkpoint") or path.name == f"{0:020d}.json":
                path.unlink()
        return paths

    monkeypatch.setattr(Path, "iterdir", trimmed_meanwhile)
    log_folder.trim(log)
    assert versions(log, "[0-9]*.json") == [*range(1, 13)]


def test_a_process_that_dies_leaves_a_log_without_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, unlink, deleted = log_of(tmp_path, newest=12, checkpoints={10: 2000}), Path.unlink, []

    def die_at_the_ninth(path: Path) -> None:
        if len(deleted) == 9:
            raise KeyboardInterrupt
        deleted.append(path)
        unlink(path)

    monkeypatch.setattr(Path, "unlink", die_at_the_ninth)
    with pytest.raises(KeyboardInterrupt):
        log_folder.trim(log)
    left = versions(log, "[0-9]*.json")
    assert left in ([*range(2, 13)], [*range(3, 13)])
