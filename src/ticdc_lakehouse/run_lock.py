"""One run at a time of a layer and feed. A second one stops with an error before it changes anything."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.file_lock import locked

if TYPE_CHECKING:
    from ticdc_lakehouse.catalog import Lake, Layer


class Runs:
    """The active runs of this process: while none is active, the process can end without cutting off a commit."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work = 0
        self._closed = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Counts a run as active within. Once the runs are closed, it never starts."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def close(self, seconds: float) -> bool:
        """Prevents further runs from starting, and waits for the active ones up to ``seconds``. True if none is
        active."""
        with self._changed:
            self._closed = True
            return self._changed.wait_for(lambda: not self._at_work, seconds)


RUNS = Runs()


@contextmanager
def exclusive_run(lake: Lake, feed: str, layer: Layer) -> Iterator[None]:
    """Holds the lock of a layer and feed; the operating system takes it back from a process that dies.

    Raises ConfigError if another process holds it. On Databricks there is no lock: the job of all feeds allows
    one run (``max_concurrent_runs: 1``), and gold publishes only on top of the state that it began from.
    """
    with RUNS.at_work():
        folder = lake.locks
        if folder is None:
            yield
            return
        file = folder / f"{feed}.{layer}"
        with locked(file, wait=False) as is_held:
            if not is_held:
                other = file.read_text(encoding="ascii") or "unknown"
                raise ConfigError(
                    f"feed {feed}: {layer} is at work in another process ({other}): wait until it has ended"
                )
            file.write_text(f"pid {os.getpid()}", encoding="ascii")
            yield
