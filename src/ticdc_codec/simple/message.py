"""What a Simple message says, in either encoding, and the JSON object that it is (wire.md 1.3.1).

Members that do not apply are left out. One that is not known is refused: the last ones TiCDC added (``handleKeyOnly``,
``claimCheckLocation``) turned a row's image into a fragment of it.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op
from ticdc_codec.json_text import Unreadable, unreadable
from ticdc_codec.simple.schema import TableSchema

VERSION = 1
WATERMARK = "WATERMARK"
BOOTSTRAP = "BOOTSTRAP"
OPS = {"INSERT": Op.INSERT, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE}
IMAGES = {Op.INSERT: (True, False), Op.UPDATE: (True, True), Op.DELETE: (False, True)}
"""Whether a row has ``data`` and ``old``."""
DDL_TYPES = frozenset({"CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY"})


_NOTHING = Raw(b"")


class Checksum(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Checksums of a row after and before its change; 0 is none (wire.md 1.3.4)."""

    version: int
    corrupted: bool
    current: int
    previous: int


class Envelope(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One message; ``data`` and ``old`` are empty where there are none."""

    version: int
    database: str | None = None
    table: str | None = None
    table_id: int | None = msgspec.field(default=None, name="tableID")
    type: str
    sql: str | None = None
    commit_ts: int = msgspec.field(name="commitTs")
    build_ts: int = msgspec.field(name="buildTs")
    """The writer's clock in milliseconds since the Unix epoch: nothing is read from it."""
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
        """Whether it is a row change."""
        return self.type in OPS

    def fault(self, reason: str, detail: str, *, offset: int | None = None) -> DecodeError:
        """The error that this message raises; it names the table if the message is one of a table's rows."""
        where = {"database": self.database, "table": self.table} if self.is_row else {}
        return DecodeError(reason, detail, offset=offset, **where)


_ENVELOPE = msgspec.json.Decoder(Envelope)


def read_envelope(value: bytes) -> Envelope:
    """The message as far as its own members go. Raises DecodeError."""
    try:
        envelope = _ENVELOPE.decode(value)
    except Unreadable as error:
        raise unreadable(error, value) from None
    if envelope.version != VERSION:
        raise envelope.fault("unknown_version", f"expected version {VERSION}, found {envelope.version}")
    return envelope
