"""One table of what the protocols send, by which the contract suite and the fuzzer go."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vectors import Case, cases, header

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Bootstrap, Event, events_of
from ticdc_codec.mysql_type import Family
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder, protocol_named

MYSQL_TEXTS = frozenset(
    {Family.DECIMAL, Family.DATE, Family.DATETIME, Family.TIMESTAMP, Family.TIME, Family.JSON, Family.VECTOR}
)
Pair = tuple[bytes | None, bytes | None]
"""Key and value of a message."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Wire:
    """One form in which messages come."""

    name: str
    protocol: str
    files: tuple[str, ...]
    """Vector files of equal options."""
    given: dict[str, object] = field(default_factory=dict)
    """Options beside those of the files."""
    json: bool = True
    """Whether messages are JSON texts; else numbers and lengths in binary."""
    framed: bool = False
    """Whether keys and values are texts behind their lengths (Open Protocol)."""
    verbatim: frozenset[Family] = MYSQL_TEXTS
    """Types whose values are MySQL's own text on this wire."""

    @property
    def options(self) -> SinkOptions:
        file_header = header(self.files[0])
        return sink_options(
            self.protocol, file_header["options"] | {"time-zone": file_header["time_zone"]} | self.given
        )

    @cached_property
    def cases(self) -> list[Case]:
        return [case for file in self.files for case in cases(file)]

    @cached_property
    def messages(self) -> list[Pair]:
        """All recorded messages that are not large."""
        pairs = [pair for case in self.cases for pair in zip(case.keys, case.values, strict=True)]
        return [pair for pair in dict.fromkeys(pairs) if len(pair[1] or b"") < 6000]

    @cached_property
    def context(self) -> DecoderContext:
        """The schemas that rows of Simple need, and the objects of claim checks."""
        place = header(self.files[0])["options"].get("claim-check-storage-uri")
        stored = {
            f"{place}/{name}": base64.b64decode(content)
            for case in self.cases
            for name, content in case.content.get("claim_check", {}).items()
        }
        values = [value for case in self.cases for value in case.values]
        if not protocol_named(self.protocol).traits.external_schemas:
            return DecoderContext(objects=stored)
        batch = Decoder(self.protocol, self.options, DecoderContext(objects=stored)).decode(
            [None] * len(values), values
        )
        bootstraps = [event for _, event in events_of(batch) if isinstance(event, Bootstrap)]
        return DecoderContext(
            objects=stored, schemas={(e.database, e.table, e.schema_version or 0): e.columns for e in bootstraps}
        )

    def decoder(self, **options: object) -> Decoder:
        """A decoder that has met no message."""
        given = {name.replace("_", "-"): value for name, value in options.items()}
        file_header = header(self.files[0])
        sink = sink_options(
            self.protocol, file_header["options"] | {"time-zone": file_header["time_zone"]} | self.given | given
        )
        return Decoder(self.protocol, sink, self.context)

    def decode(self, messages: Sequence[Pair], decoder: Decoder | None = None, **options: object) -> list[list[Event]]:
        """The events of each message; the columns are checked against their types."""
        found: list[list[Event]] = [[] for _ in messages]
        batch = (decoder or self.decoder(**options)).decode(
            [key for key, _ in messages], [value for _, value in messages]
        )
        batch.validate(full=True)
        for number, event in events_of(batch):
            found[number].append(event)
        return found

    def encoded(self, events: Sequence[Event]) -> list[Pair]:
        """The messages that this project makes of events."""
        return [(m.key, m.value) for m in protocol_named(self.protocol).encode(events, self.options)]


WIRES = {
    wire.name: wire
    for wire in (
        Wire(name="craft", protocol="craft", files=("tiflow-craft",), given={"craft-float": "trust"}, json=False,
             verbatim=MYSQL_TEXTS | {Family.FLOAT}),
        Wire(name="open_protocol", protocol="open_protocol", files=("ticdc-open_protocol", "tiflow-open_protocol"),
             framed=True, verbatim=MYSQL_TEXTS | {Family.INTEGER}),
        Wire(name="canal_json", protocol="canal_json", files=("ticdc-canal_json-ext", "tiflow-canal_json-ext"),
             verbatim=MYSQL_TEXTS | {Family.INTEGER}),
        Wire(name="simple_json", protocol="simple", files=("ticdc-simple-json", "tiflow-simple-json"),
             verbatim=MYSQL_TEXTS | {Family.INTEGER}),
        Wire(name="simple_avro", protocol="simple", files=("ticdc-simple-avro", "tiflow-simple-avro"), json=False),
        Wire(name="debezium", protocol="debezium", files=("ticdc-debezium", "tiflow-debezium-ext"),
             verbatim=frozenset({Family.JSON, Family.VECTOR})),
    )
}  # fmt: skip


def spread(messages: Sequence[Any], count: int) -> list[Any]:
    """So many of them, evenly."""
    return [*messages[:: max(1, len(messages) // count)]][:count]


def flat(events: Iterable[list[Event]]) -> list[Event]:
    """The events of messages in one list."""
    return [event for some in events for event in some]
