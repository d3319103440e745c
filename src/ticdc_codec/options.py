"""The sink-uri options of a changefeed that its bytes do not show (wire.md 1.6), by their documented names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from os import PathLike
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ticdc_codec.errors import ConfigError


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
    """Keep the bytes' value, mark the column, let no table take it."""
    TRUST = "trust"
    """The writer is known to be older than 8.2: the value is right."""
    NULL = "null"
    """Read every FLOAT as NULL."""


class Trust(StrEnum):
    """What to do with values that a defect of the writer may have falsified (``codec.doubt``)."""

    REFUSE = "refuse"
    """No table takes them: it stops before them."""
    TRUST = "trust"
    """They are taken as they are; the column's comment says what may be wrong."""


class EncodingFormat(StrEnum):
    """``encoding-format`` of Simple."""

    JSON = "json"
    AVRO = "avro"


class IntegrityCheck(StrEnum):
    """``integrity-check-level``: whether rows carry checksums."""

    NONE = "none"
    CORRECTNESS = "correctness"


class Corruption(StrEnum):
    """``corruption-handle-level``: what to do with a row whose checksum is not that of its values."""

    WARN = "warn"
    """Take the row all the same."""
    ERROR = "error"
    """Refuse it."""


_UTC = ZoneInfo("UTC")


def _only(*protocols: str, default: Any, least: int = 1) -> Any:
    """A field that these protocols have; ``least`` is the least number that it may be."""
    return field(default=default, metadata={"protocols": protocols, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Field names are the option names with ``_`` for ``-``; ``protocols`` in a field's metadata limits where it may
    stand."""

    time_zone: ZoneInfo = _UTC
    """Time zone of the TiCDC server, in which TIMESTAMP texts are written."""
    max_batch_size: int = 16
    """Rows a message, at most; encoders obey it."""
    max_message_bytes: int = 10 * 1024 * 1024
    """Encoders obey it where they gather rows, and with any large-message-handle-option but ``none``."""
    large_message_handle_option: LargeMessage = _only(
        "canal_json", "open_protocol", "simple", default=LargeMessage.NONE
    )
    large_message_handle_compression: Compression = _only(
        "canal_json", "debezium", "open_protocol", "simple", default=Compression.NONE
    )
    claim_check_storage_uri: str | None = _only("canal_json", "open_protocol", "simple", default=None)
    claim_check_raw_value: bool = _only("canal_json", "simple", default=False)
    delete_only_output_handle_key_columns: bool = False
    output_raw_change_event: bool = False
    enable_tidb_extension: bool = _only("canal_json", "debezium", default=False)
    content_compatible: bool = _only("canal_json", default=False)
    only_output_updated_columns: bool = _only("canal_json", "open_protocol", default=False)
    output_old_value: bool = _only("debezium", "open_protocol", default=True)
    output_row_key: bool = _only("canal_json", default=False)
    encoding_format: EncodingFormat = _only("simple", default=EncodingFormat.JSON)
    send_bootstrap_interval_in_sec: int = _only("simple", default=120, least=0)
    """With the next three: when and where a table's schema is sent again; 0 turns it off (wire.md 1.3.5). Decoders take
    it whenever it comes."""
    send_bootstrap_in_msg_count: int = _only("simple", default=10_000, least=0)
    send_bootstrap_to_all_partition: bool = _only("simple", default=True)
    send_all_bootstrap_at_start: bool = _only("simple", default=False)
    integrity_check_level: IntegrityCheck = _only("simple", default=IntegrityCheck.NONE)
    """Encoders obey it; decoders check every checksum that a message has."""
    corruption_handle_level: Corruption = _only("simple", default=Corruption.ERROR)
    """Not TiCDC's own default, which lets such rows pass with a line in its log."""
    debezium_disable_schema: bool = _only("debezium", default=False)
    debezium_include_start_ts: bool = _only("debezium", default=False)
    craft_float: CraftFloat = _only("craft", default=CraftFloat.REFUSE)
    debezium_decimal: Trust = _only("debezium", default=Trust.TRUST)
    """This and the next are lossy by design of the wire: a person who chose it knows, and every column says so."""
    debezium_default: Trust = _only("debezium", default=Trust.TRUST)
    open_flags: Trust = _only("open_protocol", default=Trust.REFUSE)
    simple_column_order: Trust = _only("simple", default=Trust.REFUSE)


def sink_options(protocol: str, given: Mapping[str, object]) -> SinkOptions:
    """The options of one feed. Values may be typed or text, as a sink-uri has them.

    Raises ConfigError for an option that the protocol does not have and for a value that is none of its values.
    """
    known = _options_of(protocol)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"{name}: no option of protocol {protocol}; expected one of {', '.join(sorted(known))}")
        values[known[name].name] = _typed(name, known[name], value)
    return SinkOptions(**values)


def option_names(protocol: str) -> frozenset[str]:
    """The names of the options that a protocol has."""
    return frozenset(_options_of(protocol))


def _options_of(protocol: str) -> dict[str, Field[Any]]:
    own = (entry for entry in fields(SinkOptions) if protocol in entry.metadata.get("protocols", (protocol,)))
    return {entry.name.replace("_", "-"): entry for entry in own}


_WORDS: tuple[type[StrEnum], ...] = (
    Compression,
    LargeMessage,
    CraftFloat,
    Trust,
    EncodingFormat,
    IntegrityCheck,
    Corruption,
)


def _typed(name: str, option: Field[Any], value: object) -> object:
    kind = str(option.type)
    if kind == "bool":
        return _boolean(name, value)
    if kind == "int":
        return _count(name, value, option.metadata.get("least", 1))
    if kind == "ZoneInfo":
        return _zone(name, value)
    words = {word.__name__: word for word in _WORDS}
    return _word(name, words[kind], value) if kind in words else _text(name, value)


def _boolean(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name}: expected true or false, found {value!r}")
    return text == "true"


def _count(name: str, value: object, least: int) -> int:
    if not str(value).isdecimal() or int(str(value)) < least:
        expected = "a positive whole number" if least else "0 or a positive whole number"
        raise ConfigError(f"{name}: expected {expected}, found {value!r}")
    return int(str(value))


def _zone(name: str, value: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"{name}: expected an IANA time zone such as Asia/Shanghai, found {value!r}") from None


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | PathLike) or not str(value).strip():
        raise ConfigError(f"{name}: expected text, found {value!r}")
    return str(value)


def _word(name: str, words: type[StrEnum], value: object) -> StrEnum:
    try:
        return words("null" if value is None else str(value))  # None: YAML reads the word null so
    except ValueError:
        raise ConfigError(f"{name}: expected one of {', '.join(words)}, found {value!r}") from None
