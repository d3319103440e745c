"""How the rows of a protocol differ from what most protocols send: what planning and gold ask about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTraits:
    """The traits of one protocol. The defaults are those of a protocol whose rows describe themselves completely."""

    external_schemas: bool = False
    """True if rows do not describe their columns, but name a schema that another message carries, which lists columns
    in its own order (Simple)."""
    flags_may_be_stale: bool = False
    """True if columns may have flags from before a DDL, so that only the definition says what is UNSIGNED (Open
    Protocol, wire.md 8.4)."""
    noncanonical_key_digits: bool = False
    """True if key texts of decimals and times have the wire's number of digits, not MySQL's (Debezium)."""
    names_elements: bool = False
    """True if values and key texts of ENUM and SET have the names of elements, not their numbers (Debezium)."""
    sends_instants: bool = False
    """True if TIMESTAMPs are sent as instants, or with their zone, so that decoding writes them in the feed's zone."""
    names_primary_keys: bool = True
    """True if rows of every writer name the primary key of a table that has one (not in Debezium before TiCDC 8.5)."""
