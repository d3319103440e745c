"""The section ``gold`` of a feed file: names, retention, and the policy of each table."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from ticdc_lakehouse.config.table_filter import TablePattern, fits
from ticdc_lakehouse.policy import (
    NAME_TEMPLATE,
    RETENTION_DAYS,
    SHORTEST_RETENTION,
    Mode,
    OnDrop,
    OnIrregular,
    OnUnsupportedDdl,
    Policy,
)

LONGEST_DAYS = 36_500
"""A century: what reaches back before the calendar's first day cannot be counted."""
TOMBSTONE_DAYS = 7

Days = Annotated[int, Meta(ge=SHORTEST_RETENTION, le=LONGEST_DAYS)]
"""A retention. Delta keeps no less than a week."""
_NameTemplate = Annotated[
    str,
    Meta(
        pattern=r"^([a-z0-9_]|\{(feed|database|table)\})*\{table\}([a-z0-9_]|\{(feed|database|table)\})*$(?!\n)",
        extra={
            "expected": "letters a-z, digits, _ and the placeholders {feed}, {database}, {table}, with {table} in it"
        },
    ),
]


class TableKeys(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The policy of some tables. A key that is not given is as for the feed."""

    on_drop: Annotated[
        OnDrop | None,
        Meta(
            description="What happens to a table that TiDB dropped. `drop`: it is dropped from gold, and `as_of` reads "
            "it at earlier TSOs; `keep`: it stays until another table has its name."
        ),
    ] = None
    on_unsupported_ddl: Annotated[
        OnUnsupportedDdl | None,
        Meta(
            description="What happens to a table whose DDL [cannot be followed](ddl.md). `block`: it is blocked at its "
            "last correct state; `ignore`: the DDL is skipped, and the table is blocked where rows no longer fit its "
            "columns."
        ),
    ] = None
    on_irregular: Annotated[
        OnIrregular | None,
        Meta(
            description="How dates are shown that Spark's types do not have, such as 0000-00-00. `null`: NULL, with "
            "the exact text in `_ticdc_irregular`; `text`: columns of dates and times have MySQL's texts; `block`: the "
            "table is blocked before the first of them."
        ),
    ] = None


class Gold(TableKeys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gold's tables: which changes they hold, their names, and the policy of each table."""

    mode: Annotated[
        Mode,
        Meta(
            description="`watermarks`: all tables are as TiDB held them at one TSO; `eventual`, for feeds without "
            "watermarks: the newest commit of each key that has arrived, at no common TSO."
        ),
    ] = Mode.WATERMARKS
    tombstone_days: Annotated[
        int,
        Meta(
            ge=1,
            le=LONGEST_DAYS,
            description="Mode `eventual` alone: for how many days a deleted row is remembered, so that an older change "
            "does not bring it back.",
        ),
    ] = TOMBSTONE_DAYS
    retention_days: Annotated[
        Days,
        Meta(
            description="For how many days a state stays readable (`as_of`) after the next one; `ticdc-lake maintain` "
            "deletes what is older."
        ),
    ] = RETENTION_DAYS
    name: Annotated[_NameTemplate, Meta(description="Names of tables and views.")] = NAME_TEMPLATE
    tables: Annotated[
        dict[TablePattern, TableKeys],
        Meta(
            description="`on_drop`, `on_unsupported_ddl` and `on_irregular` for the tables of a pattern, such as "
            "`crm.tmp_*: {on_drop: keep}`. The first pattern that fits counts; a key that it leaves out is as for the "
            "feed.",
            extra_json_schema={"propertyNames": TablePattern.json_schema},
        ),
    ] = field(default_factory=dict)

    def policy(self, database: str, table: str) -> Policy:
        """The policy of one table."""
        own = next((keys for pattern, keys in self.tables.items() if fits(pattern, database, table)), self)
        given = {name: getattr(own, name) or getattr(self, name) for name in TableKeys.__struct_fields__}
        return Policy(**{name: value for name, value in given.items() if value is not None})
