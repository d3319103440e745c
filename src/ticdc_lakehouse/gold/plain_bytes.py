"""Binary columns whose values came as plain texts: Open Protocol of the new TiCDC, rows without their columns' flags
(wire.md 8.4).

Without the flag BINARY the writer sends the value as a text. That is its bytes exactly, unless they are no UTF-8: then
it has U+FFFD, and what stood there is lost.
"""

from __future__ import annotations

from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.table_plan import MergeRows
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import IMAGE_OPTIONS

_LAYOUT = "from_json(columns, 'ARRAY<STRUCT<name STRING, type STRING>>')"
_LOST = "\N{REPLACEMENT CHARACTER}"


def with_bytes_sql(rows: MergeRows) -> str:
    """SQL: an event's ``after`` with the bytes of plain texts in hex, as other rows have them. A text that has lost
    bytes stays, and is no hex."""
    plain = rows.plain_bytes
    if not plain:
        return "after"
    declared = {name: _declared_sql(name, types) for name, types in plain.items()}
    values = " ".join(
        f"WHEN k = {literal(name)} AND {is_plain} AND instr(v, '{_LOST}') = 0 THEN lower(hex(v))"
        for name, is_plain in declared.items()
    )
    in_hex = f"to_json(transform_values({_texts_sql('after')}, (k, v) -> CASE {values} ELSE v END))"
    return f"CASE WHEN after IS NOT NULL AND ({' OR '.join(declared.values())}) THEN {in_hex} ELSE after END"


def value_sql(rows: MergeRows, name: str, value: str) -> str:
    """SQL of a value in an image of an event: a binary column's in hex, also where it came as a plain text; NULL for a
    text that has lost bytes."""
    if name not in rows.plain_bytes:
        return value
    in_hex = f"CASE WHEN instr({value}, '{_LOST}') = 0 THEN lower(hex({value})) END"
    return f"CASE WHEN {_declared_sql(name, rows.plain_bytes[name])} THEN {in_hex} ELSE {value} END"


def _declared_sql(name: str, types: frozenset[str]) -> str:
    listed = ", ".join(map(literal, sorted(types)))
    return f"exists({_LAYOUT}, c -> c.name = {literal(name)} AND c.type IN ({listed}))"


def _texts_sql(image: str) -> str:
    return f"from_json({image}, 'MAP<STRING, STRING>', map({IMAGE_OPTIONS}))"


def first_lost_sql(rows: MergeRows, changes: str) -> str:
    """SQL: commit_ts of the first of the changes that has lost bytes, NULL if none has."""
    lost = " OR ".join(f"instr(texts[{literal(name)}], '{_LOST}') > 0" for name in rows.plain_bytes)
    return f"""
        SELECT min(commit_ts) FROM (SELECT commit_ts, {_texts_sql("image")} AS texts FROM ({changes})
        WHERE image IS NOT NULL) WHERE {lost}"""


def lost_point(rows: MergeRows, commit_ts: int) -> BlockingPoint:
    """Where a table is blocked before a row that has lost bytes."""
    detail = (
        f"column {', '.join(sorted(rows.plain_bytes))}: a row at {commit_ts} came without its columns' flags, and its "
        "bytes that are no UTF-8 are lost: `ticdc-lake load` an export taken since"
    )
    return BlockingPoint(tso=commit_ts - 1, stop=StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=detail))
