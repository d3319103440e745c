"""One run at a time of a layer and feed. The other one says so and stops, before it touches anything."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer


@contextmanager
def turn(lake: Lake, feed: str, layer: Layer) -> Iterator[None]:
    """Hold the turn of a layer and feed; the operating system takes it back from a process that dies.

    Raises ConfigError if another process holds it. On Databricks there is no lock: the job sees to it
    (``max_concurrent_runs: 1``), and gold publishes only on top of the state that it began from.
    """
    if lake.root is None:
        yield
        return
    folder = lake.root / "turns"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{feed}.{layer}", f"feed {feed}: {layer}"):
        yield


@contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ConfigError(
                f"{what} is at work in another process ({file.read() or 'unknown'}): wait until it has ended"
            ) from None
        file.truncate(0)
        file.write(f"pid {os.getpid()}")
        file.flush()
        yield
