"""Messages looked at one by one: by the protocol that is given, else by the one that their bytes show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ticdc_codec.byte_map import ByteMap
from ticdc_codec.event import Failure
from ticdc_codec.inspection.view import Node, html, plain_text, tree
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import MessageDecoder, MessageEvents, OneMessage, pair_of, protocol_named
from ticdc_codec.recognition import DECIDING, Recognised, recognise_one


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
    """Its events; one ``Failure`` alone if it does not decode."""
    maps: tuple[ByteMap, ...] = ()
    """What the bytes of key and value are; none of a message that does not decode, unless it is explained."""
    explain: bool = False
    """Whether to show every byte, or the parts of the message alone."""

    @property
    def decoded(self) -> bool:
        """Whether the message was decoded."""
        return self.protocol is not None and not any(isinstance(event, Failure) for event in self.events)

    @property
    def tree(self) -> Node:
        """What is shown of it."""
        return tree(
            name=self.name,
            sizes={"key": self.key, "value": self.value},
            found=(self.protocol, self.options, self.reason),
            events=self.events,
            maps=self.maps,
            explain=self.explain,
        )

    def __str__(self) -> str:
        return plain_text(self.tree)

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
        """What a message is; one that does not decode is no error here. Raises ConfigError for an option that the
        recognised protocol does not have."""
        key, value = pair_of(message)
        protocol, shown, reason = self._found(key, value)
        if protocol is None:
            return Inspection(name=name, key=key, value=value, protocol=None, options={}, reason=reason)
        options = {**shown, **self._options}
        [events] = self._decoder(protocol, shown).decode([(key, value)])
        found = Inspection(
            name=name,
            key=key,
            value=value,
            protocol=protocol,
            options=options,
            reason=reason,
            events=events,
            explain=self._explain,
        )
        # Of bytes that are no message a map may have a span for every few of them: only for who asks for all bytes.
        if not (found.decoded or self._explain):
            return found
        return replace(found, maps=protocol_named(protocol).byte_maps(key, value, sink_options(protocol, options)))

    def _found(self, key: bytes | None, value: bytes | None) -> tuple[str | None, Mapping[str, str], str]:
        """Protocol, the options that the bytes show, and the reason."""
        look = recognise_one(key, value)
        others = self._others
        if self._protocol is not None:
            if look.protocol in (None, self._protocol):
                return self._protocol, look.options, "as given"
            return self._protocol, {}, f"as given, although {look.reason}"
        if others is not None and others.protocol is not None and (look.protocol is None or look.damaged):
            return others.protocol, others.options, f"as the other messages are, although {look.reason}"
        return look.protocol, look.options, look.reason

    def _decoder(self, protocol: str, shown: Mapping[str, str]) -> MessageDecoder:
        """One for all messages with the same options, so that it knows their schemas."""
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
    """What a message is: its protocol and why, its events, and the sizes of its parts; ``explain`` adds what each
    byte is.

    The message, ``protocol`` and ``options`` are as ``decode`` takes them; without a protocol it is recognised from
    the bytes. ``print`` shows the result as a tree, a notebook displays it. A message that does not decode is not an
    error here: the tree shows the reason. Raises ConfigError for a wrong protocol or option.

    >>> from ticdc_codec import Resolved, encode, inspect
    >>> [watermark] = encode([Resolved(commit_ts=470613127470252033)], "craft")
    >>> print(inspect(watermark))
    message key null, value 20 bytes
    ├── protocol craft the value begins with version 1 and ends with size tables that fill it: 1 events of Craft
    ├── watermark commit_ts 470613127470252033, 2026-11-21 07:36:50.528 UTC
    └── bytes of the value 20 version 1, header 13, size tables 5, length of the size tables 1
    """
    return Inspector(protocol, options, explain=explain).inspect(message)
