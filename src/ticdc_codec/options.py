"""The sink-uri options of a changefeed that its bytes do not show (wire.md 1.6), by their documented names.

``typed`` reads one value of an option, or of a key of a file, as its type. A mistake says what is expected and what was
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from os import PathLike
from typing import Annotated, Any, ClassVar, Protocol, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta, inspect

from ticdc_codec.errors import ConfigError, suggestion


class Compression(StrEnum):
    """``large-message-handle-compression``."""

    NONE = "none"
    LZ4 = "lz4"
    SNAPPY = "snappy"


class LargeMessage(StrEnum):
    """``large-message-handle-option``."""

    NONE = "none"
    HANDLE_KEY_ONLY = "handle-key-only"
    CLAIM_CHECK = "claim-check"


class CraftFloat(StrEnum):
    """What to do with Craft's FLOAT, which TiCDC 8.2 and later write wrongly (wire.md 8.1)."""

    REFUSE = "refuse"
    """Keep the bytes' value and mark the column; a table with such a column is blocked."""
    TRUST = "trust"
    """The writer is known to be older than 8.2: the value is right."""
    NULL = "null"
    """Read every FLOAT as NULL."""


class Trust(StrEnum):
    """What to do with values that a writer defect may have changed (``ticdc_codec.writer_defects``)."""

    REFUSE = "refuse"
    """Their table is blocked before them."""
    TRUST = "trust"
    """They are written as they are; the column's comment says what may be wrong."""


class EncodingFormat(StrEnum):
    """``encoding-format`` of Simple."""

    JSON = "json"
    AVRO = "avro"


class IntegrityCheck(StrEnum):
    """``integrity-check-level``: whether rows carry checksums."""

    NONE = "none"
    CORRECTNESS = "correctness"


class Corruption(StrEnum):
    """``corruption-handle-level``: what to do with a row that does not match its checksum."""

    WARN = "warn"
    """The row is decoded."""
    ERROR = "error"
    """The row is quarantined."""


_UTC = ZoneInfo("UTC")
_JSON = ("canal_json", "open_protocol", "simple")
Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]


