"""Logs of Delta tables as long runs leave them: a commit for each window, with all its checksums."""

from __future__ import annotations

import json
import os
import time
import zlib
from pathlib import Path

from ticdc_lakehouse.folder_lake import FolderLake

_AGE_SECONDS = 86_400
_CHUNK = 512
"""Bytes for which Hadoop writes one checksum."""
_NOTHING = {"operation": "WRITE", "operationParameters": {}, "isBlindAppend": True, "operationMetrics": {}}


def lengthen(lake: FolderLake, commits: int) -> None:
    """Give each table of a lake this many commits that change nothing, a day old, and a checkpoint of the last one."""
    delta = lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    for log in sorted(lake.root.rglob("_delta_log")):
        _append(log, commits)
        delta.clearCache()
        delta.forTable(lake.spark._jsparkSession, str(log.parent)).checkpoint()
        for file in log.iterdir():
            os.utime(file, (time.time() - _AGE_SECONDS,) * 2)


def _append(log: Path, commits: int) -> None:
    newest = max(int(file.stem) for file in log.glob("*.json") if file.stem.isdigit())
    checksum = (log / f"{newest:020d}.crc").read_bytes()
    commit = json.dumps({"commitInfo": {"timestamp": int((time.time() - _AGE_SECONDS) * 1000), **_NOTHING}}).encode()
    for version in range(newest + 1, newest + 1 + commits):
        for name, content in ((f"{version:020d}.json", commit), (f"{version:020d}.crc", checksum)):
            (log / name).write_bytes(content)
            (log / f".{name}.crc").write_bytes(_hadoop_checksum(content))


def _hadoop_checksum(content: bytes) -> bytes:
    sums = (zlib.crc32(content[at : at + _CHUNK]) for at in range(0, len(content), _CHUNK))
    return b"crc\0" + _CHUNK.to_bytes(4, "big") + b"".join(each.to_bytes(4, "big") for each in sums)
