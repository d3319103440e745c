"""The log folder of a Delta table on a laptop. Delta lists all of it for nearly every query, so it must not grow with
history: each commit leaves a file with the commit and three with checksums, and Delta deletes them after 30 days.

Cloud storage is listed from a version on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

_FILE = re.compile(r"\.?([0-9]{20})\.(json|crc|checkpoint\.parquet)(\.crc)?")
_YOUNG_SECONDS = 600
"""Age up to which a checkpoint does not yet stand for the commits before it: another process may read the table as it
was before."""


@dataclass(frozen=True, slots=True)
class _LogFile:
    path: Path
    version: int
    kind: str
    is_checksum: bool
    """Of a version, as Delta writes it, or of a file, as Hadoop does; none is needed."""


class _Checkpoint(msgspec.Struct):
    """The file ``_last_checkpoint``."""

    version: int


def trim(log: Path, *, keeps_versions: bool = False, read_from: int | None = None) -> None:
    """Deletes what is not needed of the commits before the newest checkpoint: their checksums; and, unless
    ``keeps_versions``, the commits and checkpoints before a checkpoint that is some minutes old, after which the table
    cannot be read as it was then. A stream reads the table from the version ``read_from`` on (None: there is none).

    From the first version on: a process that dies leaves a log without gaps.
    """
    with suppress(FileNotFoundError):  # another run trims it, too, or drops the table
        _trim(log, keeps_versions=keeps_versions, read_from=read_from)


def _trim(log: Path, *, keeps_versions: bool, read_from: int | None) -> None:
    files = sorted(_files(log), key=lambda file: file.version)
    newest = _newest_checkpoint(log)
    first = 0 if keeps_versions else _first_needed(files, newest if read_from is None else min(newest, read_from))
    for file in files:
        if file.version < first or (file.is_checksum and file.version < newest):
            with suppress(OSError):  # a file that cannot be deleted is in nobody's way
                file.path.unlink()


def _files(log: Path) -> Iterator[_LogFile]:
    for path in log.iterdir():
        if found := _FILE.fullmatch(path.name):
            version, kind, checksum = found.groups()
            yield _LogFile(path, int(version), kind, is_checksum=kind == "crc" or checksum is not None)


def _newest_checkpoint(log: Path) -> int:
    """Returns the version of the newest checkpoint that is known to be whole; 0 without one."""
    try:
        return msgspec.json.decode((log / "_last_checkpoint").read_bytes(), type=_Checkpoint).version
    except (FileNotFoundError, msgspec.DecodeError):
        return 0


def _first_needed(files: list[_LogFile], newest: int) -> int:
    """Returns the version of the newest checkpoint up to ``newest`` that is old enough; 0 without one."""
    old = time.time() - _YOUNG_SECONDS
    for file in reversed(files):
        is_checkpoint = file.kind == "checkpoint.parquet" and not file.is_checksum
        if is_checkpoint and file.version <= newest and file.path.stat().st_mtime < old:
            return file.version
    return 0
