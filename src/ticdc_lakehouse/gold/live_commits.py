"""Commits of live tables: which run wrote a version, and at which TSO it is the table as TiDB held it.

A commit of gold has a JSON object in its metadata: ``feed``, ``tso`` and ``run``. Upkeep (OPTIMIZE, VACUUM, properties)
changes no row and may follow any version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, get_ident
from typing import Any

import orjson
from pyspark.sql import Row

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import USER_METADATA, committing, release

UPKEEP = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "COMPUTE STATS",
    "CLUSTER BY",
    "REORG",
    "REORG TABLE UPGRADE UNIFORM",
    "ROW TRACKING BACKFILL",
)
"""Operations that change no row."""


@dataclass(slots=True, kw_only=True)
class Commits:
    """Where a run of gold commits: a session for each of its threads (`commit_sessions.threads`), whose commits carry
    their TSO in the metadata."""

    lake: Lake
    feed: str
    run: str
    """UUID of the run."""
    _lakes: dict[int, Lake] = field(default_factory=dict)
    """The lakes, by thread."""
    _settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the lake's session when the first thread asked."""
    _lock: Lock = field(default_factory=Lock)

    def at(self, tso: int) -> Lake:
        """Returns the lake whose commits leave a table as TiDB held it at ``tso``, until this thread asks for another
        one."""
        metadata = orjson.dumps({"feed": self.feed, "tso": tso, "run": self.run}).decode()
        with self._lock:
            own = self._lakes.get(get_ident())
            if own is None:
                self._settings = self._settings or self.lake.spark.conf.getAll
                own = self._lakes[get_ident()] = committing(self.lake, metadata, self._settings)
        own.spark.conf.set(USER_METADATA, metadata)
        return own

    def close(self) -> None:
        """Releases the sessions; nothing commits in them any more."""
        for lake in self._lakes.values():
            release(self.lake, lake)
        self._lakes.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A version of a live table that changed its rows or columns."""

    version: int
    operation: str
    timestamp: datetime
    feed: str | None
    """This and the next two are None where something else than gold wrote the version."""
    tso: int | None
    run: str | None
    restored_to: int | None = None
    """The earlier version to which it put the table back."""

    @property
    def merged(self) -> bool:
        """True if it merged rows, rather than followed a DDL."""
        return self.operation == "MERGE"

    def puts_back(self, feed: str, version: int) -> bool:
        """True if a run of the feed put the table back to this version."""
        return (self.feed, self.restored_to) == (feed, version)


def commits_since(lake: Lake, name: str, version: int) -> tuple[int, list[Commit]]:
    """Returns the newest version of a live table, and its commits after ``version`` except upkeep, the oldest first."""
    rows = lake.commits(lake.table(Layer.LIVE, name), version)
    newest = int(rows[0]["version"]) if rows else version
    return newest, [_commit(row) for row in reversed(rows) if row["operation"] not in UPKEEP]


def _commit(row: Row) -> Commit:
    restored_to = (row["operationParameters"] or {}).get("version") if row["operation"] == "RESTORE" else None
    return Commit(
        version=row["version"],
        operation=row["operation"],
        timestamp=row["timestamp"],
        restored_to=None if restored_to is None else int(restored_to),
        **_metadata(row["userMetadata"]),
    )


def _metadata(text: str | None) -> dict[str, Any]:
    """Returns feed, TSO and run of a commit, None where something else than gold wrote it."""
    try:
        given = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        given = {}
    return {name: given.get(name) if isinstance(given, dict) else None for name in ("feed", "tso", "run")}


def own_version(lake: Lake, name: str, before: int, run: str) -> int:
    """Returns the newest version of a live table, which was at version ``before`` when this run began to write to it.

    Raises ConfigError if another run wrote to it, too: on Databricks no lock keeps one out (`run_lock`).
    """
    newest, commits = commits_since(lake, name, before)
    for commit in commits:
        if commit.run != run:
            raise ConfigError(
                f"{name}: another run wrote version {commit.version} ({commit.operation}, {commit.timestamp}) "
                "while this one was at work; this one publishes nothing. Run gold of a feed once at a time"
            )
    return newest


def restore(lake: Lake, name: str, version: int) -> None:
    """Puts a live table back to a version, in one commit."""
    lake.spark.sql(f"RESTORE TABLE {lake.table(Layer.LIVE, name)} TO VERSION AS OF {version}")


def version_of(lake: Lake, name: str) -> int:
    """Returns the newest Delta version of a live table."""
    return lake.version(lake.table(Layer.LIVE, name))
