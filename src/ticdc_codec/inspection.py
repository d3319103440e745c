"""What a message is, for people: protocol and why, events with values and types, and what each byte is.

Messages are looked at one by one: by the protocol that is given, else by the one that their bytes show. The result is
a tree of lines, each of texts with a style, which is shown as plain text, and as HTML in a notebook. All text from
messages goes through ``shown``, so that no control character reaches a terminal; in HTML everything is escaped, and
there are no scripts and nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape

from ticdc_codec.byte_map import NOT_READ, ByteMap, Span
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Resolved, RowChange
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import MessageDecoder, MessageEvents, OneMessage, pair_of, protocol_named, spelling
from ticdc_codec.recognition import DECIDING, Recognised, recognise_one
from ticdc_codec.tso import time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What one message is. Shows itself: as text with ``str``, as HTML in a notebook."""

    name: str
    """What the message is called: ``message 3``."""
    key: bytes | None
    value: bytes | None
    protocol: str | None
    """As ``protocols.PROTOCOLS`` names it; None if none was given and none was recognised."""
    options: Mapping[str, object]
    """The options that it was decoded with, beside defaults."""
    reason: str
    """Why this protocol, or why none."""
    events: MessageEvents = ()
    """Its events; only one ``Failure`` if it does not decode."""
    maps: tuple[ByteMap, ...] = ()
    """What the bytes of key and value are; none of a message that does not decode, unless it is explained."""
    explain: bool = False
    """True if every byte is shown, else only the parts of the message."""

    @property
    def decoded(self) -> bool:
        """True if the message was decoded."""
        return self.protocol is not None and not any(isinstance(event, Failure) for event in self.events)

    @property
    def tree(self) -> Node:
        """The lines that show it: envelope, events, bytes."""
        parts = {"key": self.key, "value": self.value}
        lengths = [f"{part} {'null' if data is None else f'{len(data)} bytes'}" for part, data in parts.items()]
        envelope = _envelope(self.protocol, self.options, self.reason)
        maps = map(_byte_map if self.explain else _parts, self.maps)
        return Node(
            ((self.name, Style.HEAD), (", ".join(lengths), Style.NOTE)),
            (*envelope, *map(_event, self.events), *maps),
        )

    def __str__(self) -> str:
        return _plain_text(self.tree)

    def _repr_html_(self) -> str:
        return html(self.tree)


class Inspector:
    """Inspects messages of one changefeed; decoders keep what earlier messages carried.

    ``protocol`` and ``options`` are given as ``decode`` takes them; ``others`` is what the other messages of
    the changefeed look like. Raises ConfigError for a wrong name or value.
    """

    def __init__(
        self,
        protocol: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        others: Recognised | None = None,
        explain: bool = False,
    ) -> None:
        if protocol is not None:
            protocol_named(protocol)
        self._protocol = None if protocol is None else protocol.replace("-", "_")
        self._options = dict(options or {})
        self._others = others
        self._explain = explain
        self._decoders: dict[tuple[str, str], MessageDecoder] = {}

    def inspect(self, message: OneMessage, name: str = "message") -> Inspection:
        """Describes a message; one that does not decode is no error here. Raises ConfigError for an option that the
        recognised protocol does not have."""
        key, value = pair_of(message)
        protocol, shown, reason = self._protocol_of(key, value)
        if protocol is None:
            return Inspection(name=name, key=key, value=value, protocol=None, options={}, reason=reason)
        options = {**shown, **self._options}
        [events] = self._decoder(protocol, shown).decode([(key, value)])
        inspection = Inspection(
            name=name,
            key=key,
            value=value,
            protocol=protocol,
            options=options,
            reason=reason,
            events=events,
            explain=self._explain,
        )
        # Bytes that are no message may have a span every few bytes: map them only where all bytes are requested.
        if not (inspection.decoded or self._explain):
            return inspection
        return replace(inspection, maps=protocol_named(protocol).byte_maps(key, value, sink_options(protocol, options)))

    def _protocol_of(self, key: bytes | None, value: bytes | None) -> tuple[str | None, Mapping[str, str], str]:
        """Returns the protocol, the options that the bytes show, and the reason."""
        found = recognise_one(key, value)
        others = self._others
        if self._protocol is not None:
            if found.protocol in (None, self._protocol):
                return self._protocol, found.options, "as given"
            return self._protocol, {}, f"as given, although {found.reason}"
        if others is not None and others.protocol is not None and (found.protocol is None or found.damaged):
            return others.protocol, others.options, f"as the other messages are, although {found.reason}"
        return found.protocol, found.options, found.reason

    def _decoder(self, protocol: str, shown: Mapping[str, str]) -> MessageDecoder:
        """Returns one decoder for all messages with the same options, so that it knows their schemas."""
        deciding = {name: shown[name] for name in DECIDING if name in shown}
        key_of_decoder = protocol, repr(deciding)
        if key_of_decoder not in self._decoders:
            self._decoders[key_of_decoder] = MessageDecoder(protocol, {**deciding, **self._options})
        return self._decoders[key_of_decoder]


