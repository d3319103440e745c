"""The section ``gold`` of a feed file: names, retention, and the policy of each table."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from ticdc_codec.options import Zone
from ticdc_lakehouse.config.table_filter import TablePattern, fits
from ticdc_lakehouse.policy import (
    NAME_TEMPLATE,
    RETENTION_DAYS,
    SCHEMA_TEMPLATE,
    SHORTEST_RETENTION,
    Mode,
    OnComputedDefault,
    OnDrop,
    OnHandleKeyOnly,
    OnIrregular,
    OnUnsupportedDdl,
    Policy,
    Views,
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


_SchemaTemplate = Annotated[
    str,
    Meta(
        pattern=r"^([a-z0-9_]|\{(feed|database)\})*$(?!\n)",
        extra={"expected": "letters a-z, digits, _ and the placeholders {feed} and {database}"},
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
            description="What happens to a table whose DDL [cannot be followed](ddl.md). `block`: it is blocked at "
            "its last correct state; `ignore`: the DDL is skipped, unless rows would be missing or unreadable without "
            "it; such a DDL blocks the table, and so do rows that no longer fit its columns. A table that is blocked "
            "already continues after `ticdc-lake table resume`."
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

    on_computed_default: Annotated[
        OnComputedDefault | None,
        Meta(
            description="What old rows get from an ADD COLUMN whose DEFAULT only TiDB computed, such as "
            "CURRENT_TIMESTAMP ([how](computed-defaults.md)). `learn`: NULL, marked as pending, until a change of "
            "an old row shows the one value; `estimate`: the commit's time until then; `block`: the table is blocked."
        ),
    ] = None
    on_handle_key_only: Annotated[
        OnHandleKeyOnly | None,
        Meta(
            description="What happens to a row that was too large for a message, which holds its handle key columns "
            "only (`large-message-handle-option: handle-key-only`). `block`: the table is blocked before it; `source`: "
            "it is read from TiDB, the feed's `source`, as it was at its commit_ts; `null`: its other columns are NULL "
            "until a whole image comes (`handle_only` in silver's events). A DELETE needs only the key."
        ),
    ] = None


class Gold(TableKeys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gold's tables: which changes they hold, their names, and the policy of each table."""

    mode: Annotated[
        Mode,
        Meta(
            description="`watermarks`: all tables are as TiDB held them at one TSO; `eventual`, for feeds without "
            "watermarks: the newest commit of each key that has arrived, at no common TSO. It cannot change once the "
            "feed has published."
        ),
    ] = Mode.WATERMARKS
    tombstone_days: Annotated[
        int,
        Meta(
            ge=1,
            le=LONGEST_DAYS,
            description="Only in mode `eventual`: a deleted row is remembered until a run reads only changes that were "
            "committed more days than this after the deletion. An older change that is read later still brings it "
            "back.",
        ),
    ] = TOMBSTONE_DAYS
    retention_days: Annotated[
        Days,
        Meta(
            description="For how many days a state stays readable (`as_of`) after the next one; `ticdc-lake maintain` "
            "deletes what is older."
        ),
    ] = RETENTION_DAYS
    views: Annotated[
        Views,
        Meta(
            description="What analysts read. `pinned`: views in `gold`, which show all tables at the published "
            "watermark; `none`: no views, the [live tables](../README.md#query) themselves, whose newest version may "
            "be ahead of it. A feed may change from one to the other: the next run of gold drops or makes the views."
        ),
    ] = Views.PINNED
    schema: Annotated[
        _SchemaTemplate,
        Meta(
            description="Schemas of tables and views, by what follows the layers' names: `{database}` puts the table "
            "`orders` of `shop` into `live_shop`, its view into `gold_shop`, its changes into `silver_shop`. Empty: "
            "`live`, `gold` and `silver`. On Databricks [the bundle makes them](databricks.md#schemas-of-a-feed). "
            "It stays as it is once the feed has published."
        ),
    ] = SCHEMA_TEMPLATE
    ddl_time_zone: Annotated[
        Zone | None,
        Meta(
            description="Time zone of the sessions that run DDL. No message carries it; with it the DEFAULT '…' of an "
            "added TIMESTAMP column is certain, and an ALTER of a TIMESTAMP to another type, or back, is followed."
        ),
    ] = None
    name: Annotated[
        _NameTemplate,
        Meta(
            description="Names of tables and views. A name that two tables would get is refused; under the default "
            "template the second one's gets a hash. The same holds for one that ends in `__data`, `__dropped` or "
            "`__renaming`, as live tables are called while they are made, after their DROP and while they are renamed. "
            "Without `{feed}`, a name of another feed's table is free once that feed and what it left are "
            "[removed](databricks.md#remove-a-feed). After a change a table keeps its name until its next RENAME, "
            "TRUNCATE, CREATE or `load`: then it gets the new one, and the view of the old one goes, with its "
            "privileges."
        ),
    ] = NAME_TEMPLATE
    tables: Annotated[
        dict[TablePattern, TableKeys],
        Meta(
            description="The keys `on_…` for the tables of a pattern, such as `crm.tmp_*: {on_drop: keep}`. The first "
            "pattern that fits counts; a key that it leaves out is as for the feed.",
            extra_json_schema={"propertyNames": TablePattern.json_schema},
        ),
    ] = field(default_factory=dict)

    @property
    def reads_source(self) -> bool:
        """True if the policy of some table is that rows are read from TiDB."""
        return OnHandleKeyOnly.SOURCE in (
            self.on_handle_key_only,
            *(keys.on_handle_key_only for keys in self.tables.values()),
        )

    @property
    def shows_texts(self) -> bool:
        """True if the policy of some table is that its view shows irregular values as texts."""
        return OnIrregular.TEXT in (self.on_irregular, *(keys.on_irregular for keys in self.tables.values()))

    def policy(self, database: str, table: str) -> Policy:
        """Returns the policy of one table."""
        own = next((keys for pattern, keys in self.tables.items() if fits(pattern, database, table)), self)
        given = {name: getattr(own, name) or getattr(self, name) for name in TableKeys.__struct_fields__}
        return Policy(**{name: value for name, value in given.items() if value is not None})
