"""The oldest batch and TSO of bronze and silver that something still needs: what is older may be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ticdc_codec.tso import first_of, milliseconds, time_of, with_time
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.schema.names import TableName

_DAY_MILLISECONDS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededBatch:
    """Something that needs the bronze batches from ``batch`` on."""

    batch: int
    what: str
    """What needs it, as a phrase for `status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededCommit:
    """Something that needs the changes with commit_ts above ``tso``."""

    tso: int
    what: str
    """What needs it, as a phrase for `status`."""


def oldest_batch(needs: Iterable[NeededBatch]) -> NeededBatch:
    """Returns the need of the oldest batch, the first one if several need it."""
    return min(needs, key=lambda need: need.batch)


def oldest_commit(before: Published, days: int) -> NeededCommit:
    """Returns the need of the oldest changes.

    Changes of the last ``days`` days before the watermark are kept, so that duplicates are recognised and exports of
    that age can be loaded. So are the changes that a blocked table has not applied. A dropped table that gold keeps
    needs none.
    """
    blocked = {name: state.applied_tso for name, state in before.tables.items() if _has_changes_to_take(before, name)}
    needs = [NeededCommit(tso=_days_before(before.tso, days), what=within_days(days))]
    needs += [NeededCommit(tso=tso, what=f"table {name}, blocked at {with_time(tso)}") for name, tso in blocked.items()]
    return min(needs, key=lambda need: need.tso)


def horizon(before: Published, days: int) -> datetime:
    """Returns the time since which landed batches are kept."""
    return time_of(before.tso) - timedelta(days=days)


def within_days(days: int) -> str:
    """Describes what ``retention_days`` itself needs, for people."""
    return f"retention_days: {days} days before the watermark"


def _has_changes_to_take(before: Published, name: TableName) -> bool:
    """True if a table is behind the watermark and has changes to take from there."""
    state = before.tables[name]
    return state.applied_tso < before.tso and not state.dropped


def _days_before(tso: int, days: int) -> int:
    return first_of(max(0, milliseconds(tso) - days * _DAY_MILLISECONDS))
