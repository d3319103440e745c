"""The error that Spark's report of a failed stream or job has far below its first line."""

from __future__ import annotations

import re

_RAISED = re.compile(r"^(?:Caused by: |: )?(?:\w+[.$])*([A-Z]\w*(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
"""The line of a traceback, Python's or Java's, that names an error."""


def reported_cause(error: BaseException) -> str | None:
    """Name and text of the last error that a report names: of several the one which caused the others. None if an error
    reports no traceback."""
    report = str(error)
    causes = _RAISED.findall(report) if "Traceback (most recent call last)" in report else []
    return str(causes[-1]) if causes else None
