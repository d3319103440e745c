"""Events into messages, JSON or Avro.

Rows need a schema in advance: those that do not name the version of theirs, as rows of other protocols do not, follow a
BOOTSTRAP of their columns. ``buildTs``, the writer's clock, is the commit time here: encoders have no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Image, Resolved, RowChange
from ticdc_codec.message import Cut, Message, checked, commit_ts_of, compress, limited, with_handle_key_only
from ticdc_codec.mysql_type import Family, MysqlType, is_known, parse_type
from ticdc_codec.options import EncodingFormat, IntegrityCheck, SinkOptions
from ticdc_codec.simple.avro_message import AvroWriter
from ticdc_codec.simple.checksum import NO_CHECKSUM, written
from ticdc_codec.simple.json_table import to_wire
from ticdc_codec.simple.message import BOOTSTRAP, VERSION, WATERMARK, Checksum, Envelope, row_members
from ticdc_codec.simple.schema import LENGTH_WITHOUT_FRACTION, ColumnSchema, DataType, IndexSchema, TableSchema
from ticdc_codec.tidb_codes import ddl_type_name
from ticdc_codec.tso import milliseconds

# orjson allocates more than it fills and gives it back, which costs 4 us for each message that is not freed at once.
_ENCODE = msgspec.json.Encoder().encode


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """Returns one message per event, with a null key.

    Raises ConfigError for an option that is not supported and for an event that Simple cannot carry.
    """
    if options.simple_include_start_ts:
        raise ConfigError("simple-include-start-ts: the start_ts is not in an event, so it cannot be encoded")
    return [*_Encoder(options).messages(events)]


class _Encoder:
    """Encodes one run of events."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        avro = options.encoding_format is EncodingFormat.AVRO
        self._writer = AvroWriter(options) if avro else JsonWriter(options)
        self._versions: dict[tuple[str, str, tuple[Column, ...]], int] = {}
        """Versions of the schemas sent for rows without ``schema_version``."""

    def messages(self, events: Sequence[Event]) -> Iterator[Message]:
        """Yields the messages of the events."""
        row = limited(self._row, self._options)
        for event in events:
            match event:
                case RowChange():
                    if event.schema_version is None:
                        yield from self._schema_of(event)
                    yield row(event)
                case Ddl():
                    yield self._control(_ddl(event), event)
                case Resolved(commit_ts=watermark):
                    yield self._control(_watermark(watermark), event)
                case Bootstrap():
                    yield self._control(_bootstrap(event, 0), event)
                case _:
                    raise ConfigError(f"simple carries rows, schemas, DDL and watermarks, found {type(event).__name__}")

    def _schema_of(self, row: RowChange) -> Iterator[Message]:
        """Yields the schema of a row that does not name one, if it has not been sent."""
        table = (row.database, row.table, row.columns)
        if table not in self._versions:
            version = self._versions[table] = commit_ts_of(row, "simple")
            schema = Bootstrap(database=row.database, table=row.table, columns=row.columns, schema_version=version)
            yield self._control(_bootstrap(schema, row.table_id or 0), schema)

    def _row(self, row: RowChange, cut: Cut | None = None) -> Message:
        version = row.schema_version
        if version is None:
            version = self._versions[row.database, row.table, row.columns]
        checksum = self._checksum(row)
        if cut is None:
            return self._message(self._writer.row(row, commit_ts_of(row, "simple"), version, checksum, None))
        return self._message(
            self._writer.row(with_handle_key_only(row), commit_ts_of(row, "simple"), version, checksum, cut.location)
        )

    def _checksum(self, row: RowChange) -> Checksum | None:
        """Returns the checksum of the whole row, also where only its handle key is sent (wire.md 1.3.4)."""
        if self._options.integrity_check_level is IntegrityCheck.NONE:
            return None
        return NO_CHECKSUM if row.handle_only else written(row, self._options.time_zone)

    def _control(self, envelope: Envelope, event: Event) -> Message:
        return checked(self._message(self._writer.control(envelope)), event, self._options)

    def _message(self, value: bytes) -> Message:
        return Message(key=None, value=compress(value, self._options.large_message_handle_compression))


def _watermark(watermark: int) -> Envelope:
    return Envelope(version=VERSION, type=WATERMARK, commit_ts=watermark, build_ts=milliseconds(watermark))


def _bootstrap(event: Bootstrap, table_id: int) -> Envelope:
    version = event.schema_version or 0
    schema = _table_schema(event.database, event.table, table_id, version, event.columns)
    return Envelope(version=VERSION, type=BOOTSTRAP, commit_ts=0, build_ts=milliseconds(version), table_schema=schema)


