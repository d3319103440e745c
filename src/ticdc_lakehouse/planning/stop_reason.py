"""Why a table is blocked: values to branch on and to store, and the reasons that several modules give. Sentences for
people are made where they are printed, by `StopReason.__str__`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType

import orjson

from ticdc_codec.tso import with_time


class StopKind(StrEnum):
    """What blocks a table."""

    UNSUPPORTED_DDL = "unsupported_ddl"
    """A DDL that gold does not support."""
    AWAITS_ROWS = "awaits_rows"
    """A DDL made the table, empty, with columns that are unknown: its first rows show them."""
    AMBIGUOUS_TABLE = "ambiguous_table"
    """A DDL whose text does not show of which database one of its tables is, and several tables have its name."""
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
    """Rows arrived after its DROP, and no statement that creates it again."""
    NOT_IN_GOLD = "not_in_gold"
    """It was blocked when TiDB dropped it, so its rows at the DROP are unknown."""


class WayOut(StrEnum):
    """What an operator can do to unblock a table."""

    SKIP_DDL = "skip_ddl"
    IGNORE_DDLS = "ignore_ddls"
    LOAD_EXPORT = "load_export"
    RECREATE = "recreate"
    RESUME = "resume"
    RESUME_WITHOUT = "resume_without"
    SET_HANDLE_KEY_POLICY = "set_handle_key_policy"
    ASK_TIDB_AGAIN = "ask_tidb_again"
    REPLAY_OR_DISMISS = "replay_or_dismiss"
    AWAIT_SCHEMA = "await_schema"
    LOAD_AND_DISMISS = "load_and_dismiss"


_TEXTS: Mapping[WayOut, str] = MappingProxyType(
    {
        WayOut.SKIP_DDL: "`ticdc-lake table skip-ddl` skips it",
        WayOut.IGNORE_DDLS: "gold.on_unsupported_ddl: ignore, and `ticdc-lake table resume`, skip it and later ones",
        WayOut.LOAD_EXPORT: "`ticdc-lake load` continues from an export taken since",
        WayOut.RECREATE: "DROP and CREATE in TiDB starts the table anew",
        WayOut.RESUME: "`ticdc-lake table resume` goes back and applies the late rows and DDLs",
        WayOut.RESUME_WITHOUT: "`ticdc-lake table resume` continues without the late rows and DDLs",
        WayOut.SET_HANDLE_KEY_POLICY: "gold.on_handle_key_only: source reads such rows from TiDB, null leaves NULLs",
        WayOut.ASK_TIDB_AGAIN: "the next run asks TiDB again",
        WayOut.REPLAY_OR_DISMISS: "`ticdc-lake quarantine list` shows it, `replay` and `dismiss` end it",
        WayOut.AWAIT_SCHEMA: "the run that brings its schema decodes it: TiCDC sends that by itself if "
        "send-bootstrap-interval-in-sec and send-bootstrap-in-msg-count are above 0",
        WayOut.LOAD_AND_DISMISS: "if a DDL changed the table since, its schema may never come: `load` an export taken "
        "since, and dismiss the message",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReason:
    """Why a table is blocked."""

    kind: StopKind
    detail: str = ""
    """What caused it: a column, a row, a message. Names the way out only where that is a setting of this cause."""
    ways_out: tuple[WayOut, ...] = ()
    """What unblocks the table, the best first. An unsupported DDL that creates the table cannot be skipped."""
    commit_ts: int | None = None
    """commit_ts of the unsupported DDL or of the DROP, or of the last late DDL. Rows that a table awaits come after
    it."""
    query: str | None = None
    """Text of the unsupported DDL."""
    needs_override: bool = False
    """True if the table stays blocked until an override; False if the next run tries again."""
    named_at: int | None = None
    """commit_ts of the RENAME since which a table that awaits its rows has its name; None: since the DDL."""
    first_cause: str = ""
    """What blocked the table first, if ``detail`` quotes it."""

    @property
    def of_ddl(self) -> bool:
        """True if a DDL that gold cannot follow blocks the table, or one that was not sent."""
        return self.kind in (StopKind.UNSUPPORTED_DDL, StopKind.AMBIGUOUS_TABLE, StopKind.RESTORED)

    @property
    def unfollowed(self) -> int:
        """commit_ts of the last late DDL that no resume follows; 0 if there is none."""
        is_late = self.kind in (StopKind.LATE_DDL, StopKind.LATE_ROWS)
        return (self.commit_ts or 0) if is_late and WayOut.RESUME not in self.ways_out else 0

    @property
    def quotable(self) -> str:
        """What another reason quotes of this one: the first cause, since each that quotes the one before would be
        longer."""
        return self.first_cause or self.cause

    def to_json(self) -> str:
        """Returns all fields as one JSON object."""
        return orjson.dumps(asdict(self)).decode()

    @staticmethod
    def from_json(text: str) -> StopReason:
        """Inverse of `to_json`."""
        members = orjson.loads(text)
        ways_out = tuple(map(WayOut, members["ways_out"]))
        return StopReason(**{**members, "kind": StopKind(members["kind"]), "ways_out": ways_out})

    @property
    def can_skip(self) -> bool:
        """True if skipping the DDL unblocks the table."""
        return WayOut.SKIP_DDL in self.ways_out

    @property
    def cause(self) -> str:
        """What happened, in one line without the ways out: another reason may quote it."""
        match self.kind:
            case StopKind.UNSUPPORTED_DDL | StopKind.AMBIGUOUS_TABLE | StopKind.AWAITS_ROWS:
                at, query = with_time(self.commit_ts or 0), " ".join((self.query or "").split())
                return f"unsupported DDL at {at}: {self.detail}: {query}"
            case StopKind.DROPPED:
                return f"TiDB dropped it at {self.commit_ts} (on_drop: keep)"
            case StopKind.NOT_IN_GOLD:
                return "it was blocked when TiDB dropped it"
            case _:
                return self.detail

    def __str__(self) -> str:
        """Returns one line for people: the cause and the ways out."""
        ways_out = "; ".join(_TEXTS[way_out] for way_out in self.ways_out)
        return f"{self.cause}; ways out: {ways_out}" if ways_out else self.cause


def unsupported_ddl(
    commit_ts: int, query: str, detail: str, *, can_skip: bool = True, needs_override: bool = True
) -> StopReason:
    """Returns the reason of a table that is blocked before a DDL. ``can_skip``: skipping the DDL unblocks the table,
    which is impossible where the DDL creates it."""
    return StopReason(
        kind=StopKind.UNSUPPORTED_DDL,
        commit_ts=commit_ts,
        query=query,
        detail=detail,
        ways_out=(WayOut.LOAD_EXPORT, *((WayOut.SKIP_DDL,) if can_skip else ()), WayOut.RECREATE),
        needs_override=needs_override,
    )


def incompatible(detail: str, *ways_out: WayOut) -> StopReason:
    """Returns the reason of a table that is blocked before rows which it cannot hold."""
    return StopReason(kind=StopKind.INCOMPATIBLE_ROWS, detail=detail, ways_out=ways_out or (WayOut.LOAD_EXPORT,))


UNKNOWN_COLUMNS = incompatible("the table's columns are unknown until its rows show them")


def unmergeable_late_row(cause: str) -> StopReason:
    """Returns the reason of a table that cannot take a late row, which no later window reads again."""
    return StopReason(
        kind=StopKind.LATE_ROWS,
        detail=f"a late row cannot be merged: {cause}",
        ways_out=(WayOut.LOAD_EXPORT, WayOut.RESUME_WITHOUT),
        needs_override=True,
    )


def restored(dropped_at: int) -> StopReason:
    """Returns the reason of a table whose rows continue after its DROP: Debezium sends no RECOVER and no FLASHBACK
    TABLE (wire.md 8.8), and no protocol sends FLASHBACK DATABASE. If a table that gold never saw got the name instead,
    its rows are unknown, too."""
    detail = (
        f"its rows continue after TiDB dropped it at {with_time(dropped_at)}, and no CREATE TABLE came: TiDB restored "
        "it, or gave its name to a table that gold does not have"
    )
    return StopReason(
        kind=StopKind.RESTORED,
        detail=detail,
        ways_out=(WayOut.LOAD_EXPORT, WayOut.RECREATE),
        commit_ts=dropped_at,
        needs_override=True,
    )
