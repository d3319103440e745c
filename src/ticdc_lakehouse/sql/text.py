"""Names, texts and rows as SQL writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ticdc_codec.name_case import FOLDED_APART, fold
from ticdc_lakehouse.schema.names import TableName

_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def quoted(name: str) -> str:
    """Returns any name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Returns any text as an SQL string literal.

    Characters beyond 16 bits, such as emoji, are escaped: where one is before CLUSTER BY, open-source Delta replaces
    the wrong part of a CREATE TABLE.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return "'" + _BEYOND_16_BITS.sub(lambda found: f"\\U{ord(found[0]):08X}", escaped) + "'"


def commented_sql(value: str, name: str, kind: str, comment: str) -> str:
    """Returns an SQL expression of type ``kind`` whose column has a comment. ALTER VIEW takes no list of columns, but
    the comment of the field of a struct goes with the field."""
    field = f"{quoted(name)}: {kind} COMMENT {literal(comment)}"
    return f"CAST(named_struct({literal(name)}, {value}) AS STRUCT<{field}>).{quoted(name)}"


def time_literal(time: datetime) -> str:
    """Returns a time as an SQL literal, exact to the microsecond."""
    return f"TIMESTAMP '{time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def rows_sql(rows: Sequence[Mapping[str, object]], fields: str) -> str:
    """Returns a query that returns these few rows; ``fields`` is their names and types (``a: BIGINT, b: STRING``). One
    JSON text needs no Spark job of its own; Python rows would, and it takes a third of a second."""
    return f"SELECT inline(from_json({literal(json.dumps(rows, default=_iso))}, 'ARRAY<STRUCT<{fields}>>'))"


def _iso(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def folded_sql(expression: str) -> str:
    """Returns the SQL text of ``name_case.fold`` of an SQL string expression. Names that are only ASCII, which are
    most, skip what is slow."""
    capitals, small = ("".join(map(chr, some)) for some in (FOLDED_APART.keys(), FOLDED_APART.values()))
    others = f"translate({expression}, {literal(capitals)}, {literal(small)})"
    return f"lower(if(octet_length({expression}) = char_length({expression}), {expression}, {others}))"


def is_table_sql(name: TableName) -> str:
    """Returns the SQL condition that the columns ``database`` and ``table`` name this table, in any case."""
    parts = zip(("table", "database"), (name.table, name.database), strict=True)
    return " AND ".join(f"{folded_sql(column)} = {literal(fold(part))}" for column, part in parts)
