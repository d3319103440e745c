"""Why a table is blocked: values to branch on and to store. `StopReason.__str__` makes the sentence for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

import orjson

from ticdc_codec.tso import with_time


class StopKind(StrEnum):
    """What blocks a table."""

    UNSUPPORTED_DDL = "unsupported_ddl"
    """A DDL that gold does not support."""
    AWAITS_ROWS = "awaits_rows"
    """A DDL made the table, empty, with columns that are unknown: its first rows tell them."""
    AMBIGUOUS_TABLE = "ambiguous_table"
    """A DDL whose text does not tell of which database one of its tables is, and several tables have its name."""
    DROPPED = "dropped"
    """TiDB dropped it, and the policy is to keep its last rows (``on_drop: keep``)."""
    QUARANTINED = "quarantined"
    """A message of the table is in quarantine."""
    LATE_ROWS = "late_rows"
    """Rows arrived below the published watermark."""
    LATE_DDL = "late_ddl"
    """A DDL arrived below the published watermark."""
    INCOMPATIBLE_ROWS = "incompatible_rows"
    """Rows that do not fit the table's definition, or that have none."""
    IRREGULAR_VALUE = "irregular_value"
    """A value that no Spark type can represent, and the policy is to block (``on_irregular: block``)."""
    RESERVED_COLUMN = "reserved_column"
    """The table has a column whose name is reserved for gold, or two that are one in Spark."""
    RESTORED = "restored"
    """Rows came after its DROP, and no statement that makes it anew."""
    NOT_IN_GOLD = "not_in_gold"
    """It was blocked when TiDB dropped it, so its rows at the DROP are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReason:
    """Why a table is blocked."""

    kind: StopKind
    detail: str = ""
    """The cause: a column, a row, a message."""
    commit_ts: int | None = None
    """commit_ts of the unsupported DDL or of the DROP."""
    query: str | None = None
    """Text of the unsupported DDL."""
    can_skip: bool = False
    """True if skipping the DDL unblocks the table; False where the DDL creates it."""
    needs_override: bool = False
    """True if the table stays blocked until an override; False if the next run tries again."""
    named_at: int | None = None
    """commit_ts of the RENAME since which a table that awaits its rows has its name; None: since the DDL."""

    @property
    def of_ddl(self) -> bool:
        """True if a DDL that gold cannot follow blocks the table, or one that was not sent."""
        return self.kind in (StopKind.UNSUPPORTED_DDL, StopKind.AMBIGUOUS_TABLE, StopKind.RESTORED)

    def to_json(self) -> str:
        """Returns all fields as one JSON object."""
        return orjson.dumps(asdict(self)).decode()

    @staticmethod
    def from_json(text: str) -> StopReason:
        """Inverse of `to_json`."""
        members = orjson.loads(text)
        return StopReason(**{**members, "kind": StopKind(members["kind"])})

    def __str__(self) -> str:
        """One line for people: what happened, and the ways out unless the detail names them."""
        match self.kind:
            case StopKind.UNSUPPORTED_DDL | StopKind.AMBIGUOUS_TABLE | StopKind.AWAITS_ROWS:
                return _unsupported_ddl(self)
            case StopKind.DROPPED:
                return f"TiDB dropped it at {self.commit_ts} (on_drop: keep)"
            case StopKind.NOT_IN_GOLD:
                return "it was blocked when TiDB dropped it"
            case _:
                return self.detail


def _unsupported_ddl(stop: StopReason) -> str:
    ways_out = [
        *(["`ticdc-lake table skip-ddl` skips it"] if stop.can_skip else []),
        "`ticdc-lake load` goes on from an export taken since",
        "DROP and CREATE in TiDB starts the table anew",
    ]
    at, query = with_time(stop.commit_ts or 0), " ".join((stop.query or "").split())
    return f"unsupported DDL at {at}: {stop.detail}: {query}; ways out: {'; '.join(ways_out)}"
