"""A Kafka message, as far as a codec cares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Key and value as they lie in Kafka."""

    key: bytes | None
    value: bytes | None
