"""The section ``alarm`` of a feed file: when a run that did its work still ends with an alarm."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Duration(int):
    """A time in whole seconds, written as a number with a unit: ``90s``, ``30m``, ``6h``, ``2d``.

    >>> Duration.parse("30m")
    1800
    """

    __slots__ = ()

    expected: ClassVar[str] = "a time such as 90s, 30m, 6h or 2d"
    json_schema: ClassVar[dict[str, Any]] = {"type": "string", "pattern": "^[1-9][0-9]{0,5}[smhd]$"}

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Returns the time. Raises ValueError."""
        match = re.fullmatch("([1-9][0-9]{0,5})([smhd])", value) if isinstance(value, str) else None
        if match is None:
            raise ValueError
        return cls(int(match[1]) * _UNITS[match[2]])


class Alarm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run of the feed ends with an alarm although each layer did its work: the job's last task fails, and
    `ticdc-lake run` ends with code 3. A feed that has landed messages and never published anything always ends so."""

    behind: Annotated[
        Duration | None,
        Meta(
            description="The published watermark is older than this, or there is none. A changefeed without changes "
            "still sends watermarks, a paused one sends none. In mode eventual: no change has come for so long."
        ),
    ] = None
    blocked: Annotated[bool, Meta(description="A table is blocked.")] = True
    quarantine: Annotated[
        int,
        Meta(
            ge=0,
            description="So many messages, or more, are in quarantine and nothing was done about them; 0: however "
            "many there are, no alarm. In mode watermarks a message whose table is not known always sets it off, "
            "since it stops all tables; except in a partition that `kafka.retired` names.",
        ),
    ] = 1
