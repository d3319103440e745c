"""Which protocol messages belong to, judging by their bytes; with the reason in words.

    Open Protocol   key     00 00 00 00 00 00 00 01, then lengths and JSON with ts and t
    Craft           value   byte 01 and, read from the end, size tables that fill the message
    Simple, Avro    value   byte 16, the message's type twice, version 02
    the others      value   a JSON object whose members are theirs

lz4 begins with its magic number, snappy with nothing (wire.md 1.6): a value that is neither of the above is read as
both. Messages that fit no protocol are reported as such, never as the most similar one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from ticdc_codec.craft.frame import MessageBatch, RefusedError, read_sizes
from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable
from ticdc_codec.message import decompress
from ticdc_codec.open_protocol.frame import VERSION, key_texts, texts_of
from ticdc_codec.options import Compression
from ticdc_codec.protocols import spelling
from ticdc_codec.simple.avro_schema import names_claim_check

NEARLY_ALL = 0.9
"""Share of messages that must look like one protocol for it to be recognised."""
DECIDING = ("encoding-format", "large-message-handle-compression", "enable-tidb-extension")
"""Options without which messages do not decode, and which the bytes show."""
_MOST_BYTES = 64 * 1024 * 1024
"""Values that hold more after decompression are skipped."""
_COMPRESSION = "large-message-handle-compression"
_CLAIM_CHECK = {"large-message-handle-option": "claim-check"}

_CANAL_JSON = frozenset({"database", "table", "isDdl", "type", "es"})
_SIMPLE = frozenset({"version", "type", "commitTs", "buildTs"})
_STORED = frozenset({"key", "value"})
_OPEN_VALUES = (frozenset("upd"), frozenset("qt"))
_AVRO_TYPES = (0, 2, 4, 6)

Members = Mapping[str, msgspec.Raw]
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What messages look like."""

    reason: str
    """In words: what was seen."""
    protocol: str | None = None
    """As ``protocols.PROTOCOLS`` names it; None if none fits, or several do."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The sink-uri options that the bytes show, by their names."""
    damaged: bool = False
    """True if the bytes only begin as those of ``protocol`` do, or lack the key that it needs."""


def recognise(messages: Iterable[tuple[bytes | None, bytes | None]]) -> Recognised:
    """Recognises messages (keys and values) of one changefeed. A protocol, or an option, is named if nearly all show
    it; the reason says what the others are."""
    single = [recognise_one(key, value) for key, value in messages]
    if len(single) == 1:
        return single[0]
    groups: dict[str | None, list[Recognised]] = defaultdict(list)
    for recognised in single:
        groups[None if recognised.damaged else recognised.protocol].append(recognised)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    reason = "; ".join(_group_text(protocol, group) for protocol, group in ranked) or "no messages"
    protocol, group = next(iter(ranked), (None, []))
    if protocol is None or len(group) < NEARLY_ALL * len(single):
        return Recognised(reason=reason)
    options, mixed = _options(group)
    differ = f"; they differ in {', '.join(mixed)}" if mixed else ""
    return Recognised(protocol=protocol, options=options, reason=reason + differ)


def _group_text(protocol: str | None, group: list[Recognised]) -> str:
    return f"{len(group)} of {'no protocol' if protocol is None else spelling(protocol)}: {group[0].reason}"


def _options(group: list[Recognised]) -> tuple[dict[str, str], list[str]]:
    """Returns the options that nearly all messages agree in that show them, and the names of the others."""
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    for recognised in group:
        for name, value in recognised.options.items():
            shown[name][value] += 1
    most = {name: values.most_common(1)[0] for name, values in shown.items()}
    agreed = {name: value for name, (value, times) in most.items() if times >= NEARLY_ALL * shown[name].total()}
    return agreed, [name for name in shown if name not in agreed]


def recognise_one(key: bytes | None, value: bytes | None) -> Recognised:
    """Returns the protocol and options that one message shows, and by what."""
    if key is not None and key.startswith(VERSION):
        return _open_protocol(key, value)
    if not value:
        return Recognised(reason="the value has no bytes, and the key is not Open Protocol's")
    recognised = _bare(value) or _compressed(value)
    return recognised or _open_without_key(value) or _beginning(value)


def _bare(value: bytes) -> Recognised | None:
    """Recognises the bytes of a value, without compression."""
    match value[0]:
        case 0x01:
            return _craft(value)
        case 0x16 if value[1:2] == value[2:3] and value[1:2] and value[1] in _AVRO_TYPES and value[3:4] == b"\x02":
            options = {
                "encoding-format": "avro",
                _COMPRESSION: "none",
                **(_CLAIM_CHECK if names_claim_check(value) else {}),
            }
            reason = f"the value begins with {value[:4].hex(' ')}, a message of Simple in Avro"
            return Recognised(protocol="simple", options=options, reason=reason)
    members = _members(value)
    return None if members is None else _json(members)


def _members(text: bytes) -> Members | None:
    """Returns the members of a JSON object; None for any other text."""
    try:
        return _OBJECT.decode(text)
    except Unreadable:
        return None


def _craft(value: bytes) -> Recognised | None:
    try:
        sizes = read_sizes(MessageBatch([value], {}))
    except RefusedError:
        return None
    count = int(np.sum(sizes.events))
    events = "1 event" if count == 1 else f"{count} events"
    reason = f"the value begins with version 1 and ends with size tables that fill it: {events} of Craft"
    return Recognised(protocol="craft", reason=reason)


def _json(members: Members) -> Recognised:
    """Recognises a JSON object. One of no protocol is described."""
    names = members.keys()
    for known, describe in ((_CANAL_JSON, _canal_json), (_SIMPLE, _simple)):
        if known <= names:
            return describe(members)
    if "payload" in names:
        return _debezium(members)
    if names == _STORED:
        return Recognised(reason="the value is a claim-check object (JSON with key and value), not a message")
    return Recognised(reason=f"the value is JSON with {_listed(members)}, which no protocol of TiCDC has")


