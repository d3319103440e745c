"""How far silver's events were searched for schemas: a file beside the checkpoint of silver's stream.

Without the file, as after the checkpoint was lost and silver decodes everything again, the search begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.sql.text import time_literal

_FILE = "schemas_learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPosition:
    """Up to where silver's events were searched."""

    batch: int = 0
    """The newest bronze batch that silver had decoded. A lost checkpoint of bronze can add messages to it, but to none
    before it."""
    replayed_at: datetime | None = None
    """The newest replay from quarantine, which has the batch of its message; None if there was none."""
    schemas: int = 0
    """How many schemas were known then, and tried on the rows that waited."""

    @property
    def later_sql(self) -> str:
        """SQL: true if an event may have come since. Delta skips files by it."""
        seen = self.replayed_at
        replayed = "replayed_at IS NOT NULL" if seen is None else f"replayed_at > {time_literal(seen)}"
        return f"(batch >= {self.batch} OR {replayed})"


def read(checkpoint: str, schemas: int) -> SchemaPosition:
    """Returns the position up to which silver was searched. It is the beginning if the file is missing or unreadable,
    and if it says that more schemas were known than the ``schemas`` that are known now: some were lost. The file is
    then set to the beginning as well, so that a run that dies before the next `write` changes nothing."""
    try:
        text = stream_checkpoint.read_beside(checkpoint, _FILE) or ""
        position = msgspec.json.decode(text, type=SchemaPosition)
    except (UnicodeDecodeError, msgspec.DecodeError):
        return SchemaPosition()
    if position.schemas > schemas:
        # Written down: a run that dies may have learned as many again, and not the same ones.
        write(checkpoint, position := SchemaPosition())
    return position


def write(checkpoint: str, position: SchemaPosition) -> None:
    """Stores a position for the next run."""
    stream_checkpoint.write_beside(checkpoint, _FILE, msgspec.json.encode(position).decode())
