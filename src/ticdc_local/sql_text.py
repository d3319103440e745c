"""SQL texts, split at ``;``: a notebook's cells, and what ``ticdc-lake sql`` is given."""

from __future__ import annotations

import re
from collections.abc import Iterator

CLOSED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
"""Quoted texts, quoted names and comments that end."""
_TOKEN = re.compile(rf"""{CLOSED}|[^'"`;/-]+|.""", re.DOTALL)


def sql_statements(text: str) -> Iterator[str]:
    """Yields a text's statements, split at ``;`` outside quotes and comments; ``BEGIN … END`` stays whole."""
    if re.match(r"\s*BEGIN\b", _without_comments(text), re.IGNORECASE):
        yield text.strip().rstrip(";")
        return
    statement = ""
    for token in [*_TOKEN.findall(text), ";"]:
        if token != ";":
            statement += token
        elif _without_comments(statement).strip():
            yield statement.strip()
            statement = ""


def outside_quotes(text: str) -> str:
    """Returns what is outside quotes and comments. Of a quoted text or name the first quote stays, of a comment
    nothing."""
    return "".join(token[0] if token[0] in "'\"`" else token for token in _TOKEN.findall(_without_comments(text)))


def _without_comments(text: str) -> str:
    return "".join(token for token in _TOKEN.findall(text) if not token.startswith(("--", "/*")))
