"""The loop: bronze, silver and gold of feeds, round by round in one session, so that no round waits for Spark to start.

Feeds take turns: a slow round of one, or its maintenance, delays the others. A feed that fails is retried after growing
pauses, in which the others continue. Between two layers' runs the process may be ended (`run_lock.RUNS`): all state is
in the lake. Maintenance is the loop's own, too: that of another run would publish on top of a state that the loop has
left behind by then, and be refused each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError, listed
from ticdc_codec.tso import time_of, with_time
from ticdc_lakehouse import job_parameters
from ticdc_lakehouse.counted import counted, duration
from ticdc_lakehouse.entry import RUN_FAILURES, Run
from ticdc_lakehouse.error_text import cause
from ticdc_lakehouse.gold.maintenance import Maintained, last_maintained
from ticdc_lakehouse.gold.views import refresh_session
from ticdc_lakehouse.log import configure_unless_done
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.schema.names import texts_of
from ticdc_lakehouse.tidb.session import Secret

_LEAST_BETWEEN_TRIES = 1.0
"""Seconds from which the pauses of a feed that fails grow, where rounds follow each other at once."""
LONGEST_PAUSE = 300.0
"""Seconds that a feed which fails again and again is left alone, at most."""
_MAINTENANCE_PAUSE = timedelta(hours=1)
"""The pause after maintenance that failed, unless the next one is due before."""
_JAVA_ENDED = (Py4JNetworkError, ConnectionRefusedError)
"""Failures of py4j's own connection: Kafka's come as errors of Spark, TiDB's as `ConfigError`, and a mounted folder may
abort a connection, but refuses none."""
_SESSION_ENDED = "INVALID_HANDLE.SESSION_"
"""How the conditions of errors begin with which a Spark Connect server answers whose session is closed, or gone."""
_HOUR = 3600.0
_SHOWN = 3
"""Blocked tables that a round's line names."""
_MOST_DOUBLINGS = 64
"""Largest exponent of a pause: a feed that fails for days fails more than 1,023 times, and 2 to the power of 1,024 is
no float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did for one feed."""

    feed: str
    number: int
    messages: int
    row_changes: int
    tables: int
    """Tables that were merged into, summed over the windows of the round, as in `Applied.merged`."""
    blocked: tuple[str, ...]
    """Tables that are blocked, as ``database.table``."""
    tso: int
    """The published watermark; 0 before the first."""
    waiting_on: str | None
    behind_seconds: float | None
    """Age of the data, from the watermark to now; None before the first watermark."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRound:
    """A round that one feed did not get through."""

    feed: str
    number: int
    error: Exception
    next_try_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedMaintenance:
    """Maintenance that a feed did not get through."""

    feed: str
    error: Exception
    next_try: datetime


LoopEvent = Round | FailedRound | Maintained | FailedMaintenance
"""An event that the loop yields: a round, or maintenance after it."""


@dataclass(slots=True, kw_only=True)
class _Feed:
    """One feed of the loop."""

    run: Run
    maintain_every: timedelta | None = None
    """None: never."""
    maintenance_due: datetime | None = None
    """None until the feed has published."""
    number: int = 0
    undecoded: bool = True
    """True if bronze may have messages that silver has not decoded."""
    known: Published | None = None
    """What gold published last, unless it failed since: it is not read again while it is the newest."""
    may_be_outdated: bool = False
    """True after a failure without ``known``: another process may have changed tables, unknown to this session."""
    failures: int = 0
    """Failures in a row."""
    not_before: float = field(default_factory=time.monotonic)

    def round(self) -> Round:
        """Runs the layers once."""
        started = time.monotonic()
        landed = self.run.bronze()
        if self.undecoded or landed.messages:
            self.undecoded = True
            self.run.silver()
            self.undecoded = False
        if self.may_be_outdated:
            refresh_session(self.run.lake, self.run.feed.name)
            self.may_be_outdated = False
        known, self.known = self.known, None
        applied = self.run.gold(known)
        self.known = applied.state
        # Another process landed them, and ended before its silver did.
        self.undecoded = applied.is_undecoded
        age = (datetime.now(UTC) - time_of(applied.tso)).total_seconds() if applied.tso else None
        return Round(
            feed=self.run.feed.name,
            number=self.number,
            messages=landed.messages,
            row_changes=applied.row_changes,
            tables=applied.merged,
            blocked=tuple(text for name, text in texts_of(applied.state.tables).items() if name in applied.blocked),
            tso=applied.tso,
            waiting_on=applied.waiting_on,
            behind_seconds=None if age is None else max(0.0, age),
            seconds=time.monotonic() - started,
        )

    def attempt(self, every_seconds: float) -> Round | FailedRound:
        """Runs the layers once; after a failure the next try comes later than after the one before.

        Raises ConfigError if Java or the session has ended.
        """
        self.number += 1
        try:
            done = self.round()
        except RUN_FAILURES as error:
            _check_session(error)
            self.failures += 1
            # What gold published before a failure of bronze or silver still shows it what others publish.
            self.undecoded, self.may_be_outdated = True, self.known is None
            first = max(_LEAST_BETWEEN_TRIES, every_seconds)
            pause = min(LONGEST_PAUSE, first * 2.0 ** min(self.failures, _MOST_DOUBLINGS))
            self.not_before = time.monotonic() + pause
            return FailedRound(feed=self.run.feed.name, number=self.number, error=error, next_try_seconds=pause)
        self.failures = 0
        return done

    def maintain_if_due(self) -> Maintained | FailedMaintenance | None:
        """Maintains the feed if that is due; None if it is not. Raises ConfigError if Java or the session has ended."""
        if self.maintain_every is None:
            return None
        try:
            if not self._is_due(self.maintain_every):
                return None
            self.known = None
            done = self.run.maintain()
        except RUN_FAILURES as error:
            _check_session(error)
            self.may_be_outdated = True
            self.maintenance_due = datetime.now(UTC) + min(self.maintain_every, _MAINTENANCE_PAUSE)
            return FailedMaintenance(feed=self.run.feed.name, error=error, next_try=self.maintenance_due)
        self.maintenance_due = datetime.now(UTC) + self.maintain_every
        return done

    def _is_due(self, every: timedelta) -> bool:
        if self.maintenance_due is None and (last := last_maintained(self.run.lake, self.run.feed.name)) is not None:
            self.maintenance_due = last + every
        return self.maintenance_due is not None and self.maintenance_due <= datetime.now(UTC)


def _check_session(error: Exception) -> None:
    """Raises ConfigError if a failure means that Java or the session has ended: this process can start no other, so
    that a further round of any feed fails, too."""
    if isinstance(error, _JAVA_ENDED):
        raise ConfigError("Java has ended, and with it every feed of this loop: run it again") from error
    if isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_SESSION_ENDED):
        raise ConfigError("Spark's session has ended, and with it every feed of this loop: run it again") from error


def rounds(
    runs: Sequence[Run],
    every_seconds: float,
    count: int | None = None,
    *,
    maintain_every: timedelta | None = None,
) -> Iterator[LoopEvent]:
    """Processes the feeds round by round, each ``every_seconds`` after the one before began, or at once where that has
    passed; when all feeds are paused, the next round waits for one. None as ``count``: forever. After a round, also a
    failed one, a feed whose last maintenance, or first window, is as long ago as ``maintain_every`` is maintained;
    None: never.

    Raises ConfigError if Java or the session has ended.
    """
    feeds = [_Feed(run=run, maintain_every=maintain_every) for run in runs]
    number = 0
    while count is None or number < count:
        started, number = time.monotonic(), number + 1
        for feed in feeds:
            if feed.not_before > time.monotonic():
                continue
            yield feed.attempt(every_seconds)
            # Also after a failure: analysts read the tables still, and maintenance keeps them readable.
            if (maintained := feed.maintain_if_due()) is not None:
                yield maintained
        if number != count:
            next_try = min((feed.not_before for feed in feeds), default=0.0)
            time.sleep(max(0.0, max(started + every_seconds, next_try) - time.monotonic()))


def loop_from_widgets(spark: SparkSession, dbutils: Any) -> None:
    """Runs the loop of a notebook's widgets: ``feeds`` (a JSON list), ``every_seconds``, ``rounds`` (empty: forever),
    ``maintain_every_hours`` (empty: never). Prints a line for each round of each feed, and for a feed that cannot begin
    since its file is wrong: the others continue.

    Raises ConfigError for a widget that is wrong, without a feed that can begin, in the end where one could not or its
    last round failed, and if Java or the session has ended.
    """
    configure_unless_done("WARNING")  # Databricks cuts a cell's output at 10 MB; a line for each round is in it
    widgets = dbutils.widgets.getAll()
    feeds = job_parameters.names(widgets, "feeds")
    if not feeds:
        raise ConfigError("parameter feeds: expected the name of a feed or more, found none")
    every, count = job_parameters.seconds(widgets, "every_seconds"), job_parameters.number(widgets, "rounds")
    hours = job_parameters.number(widgets, "maintain_every_hours", least=1)
    runs, not_begun = _runs(spark, widgets, feeds, dbutils.secrets.get)
    if not runs:
        raise ConfigError("\n".join(not_begun))
    for line in not_begun:
        print(line, flush=True)
    last: dict[str, Round | FailedRound] = {}
    for done in rounds(runs, every, count, maintain_every=None if hours is None else timedelta(hours=hours)):
        print(event_text(done), flush=True)
        if isinstance(done, Round | FailedRound):
            last[done.feed] = done
    failed = [event_text(done) for done in last.values() if isinstance(done, FailedRound)]
    if not_begun or failed:
        raise ConfigError("\n".join([*not_begun, *failed]))


def _runs(
    spark: SparkSession, widgets: Mapping[str, str], feeds: Sequence[str], secret: Secret
) -> tuple[list[Run], list[str]]:
    """Returns the runs of the feeds, and a line for each feed that cannot begin."""
    runs, not_begun = [], []
    for feed in feeds:
        try:
            runs.append(Run.from_parameters(spark, {**widgets, "feed": feed}, secret))
        except ConfigError as error:
            not_begun.append(f"{feed}: FAILED, not begun: {error}")
    return runs, not_begun


def event_text(done: LoopEvent) -> str:
    """Returns a round or the maintenance of a feed on one line."""
    match done:
        case FailedRound():
            next_try = f"next try in {done.next_try_seconds:.0f} s"
            return f"{done.feed} round {done.number}: FAILED, {next_try}: {cause(done.error)}"
        case FailedMaintenance():
            next_try = f"next try at {done.next_try:%Y-%m-%d %H:%M} UTC"
            return f"{done.feed} maintenance: FAILED, {next_try}: {cause(done.error)}"
        case Maintained():
            return str(done)
        case Round():
            parts = [
                counted(done.messages, "message"),
                counted(done.row_changes, "change"),
                counted(done.tables, "table"),
            ]
            if done.behind_seconds is None:
                parts.append("no watermark yet")
            else:
                parts.append(f"watermark {with_time(done.tso)}, {_age(done.behind_seconds)} behind")
            parts.append(f"took {done.seconds:.1f} s")
            if done.blocked:
                parts.append(f"blocked: {listed(done.blocked, _SHOWN)}")
            if done.waiting_on:
                parts.append(f"waiting on: {done.waiting_on}")
            return f"{done.feed} round {done.number}: {', '.join(parts)}"


def _age(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _HOUR else duration(seconds)