def inspect(
    message: OneMessage,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    *,
    explain: bool = False,
) -> Inspection:
    """Describes a message: its protocol and how it was recognised, its events, the sizes of its parts, and with
    ``explain`` the meaning of each byte.

    ``message``, ``protocol`` and ``options`` are those of ``decode``; without ``protocol`` the bytes show it. ``print``
    shows the result as a tree, a notebook displays it. A message that does not decode is not an error here: the tree
    shows the reason. Raises ConfigError for a wrong protocol or option.

    >>> from ticdc_codec import Resolved, encode, inspect
    >>> [watermark] = encode([Resolved(commit_ts=470613127470252033)], "craft")
    >>> print(inspect(watermark))
    message key null, value 20 bytes
    ├── protocol craft the value begins with version 1 and ends with size tables that fill it: 1 event of Craft
    ├── watermark commit_ts 470613127470252033, 2026-11-21 07:36:50.528 UTC
    └── bytes of the value 20 version 1, header 13, size tables 5, length of the size tables 1
    """
    return Inspector(protocol, options, explain=explain).inspect(message)


_MOST_TEXT = 200
_MOST_BYTES = 8


class Style(StrEnum):
    """What a text is."""

    PLAIN = "plain"
    HEAD = "head"
    NAME = "name"
    TYPE = "type"
    NOTE = "note"
    VALUE = "value"
    OLD = "old"
    NEW = "new"
    BYTES = "bytes"
    ERROR = "error"


Piece = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class Node:
    """One line, and those below it. Pieces are separated by a space; empty ones are left out."""

    pieces: tuple[Piece, ...]
    children: tuple[Node, ...] = ()


def _envelope(protocol: str | None, options: Mapping[str, object], reason: str) -> Iterable[Node]:
    style = Style.ERROR if protocol is None else Style.VALUE
    name = "none fits" if protocol is None else spelling(protocol)
    yield Node((("protocol", Style.NAME), (name, style), (reason, Style.NOTE)))
    if options:
        listed = ", ".join(f"{name}: {value}" for name, value in options.items())
        yield Node((("options", Style.NAME), (shown(listed), Style.VALUE)))


def _event(event: Event) -> Node:
    match event:
        case RowChange():
            return _row(event)
        case Ddl(query=query, type=kind):
            head = _head("DDL", event.database, event.table, event.commit_ts)
            return Node((*head, (shown(f"type {kind}") if kind else "", Style.NOTE)), (_line(query, Style.VALUE),))
        case Resolved(commit_ts=commit_ts):
            return Node(_head("watermark", None, None, commit_ts))
        case Bootstrap():
            head = _head("schema", event.database, event.table, None)
            version = (f"version {event.schema_version}", Style.NOTE)
            return Node((*head, version), tuple(Node(_column(column)) for column in event.columns))
        case Failure():
            return _failure(event)


def _failure(failure: Failure) -> Node:
    at = "" if failure.offset is None else f" at byte {failure.offset}"
    table = "" if failure.table is None else f"a row of {failure.database}.{failure.table}"
    fault = (f"{failure.reason}{at}: {shown(failure.detail)}", Style.ERROR)
    return Node((("does not decode", Style.HEAD), fault, (shown(table), Style.NOTE)))


def _head(kind: str, database: str | None, table: str | None, commit_ts: int | None) -> tuple[Piece, ...]:
    name = ".".join(part for part in (database, table) if part)
    time = (
        "" if commit_ts is None else f"commit_ts {commit_ts}, {time_of(commit_ts):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
    )
    return (kind, Style.HEAD), (shown(name), Style.NAME), (time, Style.NOTE)


def _row(row: RowChange) -> Node:
    notes = {
        f"{row.commit_ms} ms": row.commit_ts is None,
        f"table id {row.table_id}": row.table_id is not None,
        f"schema version {row.schema_version}": row.schema_version is not None,
        "handle key alone: the row was too large": row.handle_only,
    }
    listed = ", ".join(note for note, applies in notes.items() if applies)
    columns = tuple(Node((*_column(column), *_change(row, column.name))) for column in row.columns)
    return Node((*_head(row.op.value, row.database, row.table, row.commit_ts), (listed, Style.NOTE)), columns)


