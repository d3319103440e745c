"""Patterns of topics, which Kafka's client reads as Java does. What both languages have means the same in Python, but
for classes within classes."""

from __future__ import annotations

import re

_NESTED_CLASS = re.compile(r"\[[^\]]*(?:\[|&&)")
"""In Java a class within a class: a union or an intersection. In Python the bracket means itself."""
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]")
_ONLY_PYTHON = re.compile(r"\(\?[P(#]|\(\?[a-zA-Z]*[aL][a-zA-Z-]*[:)]|\{(?!\d+(?:,\d*)?\})")
"""Groups with a name or a condition, comments, the flags ``a`` and ``L``; a brace that means itself, which Java takes
for a faulty repetition."""


def only_python_reads(pattern: str) -> bool:
    """True if Java refuses the pattern, although Python reads it."""
    return _ONLY_PYTHON.search(_ESCAPED_OR_CLASS.sub("x", pattern)) is not None


def only_java_reads(pattern: str) -> bool:
    """True if Java may read the pattern otherwise than Python."""
    return _NESTED_CLASS.search(pattern) is not None


def may_match(pattern: str, topic: str) -> bool:
    """True if Kafka's client may match the pattern with a topic's whole name; always so if only Java reads it."""
    return only_java_reads(pattern) or re.fullmatch(pattern, topic) is not None
