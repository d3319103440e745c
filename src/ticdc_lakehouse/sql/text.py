"""Names and texts as SQL writes them."""

from __future__ import annotations

from ticdc_lakehouse.schema.names import FOLDED_APART


def quoted(name: str) -> str:
    """A name as an SQL identifier, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as an SQL string literal, whatever it holds."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"


def folded_sql(expression: str) -> str:
    """SQL text of ``schema.names.fold`` of an SQL string expression."""
    before, after = ("".join(map(chr, codes)) for codes in (FOLDED_APART.keys(), FOLDED_APART.values()))
    return f"lower(translate({expression}, {literal(before)}, {literal(after)}))"
