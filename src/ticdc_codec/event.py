"""The events of a changefeed, as Python values and as the columns of one Arrow schema.

A row image maps column names to MySQL's own text of the value, in one form for all protocols:

    NULL                      None
    BINARY, VARBINARY, BLOBs  lower-case hexadecimal digits, two a byte (``unhex`` reads it back)
    BIT                       the bits as a decimal integer
    FLOAT, DOUBLE             the shortest text that reads back to the same float32 or float64; plain digits from 1e-6
                              up to below 1e21, else ``1e-07``, ``1e+21``
    ENUM, SET                 index or bit mask as a decimal integer, or the names: ``Column.by`` says which it is
    YEAR                      four digits
    TIMESTAMP                 text in the feed's server time zone
    everything else           the text that a MySQL client prints

In columns an image is one JSON object text of the same (``before``, ``after``), a handle key the JSON array text of the
key columns' values in the order of their names (``key_order``); handle key texts are equal if and only if the keys are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal

import orjson
import pyarrow as pa

from ticdc_codec.name_case import fold

NamedBy = Literal["index", "name"]
"""ENUM and SET: whether values are numbers or names."""
Image = Mapping[str, str | None]
"""Column name to MySQL's text of the value (module docstring), None for NULL."""


class Kind(StrEnum):
    """The kind of a row of the EVENTS columns."""

    ROW = "row"
    DDL = "ddl"
    RESOLVED = "resolved"
    """A watermark: every change of this partition with commit_ts at or below it has been sent."""
    BOOTSTRAP = "bootstrap"
    """A table's schema, which the Simple protocol sends apart from the rows."""
    ERROR = "error"
    """A whole message that could not be decoded."""


class Op(StrEnum):
    """What a change does to a row, as the message says. Canal-JSON and Simple write the members' names."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as one message describes it."""

    name: str
    type: str
    """MySQL type text as far as the wire knows it: ``bigint unsigned``, ``varchar``, ``enum('a','b')``."""
    key: bool = False
    """True if it belongs to the handle key."""
    flags: int | None = None
    """TiCDC's column flag bits (wire.md 1.2.5), None where the protocol sends none."""
    by: NamedBy | None = None
    """ENUM and SET: ``index`` or ``name``, for values that are numbers or names. None for other types."""
    defect: str | None = None
    """Defects of the writer that may have changed the values (``writer_defects``), such as ``craft-float``, separated
    by spaces; None without defects."""
    default: str | None = None
    """The DEFAULT of a DATE, DATETIME, TIME or TIMESTAMP if it is a constant, as TiDB stores it: a TIMESTAMP in UTC.
    Only in DDL events, where the protocol sends it (Simple)."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A table's columns as messages list them. Decoders use one object for all rows with the same list."""

    database: str | None
    table: str | None
    columns: tuple[Column, ...]
    text: str | None
    """``columns`` as JSON (``columns_text``), None for an event that has none (DDL)."""
    version: int | None = None
    """Schema version (the TSO of the table's last schema change), where the protocol sends one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row's change."""

    op: Op
    database: str
    table: str
    commit_ts: int | None
    """None only from Canal-JSON without the TiDB extension."""
    commit_ms: int
    """Commit time in milliseconds since the Unix epoch."""
    before: Image | None
    after: Image | None
    columns: tuple[Column, ...]
    handle_key: str | None = None
    """JSON array text of the handle key's values (of ``after``, or of a deleted row), None if the wire names no key."""
    old_handle_key: str | None = None
    """The key before an update that changed it, else None."""
    table_id: int | None = None
    """Physical table (partition) id, where the wire carries it."""
    handle_only: bool = False
    """True if the images hold only the handle key because the row was too large for a message."""
    schema_version: int | None = None
    """Version of the schema with which the row was decoded, where the protocol sends one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddl:
    """A schema change."""

    database: str | None
    table: str | None
    """None for a statement about a database."""
    commit_ts: int | None
    commit_ms: int
    query: str
    type: str | None
    """The type as the message has it: TiDB's number (Craft, Open) or a name such as ``CREATE``."""
    columns: tuple[Column, ...] = ()
    """The table's columns after it, where the protocol sends them."""
    schema_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A watermark."""

    commit_ts: int
    """0 to 2^64 - 1, unsigned: a watermark may lie above every commit_ts that a change can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """A table's schema, which the Simple protocol sends again and again (wire.md 1.3.5)."""

    database: str
    table: str
    columns: tuple[Column, ...] = ()
    schema_version: int | None = None
    """TSO of the table's last schema change; rows name the schema that they need by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A message that did not decode: the fields of the DecodeError."""

    reason: str
    detail: str
    offset: int | None
    database: str | None
    table: str | None


_UNSIGNED = (1 << 64) - 1

Event = RowChange | Ddl | Resolved | Bootstrap | Failure