def _ddl(event: Ddl) -> Envelope:
    """Only a schema names a DDL's table (wire.md 1.3.3): without ``schema_version`` the text of the DDL has to."""
    schema = None
    if event.schema_version is not None:
        names = (event.database or "", event.table or "")
        schema = _table_schema(*names, 0, event.schema_version, event.columns)
    return Envelope(
        version=VERSION,
        type=ddl_type_name(event.type),
        sql=event.query,
        commit_ts=commit_ts_of(event, "simple"),
        build_ts=event.commit_ms,
        table_schema=schema,
    )


_CHARACTERS = (Family.TEXT, Family.ENUM, Family.SET)


def _table_schema(database: str, table: str, table_id: int, version: int, columns: tuple[Column, ...]) -> TableSchema:
    """Makes a schema of a table's columns only: its key columns become the primary key."""
    key = tuple(column.name for column in columns if column.key)
    index = IndexSchema(name="primary", unique=True, primary=True, nullable=False, columns=key)
    return TableSchema(
        database=database,
        table=table,
        table_id=table_id,
        version=version,
        columns=tuple(_column(column) for column in columns),
        indexes=(index,) if key else (),
    )


def _column(column: Column) -> ColumnSchema:
    if not is_known(column.type.lower()):
        raise ConfigError(f"simple: column {column.name} is of type {column.type[:80]!r}, which TiDB does not have")
    data_type = _data_type(parse_type(column.type))
    return ColumnSchema(name=column.name, data_type=data_type, nullable=not column.key, default=column.default)


def _data_type(kind: MysqlType) -> DataType:
    length, decimal = _sizes(kind)
    charset, collate = ("utf8mb4", "utf8mb4_bin") if kind.family in _CHARACTERS else ("binary", "binary")
    return DataType(
        mysql_type=kind.name,
        charset=charset,
        collate=collate,
        length=length,
        decimal=decimal,
        elements=kind.elements or None,
        unsigned=kind.unsigned,
        zerofill="zerofill" in kind.text,
    )


def _sizes(kind: MysqlType) -> tuple[int, int]:
    """Returns ``length`` and ``decimal``."""
    first, second = (*kind.size, 0, 0)[:2]
    if kind.name in LENGTH_WITHOUT_FRACTION:
        whole = LENGTH_WITHOUT_FRACTION[kind.name]
        return (whole + 1 + first, first) if first else (whole, 0)
    return first, second


class JsonWriter:
    """Writes messages in JSON, in tiflow's order of members. Escapes are msgspec's: the bytes differ, the JSON does
    not."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._conversions: dict[int, tuple[tuple[Column, ...], list[tuple[str, Callable[[str], Any]]]]] = {}

    def control(self, message: Envelope) -> bytes:
        """Returns a message without a row; members that do not apply are left out."""
        return _ENCODE(message)

    def row(
        self, row: RowChange, commit_ts: int, version: int, checksum: Checksum | None, location: str | None
    ) -> bytes:
        """Returns a row's message, ``location`` that of its claim-check object. Images without a column are left
        out."""
        members = row_members(row, commit_ts, version)
        if location is not None:
            members["claimCheckLocation"] = location
        if row.handle_only:
            members["handleKeyOnly"] = True
        if checksum is not None:
            members["checksum"] = checksum
        if row.after:
            members["data"] = self._texts(row.after, row.columns)
        if row.before:
            members["old"] = self._texts(row.before, row.columns)
        return _ENCODE(members)

    def _texts(self, image: Image, columns: tuple[Column, ...]) -> dict[str, Any]:
        texts: dict[str, Any] = dict(image)
        for name, convert in self._conversions_of(columns):
            text = texts.get(name)
            if text is not None:
                texts[name] = convert(text)
        return texts

    def _conversions_of(self, columns: tuple[Column, ...]) -> list[tuple[str, Callable[[str], Any]]]:
        """Returns the columns whose texts change, each with its conversion, by the identity of the columns: rows of a
        table share them."""
        cached = self._conversions.get(id(columns))
        if cached is None:
            conversions = ((column.name, to_wire(column, self._options.time_zone)) for column in columns)
            # It holds the columns, so that no others can have their id.
            needed = [(name, convert) for name, convert in conversions if convert]
            cached = self._conversions[id(columns)] = (columns, needed)
        return cached[1]
