"""How many messages a run of silver quarantined, where only the events table says it."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from ticdc_lakehouse.silver import decode_stream


def since(monkeypatch: pytest.MonkeyPatch, condition: str | None) -> int | None:
    """Of five errors that there are now, two were there at version 3, if it can be read."""

    def errors(_: object, events: str) -> int:
        if "VERSION AS OF 3" not in events:
            return 5
        if condition is not None:
            raise PySparkException("not read", condition, {})
        return 2

    monkeypatch.setattr(decode_stream, "_errors", errors)
    return decode_stream._quarantined_since(None, "t", 3)  # type: ignore[arg-type]


def test_errors_before_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert since(monkeypatch, None) == 3


def test_a_version_that_databricks_reads_no_more_leaves_the_number_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert since(monkeypatch, decode_stream._TOO_OLD) is None
    with pytest.raises(PySparkException):
        since(monkeypatch, "ANOTHER")
