"""Kafka messages as a codec sees them, and claim-check objects: messages too large for Kafka, which lie in storage
(wire.md 1.3.6, 1.4.3).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

import msgspec

from ticdc_codec.compression import decompress
from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable, unreadable
from ticdc_codec.options import SinkOptions


# Not a dataclass: making a frozen one takes 1 us, a tenth of encoding a row.
class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Key and value of a Kafka message; None is null."""

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """A claim-check object: a message too large for Kafka."""

    location: str
    """As messages name it: ``claim-check-storage-uri``, a slash, ``name``."""
    content: bytes

    @property
    def name(self) -> str:
        """The file's name."""
        return self.location.rpartition("/")[2]


class ClaimCheck(Message, frozen=True, kw_only=True, gc=False):
    """An encoded message that names claim-check objects."""

    stored: tuple[StoredObject, ...]
    """To be stored before the message is sent."""


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """An object without claim-check-raw-value: key and value of the message in base64."""

    key: str | None
    value: str


_STORED = msgspec.json.Decoder(_Stored)
_ENCODE = msgspec.json.Encoder().encode


def stored_value(objects: Mapping[str, bytes], location: str, options: SinkOptions) -> bytes:
    """The value of the message that lies at ``location``, without its compression.

    Raises DecodeError ``claim_check_missing`` if there is no object, and others if it is not a message.
    """
    try:
        content = objects[location]
    except KeyError:
        raise DecodeError("claim_check_missing", "expected an object, found none") from None
    value = content if options.claim_check_raw_value else stored_message(content).value or b""
    return decompress(value, options.large_message_handle_compression)


def stored_message(content: bytes) -> Message:
    """The message in an object written without claim-check-raw-value. Raises DecodeError."""
    try:
        stored = _STORED.decode(content)
        key = None if stored.key is None else base64.b64decode(stored.key, validate=True)
        return Message(key=key, value=base64.b64decode(stored.value, validate=True))
    except Unreadable as error:
        raise unreadable(error, content) from None
    except binascii.Error as error:
        raise DecodeError("bad_value", f"expected base64: {error}") from None


def stored_object(message: Message, options: SinkOptions) -> StoredObject:
    """The object that has the whole of a message.

    Its name has the form of TiCDC's, ``<UUID 4>.json``, but is made of the content: what is encoded again is the same
    object.
    """
    content = message.value or b"" if options.claim_check_raw_value else _content(message)
    name = UUID(bytes=sha256(content).digest()[:16], version=4)
    return StoredObject(location=f"{(options.claim_check_storage_uri or '').rstrip('/')}/{name}.json", content=content)


def _content(message: Message) -> bytes:
    """Inverse of ``stored_message``."""
    key, value = (None if part is None else base64.b64encode(part).decode() for part in (message.key, message.value))
    return _ENCODE(_Stored(key=key, value=value or ""))
