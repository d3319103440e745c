"""What the prompt of ``ticdc-lake sql`` must know of a statement: whether it is complete, and whether it reads."""

from __future__ import annotations

import re

from ticdc_codec.errors import ConfigError

# Quoted texts, quoted names and comments that end; and the beginning of one that does not.
_CLOSED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_OPENED = re.compile(r"""['"`]|/\*""")
_READS = re.compile(
    r"""[\s(]*(?:
        SELECT | WITH | FROM | VALUES | TABLE | SHOW | DESC | DESCRIBE | EXPLAIN | LIST
        | USE | SET | RESET | DECLARE | CACHE | UNCACHE | CLEAR | REFRESH
        | CREATE \s+ (?:OR \s+ REPLACE \s+)? (?:GLOBAL \s+)? TEMP(?:ORARY)? | DROP \s+ (?:TEMPORARY | VIEW)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""The beginning of a statement that changes no table: at most the session, which ends with the prompt."""
_BEGINS_AS_QUERY = re.compile(r"[\s(]*(?:WITH|FROM)\b", re.IGNORECASE)
_WRITES = re.compile(
    r"\b(?:INSERT\s+(?:WITH|INTO|OVERWRITE)|MERGE\s+(?:WITH|INTO)|DELETE\s+FROM|UPDATE\b[^()]*\bSET)\b", re.IGNORECASE
)
"""What may follow a WITH or FROM in the place of a SELECT."""


def complete(text: str) -> bool:
    """Whether the text ends with a ``;`` that stands outside quotes and comments."""
    rest = _CLOSED.sub(" ", text).rstrip()
    return rest.endswith(";") and not _OPENED.search(rest)


def check_reads(statement: str) -> None:
    """Raises ConfigError for a statement that could change a table: a live table is TiDB's table only as long as none
    but gold writes to it."""
    text = _CLOSED.sub(" ", statement)
    if not _READS.match(text) or (_BEGINS_AS_QUERY.match(text) and _WRITES.search(text)):
        raise ConfigError(
            "this prompt only reads; expected a query, SHOW, DESCRIBE, EXPLAIN, SET, USE or CREATE TEMPORARY VIEW, "
            f"found {' '.join(statement.split())[:60]}. Tables of your own: from a notebook, in a schema of their own"
        )
