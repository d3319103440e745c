"""The JSON object that every Canal-JSON message is, and what can be wrong with it as JSON.

    id database table pkNames isDdl type es ts sql sqlType mysqlType old data    always (wire.md 1.4.1)
    _tidb {commitTs watermarkTs onlyHandleKey claimCheckLocation rowkey}         enable-tidb-extension (1.4.3)

A member that is not known is refused: the last ones TiCDC added (``onlyHandleKey``, ``claimCheckLocation``) turned a
row's image into a fragment of it, so a reader that passed over them wrote wrong tables. Quarantine can be replayed,
a wrong table cannot.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import Raw

from ticdc_lakehouse.errors import DecodeError

NULL = b"null"


class Extension(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """``_tidb``."""

    commit_ts: int | None = msgspec.field(default=None, name="commitTs")
    watermark_ts: int | None = msgspec.field(default=None, name="watermarkTs")
    only_handle_key: bool = msgspec.field(default=False, name="onlyHandleKey")
    claim_check_location: str | None = msgspec.field(default=None, name="claimCheckLocation")
    row_key: str | None = msgspec.field(default=None, name="rowkey")
    """The row's key in TiKV, base64 (ticdc ``output-row-key``)."""
    table_id: int | None = msgspec.field(default=None, name="tableId")
    """With ``partitionId``: only from tiflow's master for a while (wire.md 1.4.3)."""
    partition_id: int | None = msgspec.field(default=None, name="partitionId")


class Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One message. Raw members repeat from row to row, or are texts that need no second rendering."""

    id: int
    database: str
    table: str
    pk_names: tuple[str, ...] | None = msgspec.field(name="pkNames")
    is_ddl: bool = msgspec.field(name="isDdl")
    type: str
    es: int
    ts: int
    sql: str
    sql_type: Raw = msgspec.field(name="sqlType")
    mysql_type: Raw = msgspec.field(name="mysqlType")
    old: tuple[Raw] | None
    data: tuple[Raw] | None
    tidb: Extension | None = msgspec.field(default=None, name="_tidb")

    def fault(self, reason: str, detail: str, *, offset: int | None = None) -> DecodeError:
        """The error that this message raises; it names the table if the message is one of a table's rows."""
        row = not self.is_ddl and self.table != ""
        where = {"database": self.database, "table": self.table} if row else {}
        return DecodeError(reason, detail, offset=offset, **where)


_ENVELOPE = msgspec.json.Decoder(Envelope)
_BYTE = re.compile(r"\(byte (\d+)\)")

# What msgspec says, and the reason it is to us.
_REASONS = (
    ("truncated", "truncated"),
    ("trailing characters", "trailing_bytes"),
    ("out of range", "out_of_range"),
    ("missing required field", "missing_member"),
    ("unknown field", "unknown_member"),
    ("Expected", "wrong_type"),
)

Unreadable = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the JSON it was asked for."""


def read_envelope(value: bytes) -> Envelope:
    """The message as far as its own members go. Raises DecodeError."""
    try:
        return _ENVELOPE.decode(value)
    except Unreadable as error:
        raise unreadable(error, value) from None


def unreadable(error: BaseException, value: bytes) -> DecodeError:
    """The DecodeError that one of ``Unreadable``, raised for ``value``, means."""
    if isinstance(error, UnicodeDecodeError):
        # The error has the string alone: all of it stands in the value if it has no escapes.
        begin = value.find(error.object)
        place = None if begin < 0 else begin + error.start
        return DecodeError("bad_json", f"expected UTF-8, found byte 0x{error.object[error.start]:02x}", offset=place)
    text = str(error)
    byte = _BYTE.search(text)
    reason = next((ours for theirs, ours in _REASONS if theirs in text), "bad_json")
    return DecodeError(reason, text, offset=int(byte[1]) if byte else None)


def names_of(value: bytes) -> Any:
    """``value`` as plain JSON values. Raises DecodeError ``duplicate_name`` if an object in it has one name twice."""
    return json.loads(value, object_pairs_hook=_unique, parse_int=str)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DecodeError("duplicate_name", f"expected each name once in an object, found {twice!r} again")
    return members


def quotes_of(value: bytes) -> int:
    """Quotes in ``value`` (valid JSON) that open or close a string: two for each name and each text, and no more."""
    if b"\\" in value:
        # A run of backslashes begins with an escape, so pairs from its left are escaped backslashes.
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    return value.count(b'"')
