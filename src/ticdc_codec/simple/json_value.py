"""The texts of values that Simple-JSON writes in another form than ``event`` (wire.md 1.3.1).

BINARY, VARBINARY, BLOBs    base64                                     lower-case hex here
BIT                         the number, which is checked to be one     the same
TIMESTAMP                   an object of a time zone and a text        text in the feed's zone here
FLOAT, DOUBLE               plain digits, however many                 exponent below 1e-6 and from 1e21 here
YEAR                        as a number: 0                             four digits here
ENUM, SET                   before v8.0 the names                      index and mask here
"""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Column
from ticdc_codec.json_table import Conversion
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.number_text import READERS, WRITERS, are_counts, number_of_names, numbers_of_names_or_digits
from ticdc_codec.simple.zone import in_zone


class Timestamp(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A TIMESTAMP value."""

    location: str
    value: str


def conversion(type_text: str, zone: ZoneInfo) -> Conversion | None:
    """From the wire's values of a type to the texts of ``event``; None if they are always the same."""
    kind = parse_type(type_text)
    match kind.family:
        case Family.BINARY:
            return operator.not_, hex_of
        case Family.TIMESTAMP:
            return operator.not_, lambda stamp: in_zone(stamp.value, stamp.location, zone)
        case Family.ENUM | Family.SET:
            return are_counts, numbers_of_names_or_digits(kind)
        case family:
            return READERS.get(family)


def to_wire(column: Column, zone: ZoneInfo) -> Callable[[str], Any] | None:
    """Inverse of ``conversion``: makes the wire's value from the text of ``event``; None if they are the same."""
    kind = parse_type(column.type)
    match kind.family:
        case Family.BINARY:
            return lambda digits: base64.b64encode(bytes.fromhex(digits)).decode()
        case Family.TIMESTAMP:
            return lambda text: Timestamp(zone.key, text)
        case Family.ENUM | Family.SET if column.by == "name":
            return number_of_names(kind)
        case family:
            return WRITERS.get(family)


def hex_of(text: str) -> str:
    """The bytes of a base64 text. Raises DecodeError."""
    try:
        return binascii.a2b_base64(text, strict_mode=True).hex()
    except ValueError as error:
        raise DecodeError("bad_value", f"expected base64: {error}") from None
