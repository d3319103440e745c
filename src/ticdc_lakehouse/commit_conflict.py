"""Conflicts that Delta finds at a commit: another writer was faster.

The classic client raises Delta's own exceptions. A client of Spark Connect raises Spark's general one, with Delta's
error condition, unless ``delta.connect`` was imported before, which not every client has.
"""

from __future__ import annotations

from enum import StrEnum

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
)
from pyspark.errors import PySparkException


class Conflict(StrEnum):
    """Delta's error conditions."""

    APPEND = "DELTA_CONCURRENT_APPEND"
    DELETE_DELETE = "DELTA_CONCURRENT_DELETE_DELETE"
    DELETE_READ = "DELTA_CONCURRENT_DELETE_READ"
    TRANSACTION = "DELTA_CONCURRENT_TRANSACTION"
    """Both writers commit one transaction (``txnAppId``, ``txnVersion``)."""
    WRITE = "DELTA_CONCURRENT_WRITE"


_OF_CLASS = {
    ConcurrentAppendException: Conflict.APPEND,
    ConcurrentDeleteDeleteException: Conflict.DELETE_DELETE,
    ConcurrentDeleteReadException: Conflict.DELETE_READ,
    ConcurrentTransactionException: Conflict.TRANSACTION,
    ConcurrentWriteException: Conflict.WRITE,
}


def conflict_of(error: PySparkException) -> Conflict | None:
    """Returns the conflict that an error of Spark reports; None if it reports something else."""
    for kind, conflict in _OF_CLASS.items():
        if isinstance(error, kind):
            return conflict
    condition = (error.getCondition() or "").partition(".")[0]  # behind the point Delta says more
    return next((each for each in Conflict if each == condition), None)
