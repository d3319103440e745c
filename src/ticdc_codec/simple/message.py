"""The members of a Simple message, which are those of its JSON object (wire.md 1.3.1); Avro is converted to them.

Members that do not apply are left out. An unknown member is refused: the last ones that TiCDC added
(``handleKeyOnly``, ``claimCheckLocation``) change what a row's image holds. TIMESTAMPs name a time zone in both
formats: ``in_zone`` converts their texts to the feed's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Raw

from ticdc_codec.batch import Events, checked_tso, checked_watermark
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op, RowChange
from ticdc_codec.json_text import Unreadable, unreadable
from ticdc_codec.local_time import is_own
from ticdc_codec.simple.schema import Schemas, TableSchema, layout_of, name_of, with_defaults

VERSION = 1
WATERMARK = "WATERMARK"
BOOTSTRAP = "BOOTSTRAP"
IMAGES = {Op.INSERT: (True, False), Op.UPDATE: (True, True), Op.DELETE: (False, True)}
"""By operation, true if a row has ``data``, and true if it has ``old``."""
DDL_TYPES = frozenset({"CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY"})


_NOTHING = Raw(b"")


class Checksum(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Checksums of a row after and before its change; 0 is no checksum (wire.md 1.3.4)."""

    version: int
    corrupted: bool
    current: int
    previous: int


