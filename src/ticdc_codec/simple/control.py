"""Messages that are no rows: WATERMARK, BOOTSTRAP and DDL. They are read before the rows of their batch."""

from __future__ import annotations

import re

from ticdc_codec.batch import Events, checked_tso, checked_watermark
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout
from ticdc_codec.simple.message import BOOTSTRAP, DDL_TYPES, WATERMARK, Envelope
from ticdc_codec.simple.schema import Schemas, layout_of

_ROW_MEMBERS = ("database", "table", "table_id", "schema_version", "claim_check_location", "checksum")
_DATABASE = re.compile(r"(?:CREATE|ALTER|DROP) DATABASE (?:IF (?:NOT )?EXISTS )?`((?:[^`]|``)+)`")


def add_control(message: Envelope, schemas: Schemas, out: Events) -> None:
    """Add the message's event, and learn the schemas in it. Raises DecodeError."""
    if message.type == WATERMARK:
        _check_without(message, *_ROW_MEMBERS, "sql", "table_schema", "pre_table_schema")
        out.resolved(checked_watermark(message.commit_ts))
    elif message.type == BOOTSTRAP:
        _check_without(message, *_ROW_MEMBERS, "sql", "pre_table_schema")
        if message.table_schema is None:
            raise DecodeError("missing_member", "expected tableSchema in a BOOTSTRAP")
        out.bootstrap(schemas.learn(layout_of(message.table_schema)))
    elif message.type in DDL_TYPES:
        _check_without(message, *_ROW_MEMBERS)
        _add_ddl(message, schemas, out)
    else:
        raise DecodeError("unknown_type", f"expected a message of Simple, found type {message.type[:40]!r}")


def _check_without(message: Envelope, *members: str) -> None:
    found = [name for name in members if getattr(message, name) is not None]
    if found or message.handle_key_only or bytes(message.data) or bytes(message.old):
        raise DecodeError("unknown_member", f"expected no {', '.join(found) or 'row'} in a {message.type}")


def _add_ddl(message: Envelope, schemas: Schemas, out: Events) -> None:
    if message.sql is None:
        raise DecodeError("missing_member", f"expected sql in a {message.type}")
    commit_ts = checked_tso(message.commit_ts)
    before, after = (None if s is None else layout_of(s) for s in (message.pre_table_schema, message.table_schema))
    if before is not None:
        schemas.learn(before)
    layout = Layout(_database_of(message.sql), None, (), None) if after is None else schemas.learn(after)
    out.ddl(commit_ts, None, layout, message.sql, message.type)


def _database_of(sql: str) -> str | None:
    """The database that a DDL without a table is about: only the statement, which TiCDC renders itself, names it."""
    found = _DATABASE.match(sql)
    return None if found is None else found[1].replace("``", "`")
