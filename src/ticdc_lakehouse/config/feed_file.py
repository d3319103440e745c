"""The keys of a feed file: their types, defaults and descriptions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from ticdc_codec.options import Text, Zone
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.alarm import Alarm
from ticdc_lakehouse.config.gold import Days, Gold
from ticdc_lakehouse.config.kafka import Kafka
from ticdc_lakehouse.config.live import Live
from ticdc_lakehouse.config.table_filter import TableFilter


class Bronze(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages as they came. Without a retention they are kept without end."""

    retention_days: Annotated[
        Days | None,
        Meta(
            description="`ticdc-lake maintain` deletes messages that were landed more days than this before the "
            "watermark, once gold has published their changes, up to the first message in quarantine ([what it "
            "keeps](retention.md))."
        ),
    ] = None


class Silver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events. Without a retention they are kept without end."""

    retention_days: Annotated[
        Days | None,
        Meta(
            description="`ticdc-lake maintain` deletes events, all but DDLs, that are more days than this older than "
            "the watermark, as far as no blocked table and no message in quarantine needs them ([what it "
            "keeps](retention.md)). An older export cannot be loaded."
        ),
    ] = None


LARGEST_MESSAGE = 16 * 1024 * 1024
MOST_BYTES = 2**31 - 1
"""What Kafka and Spark can hold in one value."""


class ProtocolName(str):
    """A protocol by its name in `ticdc_codec.protocols.PROTOCOLS`; a file may also spell it as a sink-uri does."""

    __slots__ = ()

    expected: ClassVar[str] = f"one of {', '.join(name.replace('_', '-') for name in PROTOCOLS)}"
    json_schema: ClassVar[dict[str, Any]] = {
        "enum": list(dict.fromkeys(spelling for name in PROTOCOLS for spelling in (name.replace("_", "-"), name)))
    }

    @classmethod
    def parse(cls, value: object) -> ProtocolName:
        """Returns the name. Raises ValueError."""
        if not isinstance(value, str) or value.replace("-", "_") not in PROTOCOLS:
            raise ValueError
        return cls(value.replace("-", "_"))


class FeedFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A feed file of the TiCDC lakehouse: one changefeed's topics, and how they become tables."""

    protocol: Annotated[
        ProtocolName,
        Meta(
            description="As in the changefeed's sink-uri; `-` and `_` are the same. Once silver has decoded messages, "
            "another protocol is refused, since the key of a row may have other texts in it: use a new feed."
        ),
    ]
    time_zone: Annotated[
        Zone,
        Meta(
            description="Time zone of the TiCDC server (`cdc server --tz`). TIMESTAMP values and keys depend on it. "
            "Craft, Canal-JSON and Open Protocol do not carry it; Simple names its zone and Debezium sends UTC, and "
            "gold shows their times in this one. Once the feed was read, another zone is refused: use a new feed."
        ),
    ]
    options: Annotated[
        dict[str, Any],
        Meta(description="[What else the sink-uri says](#options), without its secrets."),
    ] = field(default_factory=dict)
    kafka: Annotated[Kafka, Meta(description="[Where the messages are](#kafka).")]
    tables: Annotated[TableFilter, Meta(description="[Which tables gold carries](#tables).")] = field(
        default_factory=TableFilter
    )
    bronze: Annotated[Bronze, Meta(description="[How long messages are kept](#bronze).")] = field(
        default_factory=Bronze
    )
    silver: Annotated[Silver, Meta(description="[How long events are kept](#silver).")] = field(default_factory=Silver)
    gold: Annotated[Gold, Meta(description="[Gold's tables](#gold).")] = field(default_factory=Gold)
    live: Annotated[Live, Meta(description="[Properties of the live tables](#live).")] = field(default_factory=Live)
    alarm: Annotated[Alarm, Meta(description="[When a run ends with an alarm](#alarm).")] = field(default_factory=Alarm)
    schema_file: Annotated[
        Text | None,
        Meta(
            description="A file beside this one with CREATE TABLE of the tables that existed before the changefeed: "
            "SHOW CREATE TABLE's or Dumpling's, after `USE <database>;`. It defines only tables that gold does not "
            "have yet. A table that gets a name which another one had before (by RENAME, or by CREATE after DROP) is "
            "not the file's: `load` an [export](loading.md)."
        ),
    ] = None
    source: Annotated[
        Text | None,
        Meta(
            description="The TiDB that the changefeed is of: `mysql://USER@HOST:4000/?secret=SCOPE/KEY`, for "
            "[`verify-source`](verification.md) and `on_handle_key_only: source`. The user needs only SELECT."
        ),
    ] = None
    starting_offsets: Annotated[
        Literal["earliest", "latest"], Meta(description="Where the first run begins in the topics.")
    ] = "earliest"
    max_message_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_BYTES,
            description="A larger message is quarantined as `message_too_large`, undecoded.",
        ),
    ] = LARGEST_MESSAGE
