"""Temporary folders of this process, removed however it ends, but for SIGKILL."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

_FOLDERS: list[Path] = []


def temporary_folder() -> Path:
    """Creates a folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="ticdc-lake-"))
    _FOLDERS.append(folder)
    return folder


@atexit.register
def remove_temporary_folders() -> None:
    """Removes them now: a process that a signal ends calls nothing at its end."""
    for folder in _FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
