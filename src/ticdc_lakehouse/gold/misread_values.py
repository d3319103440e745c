"""Values that flags made another kind of: Open Protocol of the new TiCDC, rows whose columns have no flags or those
that another column of the name had (wire.md 8.4).

A flag that is missing or stale makes bytes a text in silver, or a text bytes. The writer goes by the column and not by
the flag, and silver loses nothing: BINARY and VARBINARY are quoted as Go quotes bytes, and what silver has unquoted can
be quoted again; BLOBs and TEXTs are base64, which silver has undone (wire.md 1.2.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.gold.own_columns import KEY
from ticdc_lakehouse.planning.compatibility import misreadable
from ticdc_lakehouse.planning.steps import MergeRows
from ticdc_lakehouse.planning.stop_reason import incompatible
from ticdc_lakehouse.planning.window import BlockingPoint
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.sql.go_quoted import quoted_sql, unquoted_sql
from ticdc_lakehouse.sql.text import literal
from ticdc_lakehouse.sql.typed_columns import IMAGE_OPTIONS

_LAYOUT = "from_json(columns, 'ARRAY<STRUCT<name STRING, type STRING>>')"
_NOT_BASE64 = frozenset({"char", "varchar", "binary", "varbinary"})
_UNREADABLE = literal("\uffff")
"""SQL: what begins a value that cannot be what its column is. It is no character, and no hex."""


class _Reading(NamedTuple):
    """Columns whose misread values are read in one way."""

    family: Family
    """What the columns are: BINARY or TEXT."""
    base64: bool
    """True if the wire has base64, so that silver has the bytes' own text, or the text's own bytes."""
    names: frozenset[str]
    types: frozenset[str]
    """The types that rows declare in place of the columns' own."""

    def sql(self, value: str) -> str:
        """Returns SQL: a value as the column has it, bytes in hex; NULL if the column cannot have it."""
        if self.family is Family.BINARY:
            return f"lower(hex({value}))" if self.base64 else unquoted_sql(value)
        return f"try_validate_utf8(CAST(unhex({value}) AS STRING))" if self.base64 else quoted_sql(value)

    def declared_sql(self, name: str) -> str:
        """Returns SQL: true if rows declare one of the types for the column."""
        return f"exists({_LAYOUT}, c -> c.name = {literal(name)} AND c.type IN ({_listed(self.types)}))"


def _readings(table: Table, misread: Mapping[str, frozenset[str]]) -> Iterator[_Reading]:
    """Yields the readings that misread columns need; ``misread`` as in `MergeRows`."""
    for family in (Family.BINARY, Family.TEXT):
        of_family = {c.name: misread[c.name] for c in table.columns if c.name in misread and c.type.family is family}
        for base64 in (False, True):
            types = {name: types - _NOT_BASE64 if base64 else types & _NOT_BASE64 for name, types in of_family.items()}
            names = frozenset(name for name, some in types.items() if some)
            if names:
                yield _Reading(family, base64, names, frozenset().union(*types.values()))


def _listed(texts: frozenset[str]) -> str:
    return ", ".join(map(literal, sorted(texts)))


def as_defined_sql(rows: MergeRows) -> str:
    """Returns SQL: an event's ``after`` with misread values as the definition has them, bytes in hex. One that its
    column cannot have is marked for `first_unreadable_sql`."""
    return _image_sql("after", [*_readings(rows.table, rows.misread)], f"concat({_UNREADABLE}, v)")


def view_image_sql(table: Table, image: str) -> str:
    """Returns SQL: an event's image with misread values as the definition of a partitioned table has them; NULL for one
    that its column cannot have."""
    misread = misreadable(table.columns, partitioned=True)
    return _image_sql(image, [*_readings(table, misread)], "NULL")


def _image_sql(image: str, readings: list[_Reading], otherwise: str) -> str:
    if not readings:
        return image
    # The layout is parsed once for an image, and not for each of its values.
    values = " ".join(
        f"WHEN k IN ({_listed(reading.names)}) AND types[k] IN ({_listed(reading.types)}) "
        f"THEN CASE WHEN v IS NOT NULL THEN coalesce({reading.sql('v')}, {otherwise}) END"
        for reading in readings
    )
    concerned = " OR ".join(f"c.name IN ({_listed(r.names)}) AND c.type IN ({_listed(r.types)})" for r in readings)
    read = f"to_json(transform_values({_texts_sql(image)}, (k, v) -> CASE {values} ELSE v END))"
    as_defined = f"transform(array(map_from_entries({_LAYOUT})), types -> {read})[0]"
    return f"CASE WHEN {image} IS NOT NULL AND exists({_LAYOUT}, c -> {concerned}) THEN {as_defined} ELSE {image} END"


def value_sql(rows: MergeRows, name: str, value: str) -> str:
    """Returns SQL of a value in an image of an event, as the definition has it: bytes in hex. NULL for a misread one
    that its column cannot have."""
    readings = [reading for reading in _readings(rows.table, rows.misread) if name in reading.names]
    if not readings:
        return value
    cases = " ".join(f"WHEN {reading.declared_sql(name)} THEN {reading.sql(value)}" for reading in readings)
    return f"CASE {cases} ELSE {value} END"


def key_value_sql(rows: MergeRows, name: str, value: str) -> str:
    """Like `value_sql`, for a value of a key: one that its column cannot have is marked for `first_unreadable_sql`."""
    own = value_sql(rows, name, value)
    return value if own == value else f"coalesce({own}, concat({_UNREADABLE}, {value}))"


def _texts_sql(image: str) -> str:
    return f"from_json({image}, 'MAP<STRING, STRING>', map({IMAGE_OPTIONS}))"


def first_unreadable_sql(rows: MergeRows, changes: str) -> str:
    """Returns SQL: commit_ts of the first of the changes (`StepChanges.all_sql`) with a value that its column cannot
    have, NULL if there is none."""
    marked = [f"startswith(texts[{literal(name)}], {_UNREADABLE})" for name in rows.misread]
    if not rows.misread.keys().isdisjoint(rows.table.key):
        marked.append(f"contains({KEY}, {_UNREADABLE})")
    return f"""
        SELECT min(commit_ts) FROM (SELECT commit_ts, {KEY}, {_texts_sql("image")} AS texts FROM ({changes}))
        WHERE {" OR ".join(marked)}"""


def unreadable_point(rows: MergeRows, commit_ts: int) -> BlockingPoint:
    """Returns the point at which a table is blocked before a row with a value that its column cannot have."""
    detail = (
        f"column {', '.join(sorted(rows.misread))}: a row at {commit_ts} came with flags that are not its columns' "
        "(TiCDC, after a DDL), and with a value that is neither bytes as TiCDC writes them nor a text"
    )
    return BlockingPoint(tso=commit_ts - 1, stop=incompatible(detail))
