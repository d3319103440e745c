"""The one event that a message must decode to."""

from __future__ import annotations

from typing import TypeVar

from ticdc_codec.event import Event

E = TypeVar("E")


def single(events: list[Event], kind: type[E]) -> E:
    """The only one of the events, which must be of this kind."""
    (event,) = events
    assert isinstance(event, kind), event
    return event
