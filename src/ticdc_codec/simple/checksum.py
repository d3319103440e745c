"""Row checksums: CRC-32 over a row's values in the order in which the schema lists its columns (wire.md 1.3.4).

    integers, YEAR, ENUM, SET, BIT      8 bytes, little endian
    FLOAT, DOUBLE                       the float64, 8 bytes
    VECTOR                              4 bytes of how many, then its float32s
    TIMESTAMP                           as text in UTC, as below
    everything else                     4 bytes of length, then the bytes or the text
    NULL                                nothing

They are computed from the texts of ``event``, so that they check the whole conversion of the wire's values.
Both writers list a schema's columns in the order of the checksum: tiflow by their ids, ticdc in the table's order
(``calculateColumnChecksum``), which is another one if a column was put FIRST or AFTER another.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from zlib import crc32
from zoneinfo import ZoneInfo

from ticdc_codec.errors import ConfigError, DecodeError, LakehouseError
from ticdc_codec.event import Column, RowChange
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.simple.message import Checksum, utc_text

_VERSION = 2
"""The checksum version of both writers (wire.md 8.13)."""
NO_CHECKSUM = Checksum(version=_VERSION, corrupted=False, current=0, previous=0)
"""Checksum of a row sent with its handle key only: 0 means none."""
_MASK = (1 << 64) - 1
_NUMBER = re.compile(r"[^\[\],\s]+")


Texts = Sequence[str | None]
"""A row's values in the order of its columns."""


def checksum_of(columns: tuple[Column, ...], texts: Texts, zone: ZoneInfo) -> int:
    """Returns the checksum of a row whose TIMESTAMPs are in ``zone``.

    Raises DecodeError for a TIMESTAMP that is no one instant there, and ValueError or OverflowError for a text that its
    column cannot have.
    """
    values = zip(_writers(columns, zone), texts, strict=True)
    return crc32(b"".join([write(text) for write, text in values if text is not None]))


def check(
    checksum: Checksum, columns: tuple[Column, ...], data: Texts | None, old: Texts | None, zone: ZoneInfo
) -> None:
    """Raises DecodeError ``checksum_mismatch`` if the images do not have the checksum."""
    if checksum.corrupted:
        raise DecodeError("checksum_mismatch", "TiCDC itself found that the row is not as TiDB wrote it (corrupted)")
    for name, expected, texts in (("data", checksum.current, data), ("old", checksum.previous, old)):
        # 0 is no checksum: a row of an update that was split has one side only (wire.md 1.3.4).
        if texts is None or expected == 0:
            continue
        try:
            found = checksum_of(columns, texts, zone)
        except DecodeError:
            continue  # a TIMESTAMP of an hour that comes twice: which of them TiDB had is unknown
        except (ValueError, OverflowError) as error:
            raise DecodeError("bad_value", f"expected values that have a checksum: {error}") from None
        if found != expected:
            raise DecodeError("checksum_mismatch", f"expected checksum {expected} of {name}, found {found}")


def written(row: RowChange, zone: ZoneInfo) -> Checksum:
    """Returns the checksums that TiCDC sends with a row. Raises ConfigError for a row without them."""
    images = (
        None if image is None else [image[column.name] for column in row.columns] for image in (row.after, row.before)
    )
    try:
        sums = [0 if texts is None else checksum_of(row.columns, texts, zone) for texts in images]
    except (LakehouseError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"integrity-check-level: no checksum of a row of {row.database}.{row.table}: {error}"
        ) from None
    return Checksum(version=_VERSION, corrupted=False, current=sums[0], previous=sums[1])


@lru_cache(maxsize=1024)
def _writers(columns: tuple[Column, ...], zone: ZoneInfo) -> list[Callable[[str], bytes]]:
    def timestamp(text: str) -> bytes:
        return _sized(utc_text(text, zone.key).encode())

    return [timestamp if family is Family.TIMESTAMP else _WRITERS.get(family, _text)
            for family in (family_of(column.type) for column in columns)]  # fmt: skip


def _integer(text: str) -> bytes:
    return struct.pack("<Q", int(text) & _MASK)


def _float(text: str) -> bytes:
    """Returns the float32 as a float64. Raises OverflowError for a number outside float32."""
    return struct.pack("<d", *struct.unpack("<f", struct.pack("<f", float(text))))


def _double(text: str) -> bytes:
    return struct.pack("<d", float(text))


def _vector(text: str) -> bytes:
    numbers = [*map(float, _NUMBER.findall(text))]
    return struct.pack(f"<I{len(numbers)}f", len(numbers), *numbers)


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _binary(digits: str) -> bytes:
    return _sized(bytes.fromhex(digits))


def _sized(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


_WRITERS: Mapping[Family, Callable[[str], bytes]] = {
    **dict.fromkeys((Family.INTEGER, Family.YEAR, Family.ENUM, Family.SET, Family.BIT), _integer),
    Family.FLOAT: _float,
    Family.DOUBLE: _double,
    Family.VECTOR: _vector,
    Family.BINARY: _binary,
}
