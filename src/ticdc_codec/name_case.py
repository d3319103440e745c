"""Names of databases, tables and columns without case, as TiDB compares them."""

from __future__ import annotations

from functools import lru_cache

_LATER = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x19B,
    **{0x10D50 + n: 0x10D70 + n for n in range(22)},
    **{0x16EA0 + n: 0x16EBB + n for n in range(25)},
}
"""Capitals of Unicode 16 and 17. TiDB's Go and Python know them from some version on, Spark's ICU from another one."""
FOLDED_APART = str.maketrans("İΣ", "iσ") | _LATER  # noqa: RUF001
"""Capitals that are replaced before the others. Of the first two Python and Java make TiDB's small letter only without
their context and without full case mapping: ``i̇`` of the first, and of the second, at the end of a word, a final sigma.
"""


@lru_cache(maxsize=100_000)
def fold(text: str) -> str:
    """Returns the text under which TiDB finds a name, each code point lowered by itself.

    Source: NewCIStr of TiDB's parser, Go's strings.ToLower; wire.md 8.14.

    >>> fold("Straße"), fold("İstanbul"), fold("ΟΔΟΣ")
    ('straße', 'istanbul', 'οδοσ')
    """
    return text.translate(FOLDED_APART).lower()