def _canal_json(members: Members) -> Recognised:
    options = {"enable-tidb-extension": str("_tidb" in members).lower(), _COMPRESSION: "none"}
    if "claimCheckLocation" in (_members(bytes(members.get("_tidb", b""))) or ()):
        options |= _CLAIM_CHECK
    return Recognised(protocol="canal_json", options=options, reason=f"the value is JSON with {_listed(members)}")


def _simple(members: Members) -> Recognised:
    options = {"encoding-format": "json", _COMPRESSION: "none"}
    if "claimCheckLocation" in members:
        options |= _CLAIM_CHECK
    return Recognised(protocol="simple", options=options, reason=f"the value is JSON with {_listed(members)}")


def _debezium(members: Members) -> Recognised:
    source = _members(bytes((_members(bytes(members["payload"])) or {}).get("source", b""))) or {}
    connector = bytes(source.get("connector", b"null"))
    if connector != b'"TiCDC"':
        shown = _printable(connector)
        return Recognised(reason=f"the value is JSON with payload, as Debezium's, but of connector {shown}, not TiCDC")
    options = {"debezium-disable-schema": str("schema" not in members).lower(), _COMPRESSION: "none"}
    reason = f"the value is JSON with {_listed(members)}, and its payload.source is of connector TiCDC"
    return Recognised(protocol="debezium", options=options, reason=reason)


def _compressed(value: bytes) -> Recognised | None:
    """Recognises a compressed value; None if it is not compressed, or has no content."""
    for compression in (Compression.LZ4, Compression.SNAPPY):
        try:
            content = decompress(value, compression, _MOST_BYTES)
        except DecodeError:
            continue
        if content[:1] in (b"", b"\x01"):  # Craft is never compressed
            continue
        recognised = _bare(content)
        if recognised is not None and recognised.protocol is not None:
            options = {**recognised.options, _COMPRESSION: compression.value}
            return replace(recognised, options=options, reason=f"{compression.value}: {recognised.reason}")
    return None


def _open_protocol(key: bytes, value: bytes | None) -> Recognised:
    begins = "the key begins with 00 00 00 00 00 00 00 01"
    try:
        keys = [_members(text) or {} for text in key_texts(key)]
    except DecodeError as error:
        reason = f"{begins}, as Open Protocol's, but: {error}"
        return Recognised(protocol="open_protocol", reason=reason, damaged=True)
    if not all({"ts", "t"} <= members.keys() for members in keys):
        reason = f"{begins}, as Open Protocol's, but what follows is not JSON with ts and t"
        return Recognised(protocol="open_protocol", reason=reason, damaged=True)
    options = _open_compression(value)
    if any("ccl" in members for members in keys):
        options |= _CLAIM_CHECK
    reason = f"{begins} and the length and JSON of {len(keys)} events, as Open Protocol's"
    return Recognised(protocol="open_protocol", options=options, reason=reason)


def _open_compression(value: bytes | None) -> dict[str, str]:
    """Returns the compression of the texts in a value, if it holds one: a watermark's does not."""
    try:
        text = next((text for text in texts_of(value or b"") if text), b"")
    except DecodeError:
        return {}
    read = _open_text(text)
    return {} if read is None else {_COMPRESSION: read[0].value}


def _open_text(text: bytes) -> tuple[Compression, Set[str]] | None:
    """Returns the compression of one event's JSON object, and the names of its members; None for any other text."""
    for compression in Compression:
        try:
            members = _members(decompress(text, compression, _MOST_BYTES))
        except DecodeError:
            continue
        if members is not None:
            return compression, members.keys()
    return None


def _open_without_key(value: bytes) -> Recognised | None:
    """Recognises Open Protocol's value without its key: it cannot be decoded."""
    try:
        read = [_open_text(text) for text in texts_of(value) if text]
    except DecodeError:
        return None
    if not all(text is not None and any(text[1] <= known for known in _OPEN_VALUES) for text in read):
        return None
    reason = "the value is lengths and JSON of Open Protocol's events, but its key is missing"
    return Recognised(protocol="open_protocol", options=_open_compression(value), reason=reason, damaged=True)


_BEGINNINGS: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("craft", lambda value: value[0] == 1),
    ("simple", lambda value: value[0] == 0x16),
    ("canal_json", lambda value: value[0] == ord("{") and b'"isDdl"' in value),
    ("debezium", lambda value: value[0] == ord("{") and b'"payload"' in value and b'"TiCDC"' in value),
    ("simple", lambda value: value[0] == ord("{") and b'"commitTs"' in value and b'"buildTs"' in value),
)


def _beginning(value: bytes) -> Recognised:
    """Returns what a value that reads as no message may have been."""
    for protocol, begins in _BEGINNINGS:
        if begins(value):
            options = {"encoding-format": "avro"} if value[0] == 0x16 else {}
            reason = f"the value begins as one of {protocol}, but does not read as one"
            return Recognised(protocol=protocol, options=options, reason=reason, damaged=True)
    beginning = f"the value's {len(value)} bytes begin with {value[:8].hex(' ')}"
    return Recognised(reason=f"{beginning}: no JSON object, no Craft, no Simple in Avro, not compressed")


def _listed(members: Members) -> str:
    names = [_printable(name.encode()) for name in members]
    return f"members {', '.join(names[:6])}{', …' if len(names) > 6 else ''}" if names else "no members"


def _printable(text: bytes) -> str:
    return ascii(text[:40].decode(errors="replace"))[1:-1]
