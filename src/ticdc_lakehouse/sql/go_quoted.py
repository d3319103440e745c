"""Texts in which Go's ``strconv.Quote`` has quoted bytes, without the outer quotes."""

from __future__ import annotations

from ticdc_lakehouse.sql.text import literal

_PARTS = (
    r'[^\\"\x00-\x1f\x7f]+|\\[abfnrtv\\"]|\\x[0-9a-fA-F]{2}'
    r"|\\u(?!00[0-7]|[dD][89a-fA-F])[0-9a-fA-F]{4}|\\U000[1-9a-fA-F][0-9a-fA-F]{4}|\\U0010[0-9a-fA-F]{4}"
)
"""A run of characters that stand for themselves, or an escape."""
_LETTERS = {"a": "07", "b": "08", "f": "0c", "n": "0a", "r": "0d", "t": "09", "v": "0b", "\\": "5c", '"': "22"}


def unquoted_sql(value: str) -> str:
    r"""SQL of the bytes, in hex, behind a text of Go's strconv.Quote without its outer quotes (``\x89PNG``); NULL of a
    text that is none."""
    parts = f"named_struct('whole', {value}, 'parts', regexp_extract_all({value}, {literal(_PARTS)}, 0))"
    joined = f"array_join(transform(s.parts, e -> {_PART}), '')"
    return f"transform(array({parts}), s -> CASE WHEN array_join(s.parts, '') = s.whole THEN {joined} END)[0]"


def _utf8_sql(point: str) -> str:
    """SQL of the bytes of a code point above 0x7f in UTF-8, in hex."""

    def following(bits: int) -> str:
        return f"hex(128 | (shiftright({point}, {bits}) & 63))"

    two = f"hex(192 | shiftright({point}, 6)) || {following(0)}"
    three = f"hex(224 | shiftright({point}, 12)) || {following(6)} || {following(0)}"
    four = f"hex(240 | shiftright({point}, 18)) || {following(12)} || {following(6)} || {following(0)}"
    return f"CASE WHEN {point} < 2048 THEN {two} WHEN {point} < 65536 THEN {three} ELSE {four} END"


_POINT = "CAST(conv(substr(e, 3), 16, 10) AS INT)"
_PART = f"""lower(CASE
    WHEN left(e, 1) <> '\\\\' THEN hex(e)
    WHEN substr(e, 2, 1) = 'x' THEN substr(e, 3)
    WHEN lower(substr(e, 2, 1)) = 'u' THEN {_utf8_sql(_POINT)}
    ELSE map({", ".join(f"{literal(letter)}, '{byte}'" for letter, byte in _LETTERS.items())})[substr(e, 2, 1)] END)"""
"""The bytes of one of ``_PARTS``, called ``e``."""