EVENTS = pa.schema(
    [
        pa.field("message", pa.int32(), nullable=False),
        pa.field("index", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("op", pa.string()),
        pa.field("commit_ts", pa.int64()),
        pa.field("commit_time", pa.timestamp("us", tz="UTC")),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("table_id", pa.int64()),
        pa.field("handle_key", pa.string()),
        pa.field("old_handle_key", pa.string()),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("columns", pa.string()),
        pa.field("schema_version", pa.int64()),
        pa.field("handle_only", pa.bool_()),
        pa.field("query", pa.string()),
        pa.field("ddl_type", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("error_offset", pa.int64()),
    ]
)
"""Columns that every decoder returns. ``message`` is the message's index in the batch, ``index`` the event's index
in its message; both begin at 0.

``commit_ts`` has the 64 bits of the unsigned number, as Spark has no unsigned type: a watermark of 2^63 and more is
negative here (``commit_time`` is right, ``Resolved`` has the number itself). Row changes and DDLs stay below 2^63. Gold
reads ``commit_ts > W`` and so never uses a negative one.
"""


def columns_text(columns: tuple[Column, ...]) -> str:
    """Returns the columns as JSON array text, ``[{"name": …, "type": …, "key": true, "flags": 3, "by": …, "defect":
    …, "default": …}]``.

    Members that do not apply are left out.
    """
    return orjson.dumps([_column_members(column) for column in columns]).decode()


def key_order(names: Iterable[str]) -> list[str]:
    """Returns a handle key's columns in the order of the values in its text: by name, as TiDB compares names, so
    that another spelling of a name does not change the order.

    No other order is always the same: messages list columns in the table's order (Canal-JSON's pkNames too), which
    MODIFY COLUMN … FIRST changes, or sorted (Open Protocol of tiflow, wire.md 1.2.3); an index may have another one.
    """
    return sorted(names, key=fold)


def key_positions(columns: Sequence[Column]) -> tuple[int, ...]:
    """Returns the positions of the handle key's columns among these, in the order of ``key_order``."""
    positions = {column.name: position for position, column in enumerate(columns) if column.key}
    return tuple(positions[name] for name in key_order(positions))


def _column_members(column: Column) -> dict[str, object]:
    members: dict[str, object] = {"name": column.name, "type": column.type}
    if column.key:
        members["key"] = True
    optional = (
        ("flags", column.flags),
        ("by", column.by),
        ("defect", column.defect),
        ("default", column.default),
    )
    return members | {name: value for name, value in optional if value is not None}


@lru_cache(maxsize=1024)
def columns_from(text: str | None) -> tuple[Column, ...]:
    """Inverse of ``columns_text``; no columns for None. Equal texts return one object, which rows share."""
    return () if text is None else tuple(Column(**members) for members in orjson.loads(text))


def events_of(batch: pa.RecordBatch) -> Iterator[tuple[int, Event]]:
    """Yields the events of a batch of EVENTS columns, each with the index of its message."""
    for members in batch.to_pylist():
        yield members["message"], _event_of(members)


def _event_of(members: Mapping[str, object]) -> Event:
    """Returns one row of the EVENTS columns as a typed event."""
    match Kind(str(members["kind"])):
        case Kind.ROW:
            return _row_of(members)
        case Kind.DDL:
            return _ddl_of(members)
        case Kind.RESOLVED:
            return Resolved(commit_ts=_UNSIGNED & int(str(members["commit_ts"])))
        case Kind.BOOTSTRAP:
            return Bootstrap(
                database=str(members["database"]),
                table=str(members["table"]),
                columns=columns_from(_text(members["columns"])),
                schema_version=_integer(members["schema_version"]),
            )
        case Kind.ERROR:
            return Failure(
                reason=str(members["reason"]),
                detail=str(members["detail"]),
                offset=_integer(members["error_offset"]),
                database=_text(members["database"]),
                table=_text(members["table"]),
            )


def _row_of(members: Mapping[str, object]) -> RowChange:
    return RowChange(
        op=Op(str(members["op"])),
        database=str(members["database"]),
        table=str(members["table"]),
        commit_ts=_integer(members["commit_ts"]),
        commit_ms=_milliseconds(members["commit_time"]),
        before=_image(members["before"]),
        after=_image(members["after"]),
        columns=columns_from(_text(members["columns"])),
        handle_key=_text(members["handle_key"]),
        old_handle_key=_text(members["old_handle_key"]),
        table_id=_integer(members["table_id"]),
        handle_only=members["handle_only"] is True,
        schema_version=_integer(members["schema_version"]),
    )


def _ddl_of(members: Mapping[str, object]) -> Ddl:
    return Ddl(
        database=_text(members["database"]),
        table=_text(members["table"]),
        commit_ts=_integer(members["commit_ts"]),
        commit_ms=_milliseconds(members["commit_time"]),
        query=str(members["query"]),
        type=_text(members["ddl_type"]),
        columns=columns_from(_text(members["columns"])),
        schema_version=_integer(members["schema_version"]),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _integer(value: object) -> int | None:
    return None if value is None else int(str(value))


def _milliseconds(value: object) -> int:
    return int(pa.scalar(value, pa.timestamp("us", tz="UTC")).value) // 1000


def _image(text: object) -> Image | None:
    return None if text is None else orjson.loads(str(text))
