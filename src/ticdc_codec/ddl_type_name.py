"""TiCDC's words for kinds of DDL, in protocols that do not send TiDB's numbers."""

from __future__ import annotations

_WORDS = {
    **dict.fromkeys((3, 60), "CREATE"),
    **dict.fromkeys((14, 47), "RENAME"),
    **dict.fromkeys((7, 9, 32), "CINDEX"),
    **dict.fromkeys((8, 10, 33), "DINDEX"),
    **dict.fromkeys((5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72), "ALTER"),
    4: "ERASE",
    11: "TRUNCATE",
}
"""TiDB's DDL type numbers; all others are QUERY (wire.md 1.3.3, 1.4.4)."""


def ddl_word(ddl_type: str | None) -> str:
    """The word for an event's DDL type, which may be one already; QUERY if there is none."""
    word = ddl_type or "QUERY"
    return _WORDS.get(int(word), "QUERY") if word.isdecimal() else word