def option(description: str, *protocols: str, default: Any) -> Any:
    """Returns a field of SinkOptions that these protocols have, or all of them where none is named."""
    return field(default=default, metadata={"description": description, "protocols": protocols})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a changefeed's sink-uri says. Names are the documented ones with ``_`` for ``-``."""

    time_zone: Zone = option(
        "Time zone of the TiCDC server, in which TIMESTAMP texts are written; in a feed file the key `time_zone`.",
        default=_UTC,
    )
    max_batch_size: Count = option("Most rows in a message. Encoders obey it.", default=16)
    max_message_bytes: Count = option(
        "Largest message. Encoders obey it where they gather rows, and with any large-message-handle-option but none.",
        default=10 * 1024 * 1024,
    )
    large_message_handle_option: LargeMessage = option(
        "What TiCDC sends in place of a message that is too large.", *_JSON, default=LargeMessage.NONE
    )
    large_message_handle_compression: Compression = option(
        "How values are compressed.", *_JSON, "debezium", default=Compression.NONE
    )
    claim_check_storage_uri: Text | None = option(
        "Folder or URI of the claim-check objects, which pyarrow opens.", *_JSON, default=None
    )
    claim_check_raw_value: bool = option(
        "Whether a claim-check object is the value's bytes, without JSON around key and value.",
        "canal_json",
        "simple",
        default=False,
    )
    delete_only_output_handle_key_columns: bool = option(
        "Whether a DELETE has only the handle key columns. Simple and Debezium send all.", default=False
    )
    output_raw_change_event: bool = option(
        "Whether an UPDATE that changes a key is one event, not DELETE and INSERT.", default=False
    )
    enable_tidb_extension: bool = option(
        "Whether messages carry commit_ts and watermarks. Without it a feed needs `gold.mode: eventual`.",
        "canal_json",
        "debezium",
        default=False,
    )
    content_compatible: bool = option(
        "Whether messages name full MySQL types; it turns only-output-updated-columns on.", "canal_json", default=False
    )
    only_output_updated_columns: bool = option(
        "Whether the image before an UPDATE has only the changed columns.", "canal_json", "open_protocol", default=False
    )
    output_old_value: bool = option(
        "Whether an UPDATE has the image before it.", "debezium", "open_protocol", default=True
    )
    output_row_key: bool = option("Whether messages carry the row's key as `rowkey`.", "canal_json", default=False)
    encoding_format: EncodingFormat = option("How messages are encoded.", "simple", default=EncodingFormat.JSON)
    send_bootstrap_interval_in_sec: CountOrZero = option(
        "After how many seconds a table's schema is sent again (wire.md 1.3.5); 0: never. Decoders read it whenever it "
        "comes.",
        "simple",
        default=120,
    )
    send_bootstrap_in_msg_count: CountOrZero = option(
        "After how many messages a table's schema is sent again (wire.md 1.3.5); 0: never.", "simple", default=10_000
    )
    send_bootstrap_to_all_partition: bool = option(
        "Whether every partition gets a table's schema, or only the first.", "simple", default=True
    )
    send_all_bootstrap_at_start: bool = option(
        "Whether the schemas of all tables are sent when the changefeed starts.", "simple", default=False
    )
    integrity_check_level: IntegrityCheck = option(
        "Whether encoders write checksums. Decoders check every checksum that a message has.",
        "simple",
        default=IntegrityCheck.NONE,
    )
    corruption_handle_level: Corruption = option(
        "What becomes of a row that does not match its checksum; warn, TiCDC's own default: it is decoded.",
        "simple",
        default=Corruption.ERROR,
    )
    debezium_disable_schema: bool = option("Whether messages leave their schema out.", "debezium", default=False)
    debezium_include_start_ts: bool = option(
        "Whether messages carry the transaction's start_ts.", "debezium", default=False
    )
    simple_include_start_ts: bool = option(
        "Whether rows in JSON carry their transaction's start_ts.", "simple", default=False
    )
    craft_float: CraftFloat = option(
        "Not of TiCDC. FLOAT, which TiCDC 8.2 and later write wrongly (wire.md 8.1); refuse: a table with a FLOAT "
        "column is blocked; trust: the writer is older, the value is right; null: every FLOAT is NULL, except in a "
        "key, whose table stays blocked.",
        "craft",
        default=CraftFloat.REFUSE,
    )
    debezium_decimal: Trust = option(
        "Not of TiCDC. Long decimals, which Debezium's wire rounds; refuse: their table is blocked; trust: the "
        "column's comment says it.",
        "debezium",
        default=Trust.TRUST,
    )
    debezium_decimal_key: Trust = option(
        "Not of TiCDC. Long decimals in a key, which Debezium's wire rounds, so that two rows may be one; refuse: "
        "their table is blocked; trust: their values have 15 digits at most.",
        "debezium",
        default=Trust.REFUSE,
    )
    debezium_default: Trust = option(
        "Not of TiCDC. NULLs of columns with a default, which Debezium's wire shows as the default; refuse: their "
        "table is blocked; trust: the column's comment says it.",
        "debezium",
        default=Trust.TRUST,
    )
    open_flags: Trust = option(
        "Not of TiCDC. Columns whose flags may be those from before a DDL (wire.md 8.4); refuse: their table is "
        "blocked; trust: the column's comment says it.",
        "open_protocol",
        default=Trust.REFUSE,
    )
    simple_column_order: Trust = option(
        "Not of TiCDC. Columns that a DDL put FIRST or AFTER, whose values may be those of others; refuse: their table "
        "is blocked; trust: the column's comment says it.",
        "simple",
        default=Trust.REFUSE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as documentation shows it."""

    name: str
    """As in a sink-uri, with ``-``."""
    kind: Any
    """Type of its values, as `typed` converts them."""
    default: Any
    description: str
    protocols: tuple[str, ...]
    """The protocols that have it; empty: all."""


@cache
def options_of(protocol: str | None = None) -> Mapping[str, Option]:
    """Returns the options of a protocol, or all, by their names."""
    kinds = get_type_hints(SinkOptions, include_extras=True)
    options = (
        Option(name=member.name.replace("_", "-"), kind=kinds[member.name], default=member.default, **member.metadata)
        for member in fields(SinkOptions)
    )
    return {option.name: option for option in options if protocol in (None, *(option.protocols or (protocol,)))}


def sink_options(protocol: str, given: Mapping[str, object]) -> SinkOptions:
    """Returns the options of one feed. Values may be typed or text, as a sink-uri has them.

    Raises ConfigError for an option that the protocol does not have and for an invalid value.
    """
    known = options_of(protocol)
    values = {}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"{name}: no option of {protocol.replace('_', '-')}; {suggestion(name, known)}")
        values[name.replace("-", "_")] = _typed(known[name], value)
    return SinkOptions(**values)


def _typed(option: Option, value: object) -> Any:
    try:
        return typed(option.kind, str(value) if isinstance(value, PathLike) else value, strict=False)
    except ConfigError as error:
        raise ConfigError(f"{option.name}: {error}") from None


def option_names(protocol: str) -> frozenset[str]:
    """Returns the names of the options that a protocol has."""
    return frozenset(options_of(protocol))


def has_watermarks(protocol: str, options: SinkOptions) -> bool:
    """True if a changefeed with these options sends watermarks."""
    return options.enable_tidb_extension or "enable-tidb-extension" not in option_names(protocol)


Text = Annotated[str, Meta(pattern=r"\S")]
"""A text that is not blank."""
Zone = Annotated[ZoneInfo, Meta(extra={"expected": "an IANA time zone such as Asia/Shanghai"})]
_ZONES_OF_THE_MACHINE = ("Factory", "localtime", "posixrules")
"""Files beside the zones, with the machine's own setting or with none."""


class Parsed(Protocol):
    """A type for values that msgspec's own constraints cannot describe."""

    expected: ClassVar[str]
    """What a value is, for messages and documentation."""
    json_schema: ClassVar[dict[str, Any]]
    """What JSON Schema can say of a value."""

    @classmethod
    def parse(cls, value: object) -> object:
        """Returns the value. Raises ValueError, which may say more exactly what is expected."""


def typed(kind: Any, value: object, *, strict: bool = True) -> Any:
    """Returns the value as ``kind``: a type of msgspec, a time zone, or a type that is ``Parsed``.

    ``strict=False`` also takes numbers and booleans that are written as text. None is no value but the word ``null`` of
    an enum that has it, since YAML reads it so. Raises ConfigError.
    """
    if value is None and allows_null(kind):
        value = "null"
    try:
        if value is not None:
            return msgspec.convert(value, kind, strict=strict, dec_hook=_parse)
        reason = ""
    except msgspec.ValidationError as error:
        reason = str(error.__cause__ or "")
    raise ConfigError(f"expected {reason or expected(kind)}, found {value!r}")


def allows_null(kind: Any) -> bool:
    """True if ``kind`` is an enum that has the word ``null``."""
    info, _ = _described(kind)
    return isinstance(info, inspect.EnumType) and "null" in [member.value for member in info.cls]


def expected(kind: Any) -> str:
    """Returns what a value of this type is, in words."""
    info, description = _described(kind)
    if description:
        return description
    match info:
        case inspect.CustomType():
            return str(bare(kind).expected)
        case inspect.EnumType(cls=members):
            return f"one of {', '.join(member.value for member in members)}"
        case inspect.LiteralType(values=words):
            return f"one of {', '.join(map(str, words))}"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least, le=None):
            return "a positive whole number" if least else "0 or a positive whole number"
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case _:
            return "text"


def bare(kind: Any) -> Any:
    """Returns the type without annotations and without ``| None``."""
    if get_origin(kind) is Annotated:
        return bare(get_args(kind)[0])
    alternatives = [each for each in get_args(kind) if each is not type(None)]
    return bare(alternatives[0]) if len(alternatives) < len(get_args(kind)) else kind


def _described(kind: Any) -> tuple[inspect.Type, str]:
    """Returns what msgspec knows of a type, without metadata and ``| None``; and what its metadata says is expected."""
    info, description = inspect.type_info(kind), ""
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            description = description or (info.extra or {}).get("expected", "")
            info = info.type
        else:
            info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    return info, description


def _parse(kind: Any, value: object) -> object:
    if isinstance(value, kind):
        return value
    if kind is not ZoneInfo:
        return kind.parse(value)
    if value in _ZONES_OF_THE_MACHINE:
        raise ValueError("an IANA time zone such as Asia/Shanghai, which is the same on every machine")
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError from None
