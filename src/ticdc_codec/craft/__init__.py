"""Craft, TiCDC's binary protocol (tiflow v5.2 to v8.5).

    uvarint version = 1
    header            n of each: commit_ts (delta uvarint), type (uvarint), partition, database, table (delta varint)
    bodies            row: one or two column groups, New before Old · DDL: uvarint type, query · resolved: nothing
    term dictionary   uvarint count, uvarint lengths, names; absent if no name is used
    size tables       [header, dictionary], [bodies], for each row [its groups]; each a count and delta varints
    reversed uvarint  bytes of the size tables

    column group      byte 1 New or 2 Old · uvarint n · names (delta varint) · types · flags (uvarint) · values
    values            n varint lengths, -1 for NULL; then their bytes

Source: wire.md 1.1; tiflow pkg/sink/codec/craft/.
"""

from ticdc_codec.craft.decode import decoder
from ticdc_codec.craft.encode import encode
from ticdc_codec.craft.spans import byte_maps

__all__ = ["byte_maps", "decoder", "encode"]
