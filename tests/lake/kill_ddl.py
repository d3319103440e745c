"""Kill -9 of gold over streams full of DDL: ``python tests/lake/kill_ddl.py FILE ... [--runs 50] [--seed N]``.

A recorded stream is landed and decoded once. Then gold goes from one of TiDB's answers to the next: some windows are
begun by a process that is killed at a random moment, whole or its JVM alone, and all are finished, in this process,
upon what is left of it. Gold must be TiDB's answer at every watermark.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kill import PROJECT, start

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.entry import Run
from ticdc_local.broker import Broker
from ticdc_local.session import local_session
from ticdc_local.verify_stream import load_stream, verdict
from ticdc_testkit.comparison import Cell
from ticdc_testkit.recorded_streams import Answer, RecordedStream, answers, recorded_stream

NOTEBOOK = PROJECT / "notebooks" / "gold" / "apply.py"
_SURE_TO_START = 120
"""Seconds after which a process that has not begun is a failure."""


@dataclass(slots=True)
class Result:
    """What happened, and what was wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    """By what was killed; ``done`` of runs that had finished before."""
    watermarks: int = 0
    mistakes: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Victim:
    """Gold's windows, some of them begun by a process that dies."""

    run: Run
    folder: Path
    chance: random.Random
    usual: float = 10.0
    """Seconds of the last window: a process is killed within them."""

    def go(self, answer: Answer, *, kill: bool) -> str | None:
        """Bring gold to an answer's watermark; gives what was killed on the way."""
        killed = self._die(answer.watermark) if kill else None
        self.run.lake.register()  # what the dead process made
        start = time.monotonic()
        replace(self.run, until_tso=answer.watermark).gold()
        self.usual = time.monotonic() - start
        return killed

    def _die(self, until_tso: int) -> str:
        job = start(self.folder, self.run.feed.name, until_tso, str(NOTEBOOK))
        self._await_turn(job)
        try:
            job.wait(self.chance.uniform(0, 1.2 * self.usual))
        except subprocess.TimeoutExpired:
            return self._kill(job)
        if job.returncode:
            raise AssertionError((self.folder / "run.log").read_text(encoding="utf-8"))
        return "done"

    def _await_turn(self, job: subprocess.Popen[bytes]) -> None:
        """Wait until the process is at gold."""
        turn = self.folder / "locks" / f"{self.run.feed.name}.{Layer.GOLD}"
        since = time.monotonic()
        while job.poll() is None and not (turn.exists() and turn.read_text(encoding="ascii") == f"pid {job.pid}"):
            if time.monotonic() - since > _SURE_TO_START:
                os.killpg(job.pid, signal.SIGKILL)
                raise AssertionError("gold did not begin")
            time.sleep(0.02)

    def _kill(self, job: subprocess.Popen[bytes]) -> str:
        children = subprocess.run(["pgrep", "-P", str(job.pid), "java"], capture_output=True, text=True, check=False)
        jvm = next(map(int, children.stdout.split()), None)
        alone = jvm is not None and self.chance.random() < 0.5
        if alone and jvm is not None:
            os.kill(jvm, signal.SIGKILL)
            job.wait(_SURE_TO_START)  # Python finds its JVM gone
        else:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        return "JVM" if alone else "process"


def run(folder: Path, broker: Broker, stream: RecordedStream, *, kills: int, seed: int) -> Result:
    """Go through all answers, and kill so many times on the way. ``folder`` is for the lake."""
    chance = random.Random(seed)
    loaded = load_stream(local_session(folder), broker, stream, folder, name="killed")
    known = list(answers(stream.folder))
    chosen = set(chance.sample(range(len(known)), min(kills, len(known))))
    victim = Victim(run=loaded, folder=folder, chance=chance)
    result = Result()
    seen: dict[tuple[str, int], list[tuple[Cell, ...]]] = {}
    for number, answer in enumerate(known):
        killed = victim.go(answer, kill=number in chosen)
        if killed is not None:
            result.kills[killed] += 1
        result.watermarks += 1
        found = [str(difference) for difference in verdict(loaded, answer, stream.time_zone, seen).differences]
        result.mistakes.extend(found)
        about = f", after a kill ({killed})" if killed else ""
        state = "equal" if not found else f"{len(found)} differences"
        print(f"{number + 1} of {len(known)}: {state}{about}, {victim.usual:.1f} s", flush=True)
    return result


def _streams(options: argparse.Namespace) -> Iterator[RecordedStream]:
    for file in options.files:
        yield recorded_stream(file.parent, file.name, {})


def _run_all(streams: Sequence[RecordedStream], options: argparse.Namespace) -> list[Result]:
    results = []
    for number, stream in enumerate(streams):
        kills = options.runs // len(streams) + (number < options.runs % len(streams))
        with tempfile.TemporaryDirectory(prefix="ticdc-kill-") as folder:
            lake = Path(folder) / "lake"
            lake.mkdir()
            with Broker(Path(folder) / "kafka") as broker:
                results.append(run(lake, broker, stream, kills=kills, seed=options.seed + number))
            local_session(lake).stop()
    return results


def main() -> int:
    """Run, print, and give 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="Kill -9 of gold at random moments, gold compared at every watermark")
    parser.add_argument("files", nargs="+", type=Path, help="message files of recorded streams")
    parser.add_argument("--runs", type=int, default=50, help="kills, over all streams (default: 50)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the random moments")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    started = time.monotonic()
    results = _run_all(list(_streams(options)), options)
    mistakes = [mistake for result in results for mistake in result.mistakes]
    for mistake in mistakes:
        print(mistake)
    kills = sum((result.kills for result in results), Counter[str]())
    summary = ", ".join(f"{count} {what}" for what, count in sorted(kills.items()))
    watermarks = sum(result.watermarks for result in results)
    print(f"killed: {summary}; {watermarks} watermarks compared, {time.monotonic() - started:.0f} s")
    print("gold equals TiDB at every watermark" if not mistakes else "NOT RIGHT")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
