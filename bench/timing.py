"""Timing side by side: repetitions are interleaved, so that a busy machine is busy for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Clock = Callable[[], float]

wall: Clock = time.perf_counter
cpu: Clock = time.process_time


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contestant's repetitions."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The shortest."""
        return min(self.seconds)

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.seconds)


def interleaved(
    contestants: Mapping[str, Callable[[], object]], repetitions: int, clocks: Mapping[str, Clock]
) -> dict[str, dict[str, Times]]:
    """Times by clock and contestant: all run in turn, ``repetitions`` times, each round beginning with another one."""
    seconds: dict[str, dict[str, list[float]]] = {clock: {name: [] for name in contestants} for clock in clocks}
    names = list(contestants)
    for number in range(repetitions):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            starts = {clock: now() for clock, now in clocks.items()}
            contestants[name]()
            for clock, now in clocks.items():
                seconds[clock][name].append(now() - starts[clock])
    return {clock: {name: Times(tuple(found)) for name, found in by_name.items()} for clock, by_name in seconds.items()}
