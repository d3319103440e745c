"""Maps of a message's bytes for people: the meaning of each byte, as far as the message can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ticdc_codec.errors import DecodeError
from ticdc_codec.message import decompress
from ticdc_codec.number import read_uvarint
from ticdc_codec.options import Compression, SinkOptions

T = TypeVar("T")
NOT_READ = "not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One field: the bytes from ``start`` to before ``end``, one at least."""

    name: str
    start: int
    end: int
    meaning: str = ""
    """What the field is for, and how it is written."""
    value: str = ""
    """Its value as text; empty where the parts have values."""
    parts: tuple[Span, ...] = ()
    """Spans that fill this one without a gap, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteMap:
    """All bytes of a message's key or value."""

    of: str
    """``key`` or ``value``."""
    data: bytes
    spans: tuple[Span, ...]
    """Fill ``data`` without a gap: what could not be read is a span too."""
    error: DecodeError | None
    """Why the rest could not be read."""


class Walk:
    """Reads fields one after another, up to ``end``, and keeps a span of each. Methods raise DecodeError.

    With ``keep=False`` no spans are kept: for a caller that asks for the first fault of a message of any size.
    """

    def __init__(self, data: bytes, start: int, end: int, *, keep: bool = True) -> None:
        self.data = data
        self.at = start
        self.end = end
        self.spans: list[Span] = []
        self._keeps_spans = keep

    def number(self, name: str, meaning: str, read: Callable[[int], T], show: Callable[[T], str] = str) -> T:
        """Reads the next uvarint, converted by ``read``; ``show`` makes the span's text of the result."""
        raw, after = read_uvarint(self.data, self.at, self.end)
        value = read(raw)
        if self._keeps_spans:
            self._keep(name, after, meaning, show(value))
        self.at = after
        return value

    def octets(self, name: str, size: int, meaning: str, show: Callable[[bytes], str]) -> bytes:
        """Reads the next ``size`` bytes. Raises DecodeError ``truncated`` if fewer are left."""
        left = self.end - self.at
        if size > left:
            raise DecodeError("truncated", f"expected {size} bytes of {name}, {left} are left", offset=self.at)
        data = self.data[self.at : self.at + size]
        if self._keeps_spans:
            self._keep(name, self.at + size, meaning, show(data))
        self.at += size
        return data

    @contextmanager
    def section(self, name: str, size: int | None = None, meaning: str = "") -> Iterator[Walk]:
        """Adds a span of the fields that are read within. They must fill ``size`` bytes if it is given: raises
        DecodeError if not."""
        start, end = self.at, self.end if size is None else self.at + size
        if end > self.end:
            raise DecodeError(
                "truncated", f"expected {size} bytes of {name}, {self.end - start} are left", offset=start
            )
        inner = Walk(self.data, start, end, keep=self._keeps_spans)
        try:
            yield inner
            if size is not None:
                inner.finish(name)
        finally:
            self.at = inner.at if size is None else end
            if self._keeps_spans:
                parts = filled(inner.spans, start, self.at)
                self.spans.append(Span(name=name, start=start, end=self.at, meaning=meaning, parts=parts))

    def finish(self, name: str) -> None:
        """Raises DecodeError ``trailing_bytes`` if bytes are left."""
        if self.at != self.end:
            detail = f"expected the end of {name}, {self.end - self.at} bytes are left"
            raise DecodeError("trailing_bytes", detail, offset=self.at)

    def _keep(self, name: str, after: int, meaning: str, value: str) -> None:
        self.spans.append(Span(name=name, start=self.at, end=after, meaning=meaning, value=value))


def mapped(of: str, data: bytes, read: Callable[[Walk], None]) -> ByteMap:
    """Returns the map of ``data`` as far as ``read`` gets."""
    walk = Walk(data, 0, len(data))
    error = None
    try:
        read(walk)
    except DecodeError as fault:
        error = fault
    return ByteMap(of=of, data=data, spans=filled(walk.spans, 0, len(data)), error=error)


def whole_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """Returns the maps of a message whose key and value are one text each."""
    compression = options.large_message_handle_compression
    meaning = "text" if compression is Compression.NONE else f"text, compressed with {compression}"

    def read(of: str, walk: Walk) -> None:
        walk.octets(of, walk.end, meaning, partial(content_text, compression))

    given = (("key", key), ("value", value))
    return tuple(mapped(of, data, partial(read, of)) for of, data in given if data)


def content_text(compression: Compression, data: bytes) -> str:
    """Returns the text in ``data``. Raises DecodeError."""
    return decompress(data, compression).decode(errors="backslashreplace") if data else ""


def filled(spans: list[Span], start: int, end: int) -> tuple[Span, ...]:
    """Returns the spans in the order of their bytes, with one for each gap between them; spans of no bytes are left
    out."""
    whole: list[Span] = []
    for span in sorted((span for span in spans if span.start < span.end), key=lambda span: span.start):
        if start < span.start:
            whole.append(Span(name=NOT_READ, start=start, end=span.start))
        whole.append(span)
        start = span.end
    if start < end:
        whole.append(Span(name=NOT_READ, start=start, end=end))
    return tuple(whole)
