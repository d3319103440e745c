"""Sessions that commit: what a commit carries in its table's history is a setting of the session that makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.session_settings import is_connect, set_if_allowed, set_needed, setting_of

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""Session setting: what commits of the session carry as ``userMetadata``."""
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Session setting: Delta sets it to the version of the session's newest commit, of any table."""

_FREE: WeakKeyDictionary[SparkSession, list[SparkSession]] = WeakKeyDictionary()
"""A session to the idle sessions that were made from it."""
_COPIED: WeakKeyDictionary[SparkSession, Mapping[str, str]] = WeakKeyDictionary()
"""Such a session to its latest settings: reading all settings of a session takes 200 calls of Java."""
_LOCK = Lock()


def threads(lake: Lake, wanted: int) -> int:
    """Returns how many threads may commit at the same time, ``wanted`` at most. Through Spark Connect it is one: the
    lake's session is the only one there, as Databricks' client cannot clone it (`cloneSession` of databricks-connect 18
    and 19)."""
    return 1 if is_connect(lake.spark) else wanted


def committing(lake: Lake, metadata: str, settings: Mapping[str, str]) -> Lake:
    """Returns a lake in a session of its own with these ``settings``, whose commits carry ``metadata`` as
    ``userMetadata`` in the tables' histories: threads that commit different metadata share no setting. ``release``
    takes it back. Through Spark Connect it is the lake's own session (`threads`). Raises ConfigError where the session
    may not set it."""
    session = lake.spark if is_connect(lake.spark) else _another_session(lake.spark, settings)
    set_needed(session, USER_METADATA, metadata, "by which a commit carries its TSO")
    return replace(lake, spark=session)


def release(lake: Lake, own: Lake) -> None:
    """Takes back the session of ``own``, which ``committing`` made from ``lake``, once nothing uses it. Delta remembers
    tables with the sessions that read them, so a session for each window would fill the heap."""
    if own.spark is lake.spark:
        lake.spark.conf.unset(USER_METADATA)
        return
    with _LOCK:
        _FREE.setdefault(lake.spark, []).append(own.spark)


def committed(spark: SparkSession, commit: Callable[[], object]) -> int | None:
    """Runs what commits to one table in a session; returns the version of the commit, None if it made none or Delta
    does not say. Nothing else may commit in the session meanwhile."""
    set_if_allowed(spark, _LAST_COMMIT, None)
    stays = setting_of(spark, _LAST_COMMIT) is not None  # of a commit before: the session may not unset it
    commit()
    if stays:
        return None
    version = setting_of(spark, _LAST_COMMIT)
    return None if version is None else int(version)


def _another_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Returns a session with these settings, which nothing uses."""
    with _LOCK:
        free = _FREE.setdefault(spark, [])
        session = free.pop() if free else spark.newSession()
        copied = _COPIED.get(session)
        _COPIED[session] = settings
    if copied is None:
        copied = session.conf.getAll
    for name, value in settings.items():
        if copied.get(name) != value and session.conf.isModifiable(name):
            set_if_allowed(session, name, value)
    return session
