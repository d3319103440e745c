"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """The number and what it counts; ``many`` is ``one`` with an s if not given.

    >>> counted(1, "row"), counted(2, "row"), counted(0, "message is", "messages are")
    ('1 row', '2 rows', '0 messages are')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"
