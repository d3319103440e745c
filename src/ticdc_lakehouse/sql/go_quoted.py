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


_CHARACTERS = (
    "(?:[2-7][0-9a-f])+"
    "|(?:c[2-9a-f]|d[0-9a-f])[89ab][0-9a-f]"
    "|(?:e0[ab][0-9a-f]|e[1-9a-cef][89ab][0-9a-f]|ed[89][0-9a-f])[89ab][0-9a-f]"
    "|(?:f0[9ab][0-9a-f]|f[1-3][89ab][0-9a-f]|f48[0-9a-f])(?:[89ab][0-9a-f]){2}"
    "|.."
)
"""Of bytes in hex: a run of ASCII without control characters, a character of UTF-8, or any other byte."""
_UNPRINTABLE = (
    r"[\x{80}-\x{a0}\x{ad}\x{600}-\x{605}\x{61c}\x{6dd}\x{70f}\x{890}-\x{891}\x{8e2}\x{1680}\x{180e}"
    r"\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{2064}\x{2066}-\x{206f}\x{3000}\x{e000}-\x{f8ff}\x{feff}"
    r"\x{fff9}-\x{fffb}\x{110bd}\x{110cd}\x{13430}-\x{1343f}\x{1bca0}-\x{1bca3}\x{1d173}-\x{1d17a}\x{e0001}"
    r"\x{e0020}-\x{e007f}\x{f0000}-\x{ffffd}\x{100000}-\x{10fffd}]"
)
"""The code points above ASCII that Unicode assigns and Go escapes: spaces, separators, control and private ones."""


def quoted_sql(digits: str) -> str:
    r"""SQL of the text in which Go's strconv.Quote has quoted bytes, without its outer quotes; ``digits`` is SQL of the
    bytes in hex. Code points that Unicode has not assigned stand for themselves."""
    parts = f"regexp_extract_all({digits}, {literal(_CHARACTERS)}, 0)"
    return f"array_join(transform({parts}, e -> {_QUOTED_PART}), '')"


_TEXT = "CAST(unhex(e) AS STRING)"
_NUMBER = f"lower(hex(encode({_TEXT}, 'UTF-32')))"
_OF_BYTE = ", ".join(f"'{byte}', {literal(letter)}" for letter, byte in _LETTERS.items())
_ASCII = rf"""replace(replace(replace({_TEXT}, '\\', '\\\\'), '"', '\\"'), char(127), '\\x7f')"""
_QUOTED_PART = f"""CASE
    WHEN e RLIKE '^[2-7]' THEN {_ASCII}
    WHEN length(e) = 2 THEN concat('\\\\', coalesce(map({_OF_BYTE})[e], concat('x', e)))
    WHEN {_TEXT} NOT RLIKE {literal(_UNPRINTABLE)} THEN {_TEXT}
    WHEN {_NUMBER} LIKE '0000%' THEN concat('\\\\u', right({_NUMBER}, 4))
    ELSE concat('\\\\U', {_NUMBER}) END"""
"""The text of one of ``_CHARACTERS``, called ``e``."""