def _column(column: Column) -> tuple[Piece, ...]:
    return (
        (shown(column.name), Style.NAME),
        (shown(column.type), Style.TYPE),
        ("KEY" if column.key else "", Style.HEAD),
        (f"suspect: {column.defect}" if column.defect else "", Style.ERROR),
    )


def _change(row: RowChange, name: str) -> tuple[Piece, ...]:
    """Returns the value, or both where an update changed it."""
    # One of the two images has all columns; an update's before may lack some that have not changed.
    values = [image[name] for image in (row.before, row.after) if image is not None and name in image]
    old, new = values[0], values[-1]
    if old != new:
        return (_value(old), Style.OLD), ("→", Style.NOTE), (_value(new), Style.NEW)
    return ((_value(new), Style.NOTE if new is None else Style.VALUE),)


def _value(value: str | None) -> str:
    return "NULL" if value is None else f"'{shown(value)}'"


def _parts(byte_map: ByteMap) -> Node:
    """Returns the largest spans and their sizes."""
    sizes = ", ".join(f"{span.name} {span.end - span.start}" for span in byte_map.spans)
    return Node(
        ((f"bytes of the {byte_map.of}", Style.HEAD), (f"{len(byte_map.data)}", Style.NOTE), (shown(sizes), Style.NAME))
    )


def _byte_map(byte_map: ByteMap) -> Node:
    width = len(str(len(byte_map.data)))
    spans = [_span(byte_map.data, span, width) for span in byte_map.spans]
    if byte_map.error is not None:
        spans.append(_line(shown(str(byte_map.error)), Style.ERROR))
    return Node(((f"bytes of the {byte_map.of}", Style.HEAD), (f"{len(byte_map.data)}", Style.NOTE)), tuple(spans))


def _span(data: bytes, span: Span, width: int) -> Node:
    digits = data[span.start : min(span.end, span.start + _MOST_BYTES)].hex(" ")
    more = " …" if span.end - span.start > _MOST_BYTES else ""
    size = span.end - span.start
    pieces = (
        (f"{span.start:>{width}}", Style.NOTE),
        ("" if span.parts else f"{digits}{more}", Style.BYTES),
        (shown(span.name), Style.ERROR if span.name == NOT_READ else Style.NAME),
        (f"= {shown(span.value)}" if span.value else "", Style.VALUE),
        (span.meaning if size <= _MOST_BYTES else f"{span.meaning} ({size} bytes)".lstrip(), Style.NOTE),
    )
    return Node(pieces, tuple(_span(data, part, width) for part in span.parts))


def _line(text: str, style: Style) -> Node:
    return Node(((shown(text), style),))


def shown(text: str) -> str:
    """Returns the text as it may be printed: without control characters, and cut where it is long."""
    cut = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}… ({len(text)} characters)"
    return cut if cut.isprintable() else "".join(map(_printable, cut))


def _printable(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


_COLOURS = {
    Style.PLAIN: "",
    Style.HEAD: "font-weight:bold",
    Style.NAME: "color:#0b7285",
    Style.TYPE: "color:#862e9c",
    Style.NOTE: "opacity:.6",
    Style.VALUE: "color:#2b8a3e",
    Style.OLD: "color:#c92a2a;text-decoration:line-through",
    Style.NEW: "color:#2b8a3e;font-weight:bold",
    Style.BYTES: "color:#a56300",
    Style.ERROR: "color:#c92a2a;font-weight:bold",
}
_BLOCK = "font-family:monospace;white-space:pre-wrap;margin:0 0 0 1.2em"


def _plain_text(node: Node) -> str:
    """Returns the tree as plain text, one line for each node; ``│``, ``├──`` and ``└──`` show the nesting."""
    return "\n".join([_joined_pieces(node), *_branches(node, "")])


def _branches(node: Node, indent: str) -> Iterator[str]:
    for child in node.children:
        is_last = child is node.children[-1]
        yield f"{indent}{'└── ' if is_last else '├── '}{_joined_pieces(child)}"
        yield from _branches(child, indent + ("    " if is_last else "│   "))


def _joined_pieces(node: Node) -> str:
    return " ".join(piece for piece, _ in node.pieces if piece)


def html(node: Node) -> str:
    """Returns the tree as one HTML element; a node that has children can be folded."""
    return f'<div style="{_BLOCK}">{_element(node)}</div>'


def _element(node: Node) -> str:
    line = " ".join(f'<span style="{_COLOURS[style]}">{escape(piece)}</span>' for piece, style in node.pieces if piece)
    if not node.children:
        return f"<div>{line}</div>"
    below = "".join(map(_element, node.children))
    return f'<details open><summary>{line}</summary><div style="{_BLOCK}">{below}</div></details>'
