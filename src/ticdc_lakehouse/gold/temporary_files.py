"""Temporary files of a run of gold: folders under the checkpoint folder, which the run removes when it is done.

    gold_<feed>/stage/<seconds>_<id>    rows that one pass staged (`staging`)
    gold_<feed>/source/<seconds>_<id>   rows that were read from TiDB (`source_rows`)

A run that is killed leaves its folders, and customers' rows in them; the next run removes those.
"""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from uuid import uuid4

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.live_table import is_abandoned


class Purpose(StrEnum):
    """What temporary files are for; the name of the folder above theirs."""

    STAGE = "stage"
    SOURCE = "source"


def new_folder(lake: Lake, feed: str, purpose: Purpose) -> str:
    """Returns the path of a folder that does not exist yet. Its name says when it was begun."""
    return str(_folder(lake, feed, purpose) / f"{int(time.time())}_{uuid4().hex}")


def remove(folder: str) -> None:
    """Removes a folder of `new_folder`, if it exists."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(lake: Lake, feed: str) -> None:
    """Removes what dead runs left (`is_abandoned`)."""
    for found in (each for purpose in Purpose for each in _folder(lake, feed, purpose).glob("*")):
        if is_abandoned(lake, _begun(found)):
            shutil.rmtree(found, ignore_errors=True)


def _begun(folder: Path) -> datetime:
    """Returns when a folder of `new_folder` was begun; of any other name the epoch."""
    seconds = folder.name.partition("_")[0]
    return datetime.fromtimestamp(int(seconds) if seconds.isdecimal() else 0, UTC)


def _folder(lake: Lake, feed: str, purpose: Purpose) -> Path:
    return Path(lake.checkpoint(f"gold_{feed}")) / purpose
