"""What is known before a window is applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ticdc_codec.options import SinkOptions
from ticdc_lakehouse.planning.naming import Naming
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import BlockingPoint, Window
from ticdc_lakehouse.policy import NAME_TEMPLATE, RETENTION_DAYS, Mode, Policy, Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldConfig:
    """How a feed's changes become tables."""

    feed: str
    time_zone: str
    """The TiCDC server's time zone, in which TIMESTAMP texts are written."""
    tables: tuple[Table, ...] = ()
    """Tables that existed before the feed began."""
    matches: Callable[[str, str], bool] = lambda _database, _table: True
    """The feed's table filter."""
    options: SinkOptions = field(default_factory=SinkOptions)
    """The feed's, for what they say of doubtful values."""
    external_schemas: bool = False
    """Whether rows are described by schemas that were sent apart, in an order of their own (Simple)."""
    flags_may_be_stale: bool = False
    """Whether messages may be wrong about what is UNSIGNED (Open Protocol, wire.md 8.4)."""
    noncanonical_key_digits: bool = False
    """Whether keys of decimals and times have the wire's digits, not MySQL's (Debezium)."""
    mode: Mode = Mode.WATERMARKS
    tombstone_days: int = 7
    """Eventual mode: for how long a deleted row is remembered, so that an older change does not bring it back."""
    retention_days: int = RETENTION_DAYS
    """For how long a state stays readable after the next one."""
    name_template: str = NAME_TEMPLATE
    """Names of tables and views in the lake: text with the placeholders {feed}, {database} and {table}."""
    schema_template: str | None = None
    """The schema of the gold names, with the same placeholders; None for the layer's own."""
    views: Views = Views.PINNED
    policy: Callable[[str, str], Policy] = lambda _database, _table: Policy()
    """What the feed says of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningInput:
    """Everything that decides what a window does."""

    applying: GoldConfig
    before: Published
    known: Mapping[str, Definition]
    """Newest published definition by Delta table."""
    window: Window
    holds: Mapping[TableName, BlockingPoint]
    """Tables with messages in quarantine."""
    tso: int
    """Where the window ends."""
    late: Mapping[TableName, BlockingPoint] = field(default_factory=dict)
    """Tables that got rows too late, each with the TSO up to which it is right."""
    naming: Naming
    batches: tuple[int, int] | None = None
    """Eventual mode: the bronze batches (after, through] that are new; None where watermarks say what is."""
    skipped: frozenset[tuple[str, int]] = frozenset()
    """DDLs that a person decided to pass over: Delta table of the rows, and commit_ts."""
