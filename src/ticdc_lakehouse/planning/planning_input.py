"""The input of the planner: the published state, the window and the feed's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ticdc_codec.mysql_type import Family, MysqlType
from ticdc_codec.options import SinkOptions
from ticdc_codec.traits import ProtocolTraits
from ticdc_lakehouse.planning.naming import Naming
from ticdc_lakehouse.planning.published_state import Definition, Published
from ticdc_lakehouse.planning.window import BatchRange, BlockingPoint, DdlEvent, Window
from ticdc_lakehouse.policy import NAME_TEMPLATE, RETENTION_DAYS, SCHEMA_TEMPLATE, Mode, Policy, Views
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName

_WITH_DIGITS = (Family.DECIMAL, Family.TIME, Family.DATETIME, Family.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldConfig:
    """Configuration of one feed's gold layer."""

    feed: str
    time_zone: str
    """The TiCDC server's time zone, in which TIMESTAMP texts are written."""
    tables: tuple[Table, ...] = ()
    """Tables that existed before the feed began."""
    matches: Callable[[str, str], bool] = lambda _database, _table: True
    """The feed's table filter."""
    retired: frozenset[str] = frozenset()
    """Topics, and partitions as ``topic/3``, for which the watermark does not wait."""
    options: SinkOptions = field(default_factory=SinkOptions)
    """The feed's sink options. They say which writer defects the feed trusts."""
    traits: ProtocolTraits = field(default_factory=ProtocolTraits)
    """The traits of the feed's protocol."""
    mode: Mode = Mode.WATERMARKS
    tombstone_days: int = 7
    """Eventual mode: a tombstone stays until a window has only changes that were committed more days than this after
    it, so that an older change does not insert the deleted row again."""
    retention_days: int = RETENTION_DAYS
    """Days for which a published state stays readable after the next one."""
    name_template: str = NAME_TEMPLATE
    """Names of tables and views in the lake: text with the placeholders {feed}, {database} and {table}."""
    schema_template: str = SCHEMA_TEMPLATE
    """Parts of the layers' schemas that contain them: text with {feed} and {database}; empty for the schemas
    themselves."""
    views: Views = Views.PINNED
    ddl_time_zone: str | None = None
    """Time zone of the sessions that run DDL; None if it is not known."""
    policy: Callable[[str, str], Policy] = lambda _database, _table: Policy()
    """The feed's policy for a table."""
    table_properties: Callable[[str, str], Mapping[str, str]] = lambda _database, _table: {}
    """Delta properties of a live table, in addition to those that gold needs."""

    def rewrites_key(self, kind: MysqlType) -> bool:
        """True if keys of the type have other digits than MySQL's texts, so that a definition cannot make them."""
        return self.traits.noncanonical_key_digits and kind.family in _WITH_DIGITS


def left_out(config: GoldConfig, before: Published) -> list[TableName]:
    """Returns the published tables that the feed's filter leaves out: the next window takes them out of gold."""
    return sorted(name for name in before.tables if not config.matches(*name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningInput:
    """Everything that a window's plan depends on."""

    config: GoldConfig
    before: Published
    definitions: Mapping[str, Definition]
    """Newest published definition of each table, by stable id."""
    window: Window
    quarantine_points: Mapping[TableName, BlockingPoint]
    """Blocking points of tables with messages in quarantine."""
    tso: int
    """Upper end of the window, inclusive."""
    late_points: Mapping[TableName, BlockingPoint] = field(default_factory=dict)
    """Blocking points of tables with late rows, by the name in their messages: the TSO up to which each is correct."""
    late_ddl_points: Mapping[TableName, BlockingPoint] = field(default_factory=dict)
    """The same of tables with late DDLs, by their current names."""
    naming: Naming
    batches: BatchRange | None = None
    """Mode eventual: the new bronze batches; None in mode watermarks."""
    skipped: frozenset[tuple[str, int]] = frozenset()
    """DDLs with an override `skip-ddl`: stable id of the table, and commit_ts."""
    past_ddls: Sequence[DdlEvent] = ()
    """Published DDLs, from the first on at which a table left a name that other rows of the window have."""

    @property
    def eventual(self) -> bool:
        """True in mode eventual: new rows and DDLs are those of the new bronze batches, whatever their commit_ts."""
        return self.batches is not None
