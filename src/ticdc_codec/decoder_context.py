"""What a decoder may know beside the messages themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ticdc_codec.event import Column

SchemaName = tuple[str, str, int]
"""Database, table and schema version: RENAME TABLE does not change the version (wire.md 1.3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderContext:
    """Mappings that are asked for what a message names; they may read from afar when asked."""

    objects: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """Claim-check objects: location as the message names it to content."""
    schemas: Mapping[SchemaName, tuple[Column, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Columns of tables whose rows do not describe themselves (Simple), or not whole (Debezium, version 0)."""


NO_CONTEXT = DecoderContext()
