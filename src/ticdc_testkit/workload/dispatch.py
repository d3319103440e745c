"""To which partition TiCDC sends a row (wire.md 2.2)."""

from __future__ import annotations

from enum import StrEnum
from zlib import crc32

from ticdc_codec.event import RowChange


class Dispatch(StrEnum):
    """A dispatch rule's ``partition``."""

    INDEX_VALUE = "index-value"
    """By the values of the handle key."""
    TABLE = "table"


def partition_of(row: RowChange, rule: Dispatch, partitions: int) -> int:
    """The row's partition. Key values that are texts or whole numbers are hashed as TiCDC does."""
    image = row.before if row.after is None else row.after
    found = crc32(f"{row.database}{row.table}".encode())
    if rule is Dispatch.INDEX_VALUE and image is not None:
        for column in row.columns:
            if column.key:
                found ^= crc32(f"{column.name}{image[column.name] or ''}".encode())
    return found % partitions
