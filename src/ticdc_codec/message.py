"""Kafka messages as a codec sees them, and the handling of those larger than ``max-message-bytes``.

By ``large-message-handle-option`` (wire.md 1.2.6, 1.3.6, 1.4.3) a row whose message is too large is

    none             sent as it is, even if Kafka may refuse it
    handle-key-only  sent with its handle key columns only
    claim-check      the same, with the location of a claim-check object that has the full message

Whatever its size, a message may be compressed: ``large-message-handle-compression``, lz4 frames and snappy blocks. No
message says which.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Protocol
from uuid import UUID

import msgspec
import pyarrow as pa

from ticdc_codec.errors import ConfigError, DecodeError
from ticdc_codec.event import Ddl, Event, Image, RowChange
from ticdc_codec.json_text import Unreadable, unreadable
from ticdc_codec.options import Compression, LargeMessage, SinkOptions


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
        """The last part of ``location``: the name of the file."""
        return self.location.rpartition("/")[2]


class ClaimCheck(Message, frozen=True, kw_only=True, gc=False):
    """An encoded message that names claim-check objects."""

    stored: tuple[StoredObject, ...]
    """To be stored before the message is sent."""


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """An object without claim-check-raw-value: key and value of the message in base64."""

    key: str | None
    value: str


_BEGINS = b'{"key":'
"""How Go writes a `_Stored`; no message of a protocol begins so."""
_STORED = msgspec.json.Decoder(_Stored)
_ENCODE = msgspec.json.Encoder().encode


def stored_value(objects: Mapping[str, bytes], location: str, options: SinkOptions) -> bytes:
    """Returns the value of the message that lies at ``location``, without its compression.

    Raises DecodeError ``claim_check_missing`` if there is no object, ``claim_check_mismatch`` if it has the other form
    than ``claim-check-raw-value`` says, and others if it is not a message.
    """
    try:
        content = objects[location]
    except KeyError:
        raise DecodeError("claim_check_missing", "expected an object, found none") from None
    is_raw = not content.startswith(_BEGINS)
    if is_raw != options.claim_check_raw_value:
        found = "the message itself" if is_raw else "its key and value in base64"
        option = f"claim-check-raw-value is {str(is_raw).lower()} in the changefeed"
        raise DecodeError("claim_check_mismatch", f"found {found} at {location}: {option}, and not in the feed file")
    value = content if options.claim_check_raw_value else stored_message(content).value or b""
    return decompress(value, options.large_message_handle_compression)


def stored_message(content: bytes) -> Message:
    """Returns the message in an object written without claim-check-raw-value. Raises DecodeError."""
    try:
        stored = _STORED.decode(content)
        key = None if stored.key is None else base64.b64decode(stored.key, validate=True)
        return Message(key=key, value=base64.b64decode(stored.value, validate=True))
    except Unreadable as error:
        raise unreadable(error, content) from None
    except ValueError as error:  # no base64, or not even ASCII
        raise DecodeError("bad_value", f"expected base64: {error}") from None


def _stored_object(message: Message, options: SinkOptions) -> StoredObject:
    """Returns the object that has the whole of a message.

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


OVERHEAD = 36
"""Bytes that TiCDC counts for a Kafka record beside its key and value (tiflow C/common/message.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Marks a row that is encoded with its handle key columns only, because the full message exceeds
    ``max-message-bytes``."""

    location: str | None = None
    """Location of the claim-check object that has the full message; None without one."""


class WriteRow(Protocol):
    """Encodes a row, in full or with its handle key only."""

    def __call__(self, row: RowChange, cut: Cut | None = None) -> Message: ...


def limited(write: WriteRow, options: SinkOptions) -> Callable[[RowChange], Message]:
    """Returns a function that encodes a row and applies large-message-handle-option; with ``none`` it is ``write``.

    The function raises ConfigError for a row that is too large even with its handle key only, as TiCDC stops then
    (wire.md 1.6). Raises ConfigError for claim-check without claim-check-storage-uri.
    """
    option = options.large_message_handle_option
    if option is LargeMessage.CLAIM_CHECK and options.claim_check_storage_uri is None:
        raise ConfigError("claim-check-storage-uri: missing; large-message-handle-option=claim-check needs it")
    return write if option is LargeMessage.NONE else partial(_fitting, write, options)


