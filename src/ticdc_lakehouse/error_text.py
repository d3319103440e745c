"""What an error says on one line, for messages and logs."""

from __future__ import annotations

import re

_RAISED = re.compile(r"^(?:Caused by: |: )?(?:\w+[.$])*([A-Z]\w*(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
"""The line of a traceback, Python's or Java's, that names an error."""
_CALL = "An error occurred while calling"
"""How py4j begins the text of what Java raised: with the name of the call, which says nothing."""


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text that says something; the name of its class if there is none."""
    lines = (line.strip().removeprefix(": ") for line in str(error).splitlines())
    return next((line for line in lines if line and not line.startswith(_CALL)), type(error).__name__)


def java_root_cause(error: BaseException) -> str | None:
    """Returns name and text of the innermost cause that PySpark took over from Java with an error; None without one,
    and if the error's first line has its text already."""
    root = error
    while (cause := getattr(root, "_cause", None)) is not None:
        root = cause
    text = first_line(root)
    if text in first_line(error):
        return None
    named = _RAISED.search(getattr(root, "_stackTrace", None) or "")
    return named[1] if named is not None else text


def cause(error: BaseException) -> str:
    """Returns what caused an error, on one line: as a report of Spark names it, else the error's own text."""
    return reported_cause(error) or first_line(error)


def reported_cause(error: BaseException) -> str | None:
    """Returns name and text of what caused the error in a Python worker that Spark reports, often far below the first
    line of its report; None if an error reports no traceback."""
    return last_named(error) if "Traceback (most recent call last)" in str(error) else None


def last_named(error: BaseException) -> str | None:
    """Returns name and text of the last error that an error's text names, Python's or Java's: of several the one which
    caused the others. None if it names none."""
    named = _RAISED.findall(str(error))
    return str(named[-1]) if named else None
