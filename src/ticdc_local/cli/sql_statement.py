"""What the prompt of ``ticdc-lake sql`` must know of a statement: whether it is complete, and whether it reads."""

from __future__ import annotations

import re
from difflib import get_close_matches

from ticdc_codec.errors import ConfigError
from ticdc_local.sql_text import CLOSED

_CLOSED = re.compile(CLOSED, re.DOTALL)
_OPENED = re.compile(r"""['"`]|/\*""")
"""The beginning of a quoted text, a quoted name or a comment that does not end."""
_READS = re.compile(
    r"""[\s(]*(?:
        SELECT | WITH | FROM | VALUES | TABLE | SHOW | DESC | DESCRIBE | EXPLAIN | LIST
        | USE | SET | RESET | DECLARE | CACHE | UNCACHE | CLEAR | REFRESH
        | CREATE \s+ (?:OR \s+ REPLACE \s+)? (?:GLOBAL \s+)? TEMP(?:ORARY)? | DROP \s+ (?:TEMPORARY | VIEW)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""The beginning of a statement that changes no table: at most the session, which ends with the prompt."""
_FIRST_WORD = re.compile(r"[\s(]*(\w+|\S+)")
_FIRST_WORDS = frozenset(
    re.findall(
        r"\w+",
        """ADD ALTER ANALYZE APPLY BEGIN CACHE CALL CLEAR COMMENT COMMIT CONVERT COPY CREATE DECLARE DELETE DENY DESC
        DESCRIBE DFS DROP EXECUTE EXPLAIN EXPORT FROM FSCK GENERATE GET GRANT IMPORT INSERT LIST LOAD LOCK MAP MERGE
        MSCK OPTIMIZE PUT REDUCE REFRESH REMOVE REORG REPAIR REPLACE RESET RESTORE REVOKE ROLLBACK SELECT SET SHOW START
        SYNC TABLE TRUNCATE UNCACHE UNDROP UNLOCK UPDATE USE VACUUM VALUES WITH""",
    )
)
"""First words of the statements of Spark, Delta Lake and Databricks, those that write among them."""
_EXPECTED = "expected a query, SHOW, DESCRIBE, EXPLAIN, SET, USE or CREATE TEMPORARY VIEW"
_BEGINS_AS_QUERY = re.compile(r"[\s(]*(?:WITH|FROM)\b", re.IGNORECASE)
_WRITES = re.compile(
    r"\b(?:INSERT\s+(?:WITH|INTO|OVERWRITE)|MERGE\s+(?:WITH|INTO)|DELETE\s+FROM|UPDATE\b[^()]*\bSET)\b", re.IGNORECASE
)
"""What may follow a WITH or FROM in the place of a SELECT."""


def complete(text: str) -> bool:
    """True if the text ends with a ``;`` that stands outside quotes and comments."""
    rest = _CLOSED.sub(" ", text).rstrip()
    return rest.endswith(";") and not _OPENED.search(rest)


def check_reads(statement: str) -> None:
    """Raises ConfigError for a statement that could change a table: a live table is TiDB's table only as long as none
    but gold writes to it. Raises it for a first word of no statement, too."""
    text = _CLOSED.sub(" ", statement)
    if (first := _FIRST_WORD.match(text)) and first[1].upper() not in _FIRST_WORDS:
        close = get_close_matches(first[1].upper(), sorted(_FIRST_WORDS), n=1)
        raise ConfigError(f"{first[1]}: no such statement; {f'did you mean {close[0]}?' if close else _EXPECTED}")
    if not _READS.match(text) or (_BEGINS_AS_QUERY.match(text) and _WRITES.search(text)):
        found = " ".join(statement.split())[:60]
        own = "Tables of your own: from a notebook, in a schema of their own"
        raise ConfigError(f"this prompt only reads; {_EXPECTED}, found {found}. {own}")