class Envelope(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One message; ``data`` and ``old`` are empty where it has no such image."""

    version: int
    database: str | None = None
    table: str | None = None
    table_id: int | None = msgspec.field(default=None, name="tableID")
    type: str
    sql: str | None = None
    commit_ts: int = msgspec.field(name="commitTs")
    start_ts: int | None = msgspec.field(default=None, name="startTs")
    """TSO at which the row's transaction began: only from ticdc with ``simple-include-start-ts``; not used."""
    build_ts: int = msgspec.field(name="buildTs")
    """The writer's clock in milliseconds since the Unix epoch; not used."""
    schema_version: int | None = msgspec.field(default=None, name="schemaVersion")
    claim_check_location: str | None = msgspec.field(default=None, name="claimCheckLocation")
    handle_key_only: bool = msgspec.field(default=False, name="handleKeyOnly")
    checksum: Checksum | None = None
    data: Raw = _NOTHING
    old: Raw = _NOTHING
    table_schema: TableSchema | None = msgspec.field(default=None, name="tableSchema")
    pre_table_schema: TableSchema | None = msgspec.field(default=None, name="preTableSchema")

    @property
    def is_row(self) -> bool:
        """True if it is a row change."""
        return self.type in Op.__members__

    def fault(self, reason: str, detail: str) -> DecodeError:
        """Returns the error that this message raises; it names the table if the message is one of a table's rows."""
        where = {"database": self.database, "table": self.table} if self.is_row else {}
        return DecodeError(reason, detail, offset=None, **where)


_ENVELOPE = msgspec.json.Decoder(Envelope)


def read_envelope(value: bytes) -> Envelope:
    """Returns the message as far as its own members go. Raises DecodeError."""
    try:
        envelope = _ENVELOPE.decode(value)
    except Unreadable as error:
        raise unreadable(error, value) from None
    if envelope.version != VERSION:
        raise envelope.fault("unknown_version", f"expected version {VERSION}, found {envelope.version}")
    return envelope


def row_members(row: RowChange, commit_ts: int, version: int) -> dict[str, Any]:
    """Returns the members of a row's message that every row has, in tiflow's order; ``version`` is that of its
    schema."""
    return {
        "version": VERSION,
        "database": row.database,
        "table": row.table,
        "tableID": row.table_id or 0,
        "type": row.op.upper(),
        "commitTs": commit_ts,
        "buildTs": row.commit_ms,
        "schemaVersion": version,
    }


_ROW_MEMBERS = ("database", "table", "table_id", "start_ts", "schema_version", "claim_check_location", "checksum")
_DATABASE = re.compile(r"(?:CREATE|ALTER|DROP) DATABASE (?:IF (?:NOT )?EXISTS )?`((?:[^`]|``)+)`")


def add_control(message: Envelope, schemas: Schemas, out: Events) -> None:
    """Adds the event of a message that is no row (wire.md 1.3.3), and learns the schemas in it. Raises DecodeError."""
    if message.type == WATERMARK:  # wire.md 2.1
        _check_without(message, *_ROW_MEMBERS, "sql", "table_schema", "pre_table_schema")
        out.resolved(checked_watermark(message.commit_ts))
    elif message.type == BOOTSTRAP:  # a table's schema, again and again; its commitTs is 0 (wire.md 1.3.2, 1.3.5)
        _check_without(message, *_ROW_MEMBERS, "sql", "pre_table_schema")
        if message.table_schema is None:
            raise DecodeError("missing_member", "expected tableSchema in a BOOTSTRAP")
        out.bootstrap(schemas.learn(_layout_of_bootstrap(message.table_schema)))
    elif message.type in DDL_TYPES:
        _check_without(message, *_ROW_MEMBERS)
        _add_ddl(message, schemas, out)
    else:
        raise DecodeError("unknown_type", f"expected a message of Simple, found type {message.type[:40]!r}")


def _layout_of_bootstrap(schema: TableSchema) -> Layout:
    """Returns the layout of a schema. Raises DecodeError that names the table: nobody but its rows needs the schema."""
    try:
        return layout_of(schema)
    except DecodeError as error:
        error.database, error.table = schema.database, schema.table
        raise


def _check_without(message: Envelope, *members: str) -> None:
    present = [name for name in members if getattr(message, name) is not None]
    if present or message.handle_key_only or bytes(message.data) or bytes(message.old):
        raise DecodeError("unknown_member", f"expected no {', '.join(present) or 'row'} in a {message.type}")


def _add_ddl(message: Envelope, schemas: Schemas, out: Events) -> None:
    if message.sql is None:
        raise DecodeError("missing_member", f"expected sql in a {message.type}")
    commit_ts = checked_tso(message.commit_ts)
    # A database's DDL, or a view's, has no schemas or empty ones (wire.md 1.3.3).
    before, after = (layout_of(s) if s and s.table else None for s in (message.pre_table_schema, message.table_schema))
    # Rows from before the DDL may come after it: they need the schema before it too (wire.md 1.3.3, 1.3.5). Of two with
    # one name and version the one after it holds.
    if before is not None and not (after and name_of(before) == name_of(after)):
        schemas.learn(before)
    if after is None or message.table_schema is None:
        layout = Layout(_database_of(message), None, (), None)
    else:
        layout = with_defaults(schemas.learn(after), message.table_schema)
    out.ddl(commit_ts, None, layout, message.sql, message.type)


def _database_of(message: Envelope) -> str | None:
    """Returns the database that a DDL without a table is about: mostly only the statement, which TiCDC renders itself,
    names it."""
    match = _DATABASE.match(message.sql or "")
    if match is not None:
        return match[1].replace("``", "`")
    return message.table_schema.database or None if message.table_schema else None


_ZERO = "0000-00-00 00:00:00"
TIMESTAMP_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
"""The texts of a TIMESTAMP, also for Arrow's regular expressions."""
_TIMESTAMP = re.compile(TIMESTAMP_PATTERN)


def in_zone(text: str, location: str, zone: ZoneInfo) -> str:
    """Returns the text of a time in zone ``location``, converted to ``zone``; the zero timestamp is no instant and
    stays.

    Raises DecodeError for a text that is no TIMESTAMP, for a zone that is not known (``Local``), and, when clocks are
    set back, for a text that is two instants there, or that would be read as the other one in ``zone``: such a feed has
    to name TiCDC's zone.
    """
    if not _TIMESTAMP.fullmatch(text):
        raise _no_timestamp(text)
    if location == zone.key or text.startswith(_ZERO):
        return text
    utc = instant(text, location)
    local = utc.astimezone(zone)
    if not is_own(utc, local):
        raise DecodeError("bad_value", f"expected a TIMESTAMP that has a text of its own in {zone}, found {text!r}")
    return _text(local, text)


def instant(text: str, location: str) -> datetime:
    """Returns the one instant that a text of this zone means, in UTC. Raises DecodeError as ``in_zone`` does."""
    zone = _zone(location)
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        local = datetime.max
    # In datetime's first and last year another zone's time may be out of its range; TIMESTAMP has 1970 to 2038.
    if not _TIMESTAMP.fullmatch(text) or not datetime.min.year < local.year < datetime.max.year:
        raise _no_timestamp(text)
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first != second:
        raise DecodeError("bad_value", f"expected a TIMESTAMP that is one instant in {location}, found {text!r}")
    return first


def _no_timestamp(text: str) -> DecodeError:
    return DecodeError("bad_value", f"expected a TIMESTAMP, found {text[:40]!r}")


def utc_text(text: str, location: str) -> str:
    """Returns the text of a TIMESTAMP at ``location`` in UTC; a zero date unchanged."""
    return text if text.startswith(_ZERO) else _text(instant(text, location), text)


def _text(time: datetime, like: str) -> str:
    """Returns a time as MySQL prints it, with as many fraction digits as ``like``."""
    whole = time.isoformat(" ", "microseconds")
    return whole[: len(like)] if "." in like else whole[:19]


@lru_cache(maxsize=64)
def _zone(location: str) -> ZoneInfo:
    try:
        return ZoneInfo(location)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DecodeError("bad_value", f"expected an IANA time zone in location, found {location[:80]!r}") from None
