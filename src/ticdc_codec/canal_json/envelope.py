"""The JSON object that every Canal-JSON message is, and what can be wrong with it as JSON.

    id database table pkNames isDdl type es ts sql sqlType mysqlType old data    always (wire.md 1.4.1)
    _tidb {commitTs watermarkTs onlyHandleKey claimCheckLocation rowkey}         enable-tidb-extension (1.4.3)

A member that is not known is refused: the last ones TiCDC added (``onlyHandleKey``, ``claimCheckLocation``) turned a
row's image into a fragment of it, so a reader that passed over them wrote wrong tables. Quarantine can be replayed,
a wrong table cannot.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import Unreadable, names_of, unreadable

_NULL = b"null"


class RowExtension(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """``_tidb`` of a row."""

    commit_ts: int | None = msgspec.field(default=None, name="commitTs")
    only_handle_key: bool = msgspec.field(default=False, name="onlyHandleKey")
    claim_check_location: str | None = msgspec.field(default=None, name="claimCheckLocation")
    row_key: str | None = msgspec.field(default=None, name="rowkey")
    """The row's key in TiKV, base64 (ticdc ``output-row-key``)."""
    table_id: int | None = msgspec.field(default=None, name="tableId")
    """With ``partitionId``: only from tiflow's master for a while (wire.md 1.4.3)."""
    partition_id: int | None = msgspec.field(default=None, name="partitionId")


class Extension(RowExtension, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """``_tidb``."""

    watermark_ts: int | None = msgspec.field(default=None, name="watermarkTs")


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

    def fault(self, reason: str, detail: str) -> DecodeError:
        """Returns the error that this message raises; it names the table if the message is one of a table's rows."""
        row = not self.is_ddl and self.table != ""
        where = {"database": self.database, "table": self.table} if row else {}
        return DecodeError(reason, detail, offset=None, **where)


_ENVELOPE = msgspec.json.Decoder(Envelope)


def read_envelope(value: bytes) -> Envelope:
    """Returns the message as far as its own members go. Raises DecodeError."""
    try:
        return _ENVELOPE.decode(value)
    except Unreadable as error:
        raise unreadable(error, value) from None


def check_no_row(value: bytes, envelope: Envelope) -> None:
    """Raises DecodeError unless a DDL or a watermark has no row and no columns (wire.md 1.4.1)."""
    names_of(value)
    if envelope.data is not None or envelope.old is not None or envelope.pk_names is not None:
        raise DecodeError("wrong_type", f"expected null for data, old and pkNames of a {envelope.type}")
    if bytes(envelope.sql_type) != _NULL or bytes(envelope.mysql_type) != _NULL:
        raise DecodeError("wrong_type", f"expected null for sqlType and mysqlType of a {envelope.type}")
