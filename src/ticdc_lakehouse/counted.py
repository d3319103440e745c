"""Numbers of things and spans of time in sentences."""

from __future__ import annotations

from datetime import timedelta


def counted(number: int, one: str, many: str = "") -> str:
    """Returns the number and what it counts; ``many`` is ``one`` with an s if not given.

    >>> counted(1, "row"), counted(2, "row"), counted(0, "message is", "messages are")
    ('1 row', '2 rows', '0 messages are')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Returns a span of time.

    >>> duration(2.4), duration(3_661), duration(180_061)
    ('0:00:02', '1:01:01', '2d 2:01:01')
    """
    days, rest = divmod(round(seconds), 86_400)
    return f"{f'{days}d ' if days else ''}{timedelta(seconds=rest)}"
