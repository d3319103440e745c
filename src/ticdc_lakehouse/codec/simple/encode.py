"""Events into messages, JSON or Avro.

Rows need a schema in advance: those that do not name the version of theirs, as rows of other protocols do not, follow a
BOOTSTRAP of their columns. ``buildTs``, the writer's clock, is the commit time here: encoders have no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ticdc_lakehouse.codec.compression import compress
from ticdc_lakehouse.codec.ddl_word import ddl_word
from ticdc_lakehouse.codec.message import Message
from ticdc_lakehouse.codec.options import EncodingFormat, LargeMessage, SinkOptions
from ticdc_lakehouse.codec.simple.avro.encode import AvroWriter
from ticdc_lakehouse.codec.simple.describe import schema_of
from ticdc_lakehouse.codec.simple.json.encode import JsonWriter
from ticdc_lakehouse.codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Envelope
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Bootstrap, Column, Ddl, Event, Resolved, RowChange
from ticdc_lakehouse.tso import milliseconds

Writer = JsonWriter | AvroWriter


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """One message an event, null key.

    Raises ConfigError for an option that is not supported and for an event that Simple cannot carry.
    """
    if options.large_message_handle_option is not LargeMessage.NONE:
        raise ConfigError("large-message-handle-option: encoding simple supports only none")
    avro = options.encoding_format is EncodingFormat.AVRO
    writer: Writer = AvroWriter(options, events) if avro else JsonWriter(options)
    compression = options.large_message_handle_compression
    return [Message(key=None, value=compress(value, compression)) for value in _values(events, writer)]


def _values(events: Sequence[Event], writer: Writer) -> Iterator[bytes]:
    versions: dict[tuple[str, str, tuple[Column, ...]], int] = {}
    for event in events:
        match event:
            case RowChange(schema_version=None):
                key = (event.database, event.table, event.columns)
                if key not in versions:
                    versions[key] = _commit_ts(event)
                    yield writer.control(_bootstrap(_described(event, versions[key]), event.table_id or 0))
                yield writer.row(event, _commit_ts(event), versions[key])
            case RowChange(schema_version=int(version)):
                yield writer.row(event, _commit_ts(event), version)
            case Ddl():
                yield writer.control(_ddl(event))
            case Resolved(commit_ts=watermark):
                build_ts = milliseconds(watermark)
                yield writer.control(Envelope(version=VERSION, type=WATERMARK, commit_ts=watermark, build_ts=build_ts))
            case Bootstrap():
                yield writer.control(_bootstrap(event, 0))
            case _:
                raise ConfigError(f"simple carries rows, schemas, DDL and watermarks, found {type(event).__name__}")


def _commit_ts(event: RowChange | Ddl) -> int:
    if event.commit_ts is None:
        raise ConfigError("simple: an event without commit_ts cannot be encoded")
    return event.commit_ts


def _described(row: RowChange, version: int) -> Bootstrap:
    return Bootstrap(database=row.database, table=row.table, columns=row.columns, schema_version=version)


def _bootstrap(event: Bootstrap, table_id: int) -> Envelope:
    version = event.schema_version or 0
    schema = schema_of(event.database, event.table, table_id, version, event.columns)
    return Envelope(version=VERSION, type=BOOTSTRAP, commit_ts=0, build_ts=milliseconds(version), table_schema=schema)


def _ddl(event: Ddl) -> Envelope:
    schema = None
    if event.schema_version is not None:
        names = (event.database or "", event.table or "")
        schema = schema_of(*names, 0, event.schema_version, event.columns)
    return Envelope(
        version=VERSION,
        type=ddl_word(event.type),
        sql=event.query,
        commit_ts=_commit_ts(event),
        build_ts=event.commit_ms,
        table_schema=schema,
    )