def checked(message: Message, event: Event, options: SinkOptions) -> Message:
    """Returns the message. Raises ConfigError if the options limit its size and it exceeds the limit."""
    option, most = options.large_message_handle_option, options.max_message_bytes
    if option is not LargeMessage.NONE and _size(message) > most:
        raise ConfigError(
            f"max-message-bytes={most}: {named(event)} takes {_size(message)} bytes, and "
            f"large-message-handle-option={option} cannot make it smaller"
        )
    return message


def with_handle_key_only(row: RowChange) -> RowChange:
    """Returns the row with images that have its handle key columns only."""
    keys = {column.name for column in row.columns if column.key}
    return replace(row, before=_only(keys, row.before), after=_only(keys, row.after), handle_only=True)


def commit_ts_of(event: RowChange | Ddl, asked_by: str) -> int:
    """Returns the commit_ts of an event to be encoded. Raises ConfigError if it has none, naming the protocol or option
    that needs one (``asked_by``)."""
    if event.commit_ts is None:
        raise ConfigError(f"{asked_by}: an event without commit_ts cannot be encoded, found {named(event)}")
    return event.commit_ts


def named(event: Event) -> str:
    """Returns the event's name in error messages."""
    match event:
        case RowChange(op=op, database=database, table=table, commit_ts=commit_ts):
            return f"the {op} of {database}.{table} at commit_ts {commit_ts}"
        case _:
            return repr(event)


def _only(names: set[str], image: Image | None) -> Image | None:
    return None if image is None else {name: text for name, text in image.items() if name in names}


def _fitting(write: WriteRow, options: SinkOptions, row: RowChange) -> Message:
    whole = write(row)
    if row.handle_only or _size(whole) <= options.max_message_bytes:
        return checked(whole, row, options)
    if options.large_message_handle_option is LargeMessage.HANDLE_KEY_ONLY:
        return checked(write(row, Cut()), row, options)
    stored = _stored_object(whole, options)
    cut = checked(write(row, Cut(location=stored.location)), row, options)
    return ClaimCheck(key=cut.key, value=cut.value, stored=(stored,))


def _size(message: Message) -> int:
    """Returns the size that TiCDC compares with the limit, after compression."""
    return len(message.key or b"") + len(message.value or b"") + OVERHEAD


_CODECS = {Compression.LZ4: "lz4", Compression.SNAPPY: "snappy"}
_PART = 256 * 1024
MAX_DECOMPRESSED = 256 * 1024 * 1024
"""Bytes; a message that claims or holds more is refused (a decompression bomb)."""


def compress(data: bytes, compression: Compression) -> bytes:
    """Returns ``data`` in this compression's framing."""
    codec = _CODECS.get(compression)
    return data if codec is None else pa.compress(data, codec=codec, asbytes=True)


def decompress(data: bytes, compression: Compression, limit: int = MAX_DECOMPRESSED) -> bytes:
    """Returns the content of ``data``. Raises DecodeError ``bad_compression``, or ``too_large`` above ``limit``
    bytes."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.LZ4:
            return _lz4(data, limit)
        case Compression.SNAPPY:
            return _snappy(data, limit)


def _lz4(data: bytes, limit: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
            content = _read(stream, limit)
    except OSError as error:
        raise DecodeError("bad_compression", f"expected an lz4 frame: {error}", offset=0) from None
    _check_size(len(content), limit)
    return content


def _read(stream: pa.NativeFile, limit: int) -> bytes:
    """Returns all that the stream holds, or a little more than ``limit`` bytes of it.

    Reads into its own buffer: ``NativeFile.read`` allocates one of the requested size, and leaks it if reading fails.
    """
    part, content = bytearray(_PART), bytearray()
    while len(content) <= limit and (count := stream.readinto(part)):
        content += memoryview(part)[:count]
    return bytes(content)


def _snappy(data: bytes, limit: int) -> bytes:
    size = _snappy_size(data)
    _check_size(size, limit)
    try:
        return pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)  # type: ignore[no-any-return]
    except OSError as error:
        raise DecodeError("bad_compression", f"expected a snappy block: {error}", offset=0) from None


def _snappy_size(data: bytes) -> int:
    """Returns the content's length, with which a snappy block begins: at most five bytes of seven bits each."""
    size = 0
    for position, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return size
    raise DecodeError("bad_compression", "expected a snappy block, its length does not end", offset=0)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise DecodeError("too_large", f"expected at most {limit} bytes after decompression, found {size} or more")
