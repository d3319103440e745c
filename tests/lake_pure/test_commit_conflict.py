"""Delta's conflicts as clients raise them: by class, or, through Spark Connect, by condition."""

from __future__ import annotations

import pytest
from delta.exceptions import ConcurrentAppendException, ConcurrentTransactionException
from pyspark.errors import PySparkException

from ticdc_lakehouse.commit_conflict import Conflict, conflict_of


class SparkError(PySparkException):
    """Spark's general error, with a condition, as a client of Spark Connect raises it."""

    def __init__(self, condition: str | None) -> None:
        super().__init__("x")
        self._errorClass = condition


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConcurrentTransactionException("x"), Conflict.TRANSACTION),
        (ConcurrentAppendException("x"), Conflict.APPEND),
        (SparkError("DELTA_CONCURRENT_TRANSACTION"), Conflict.TRANSACTION),
        (SparkError("DELTA_CONCURRENT_DELETE_READ"), Conflict.DELETE_READ),
        (SparkError("DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"), Conflict.APPEND),
        (SparkError("DELTA_CONCURRENT_APPENDS"), None),
        (SparkError(None), None),
        (SparkError("TABLE_OR_VIEW_NOT_FOUND"), None),
    ],
)
def test_a_conflict_is_known_by_class_or_condition(error: PySparkException, expected: Conflict | None) -> None:
    assert conflict_of(error) is expected
