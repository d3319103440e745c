"""Events into messages."""

from __future__ import annotations

from collections.abc import Sequence

from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.codec.options import SinkOptions
from ticdc_lakehouse.event import Event


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Todo."""
    raise NotImplementedError
