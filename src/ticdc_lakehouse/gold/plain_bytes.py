"""Binary columns whose values arrived as texts: Open Protocol of the new TiCDC, rows without their columns' flags
(wire.md 8.4).

The flag BINARY is missing, so silver has the texts as they were sent. The writer goes by the column and not by the
flag: BINARY and VARBINARY are quoted as Go quotes bytes, BLOBs are base64, which silver has undone (wire.md 1.2.4).
"""

from __future__ import annotations

from ticdc_lakehouse.planning.compatibility import incompatible
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.sql.go_quoted import unquoted_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import IMAGE_OPTIONS

_LAYOUT = "from_json(columns, 'ARRAY<STRUCT<name STRING, type STRING>>')"
_QUOTED_TYPES = frozenset({"char", "varchar"})
"""Types that rows declare for texts in Go's quotes; all other texts arrived in base64."""


def with_bytes_sql(rows: MergeRows) -> str:
    """Returns SQL: an event's ``after`` with the bytes of texts in hex, as other rows have them. A text that is not
    quoted stays, and is no hex."""
    plain = rows.plain_bytes
    if not plain:
        return "after"
    values = " ".join(
        f"WHEN k = {literal(name)} AND {_declared_sql(name, types)} THEN coalesce({_hex_sql(name, types, 'v')}, v)"
        for name, types in plain.items()
    )
    in_hex = f"to_json(transform_values({_texts_sql('after')}, (k, v) -> CASE {values} ELSE v END))"
    concerned = " OR ".join(_declared_sql(name, types) for name, types in plain.items())
    return f"CASE WHEN after IS NOT NULL AND ({concerned}) THEN {in_hex} ELSE after END"


def value_sql(rows: MergeRows, name: str, value: str) -> str:
    """Returns SQL of a value in an image of an event: a binary column's in hex, also where it arrived as a text; NULL
    for a text that is not quoted."""
    if name not in rows.plain_bytes:
        return value
    types = rows.plain_bytes[name]
    return f"CASE WHEN {_declared_sql(name, types)} THEN {_hex_sql(name, types, value)} ELSE {value} END"


def _hex_sql(name: str, types: frozenset[str], value: str) -> str:
    """Returns SQL: the bytes of a text in hex; NULL for one that is not quoted and should be."""
    quoted = types & _QUOTED_TYPES
    unquoted = f"lower(hex({value}))"
    if not quoted:
        return unquoted
    return f"CASE WHEN {_declared_sql(name, quoted)} THEN {unquoted_sql(value)} ELSE {unquoted} END"


def _declared_sql(name: str, types: frozenset[str]) -> str:
    listed = ", ".join(map(literal, sorted(types)))
    return f"exists({_LAYOUT}, c -> c.name = {literal(name)} AND c.type IN ({listed}))"


def _texts_sql(image: str) -> str:
    return f"from_json({image}, 'MAP<STRING, STRING>', map({IMAGE_OPTIONS}))"


def first_unquoted_sql(rows: MergeRows, changes: str) -> str:
    """Returns SQL: commit_ts of the first of the changes (`merge.changes_sql`) with a text that should be quoted and is
    not, NULL if there is none. ``with_bytes_sql`` has left such a text as it is, and made hex of the others."""
    unquoted = " OR ".join(f"texts[{literal(name)}] RLIKE '[^0-9a-f]'" for name in rows.plain_bytes)
    return f"""
        SELECT min(commit_ts) FROM (SELECT commit_ts, {_texts_sql("image")} AS texts FROM ({changes})
        WHERE image IS NOT NULL) WHERE {unquoted}"""


def unquoted_point(rows: MergeRows, commit_ts: int) -> BlockingPoint:
    """Returns the point at which a table is blocked before a row whose bytes are not known."""
    detail = (
        f"column {', '.join(sorted(rows.plain_bytes))}: a row at {commit_ts} came without its columns' flags, and with "
        "a text that is not quoted as TiCDC quotes bytes"
    )
    return BlockingPoint(tso=commit_ts - 1, stop=incompatible(detail))
