"""Builds the plan of one table in a window, while DDLs are followed in commit order.

A plan follows one table from its CREATE to its DROP. RENAME changes the table's name and keeps the plan; TRUNCATE and a
CREATE TABLE under a used name end the plan and begin another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import MysqlType
from ticdc_codec.name_case import fold
from ticdc_lakehouse.planning.compatibility import with_named_elements
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Origin, TableState
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows, MergeRows, Step
from ticdc_lakehouse.planning.stop_reason import UNKNOWN_COLUMNS, StopReason
from ticdc_lakehouse.planning.window import BatchRange, DdlEvent, RowGroup, statements_of
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.effect import Changed, ColumnConverted, KeyChanged
from ticdc_lakehouse.schema.names import TableName, spark_names
from ticdc_lakehouse.schema.partition_effects import exchanged
from ticdc_lakehouse.schema.repeated_alter import is_done
from ticdc_lakehouse.schema.statement import AlterTable

RESERVED_PREFIX = "_ticdc_"
"""Prefix of the columns that gold adds to a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDefinition:
    """A definition that a window adds."""

    definition: Definition
    after: int
    """commit_ts to which the steps before it lead; 0 if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedDdls:
    """The DDLs that a table's state includes, of the last commit_ts that has any: duplicates of them may arrive."""

    commit_ts: int = 0
    queries: tuple[str, ...] = ()

    def at(self, commit_ts: int) -> tuple[str, ...]:
        """Returns their texts if they are of this commit_ts; else none."""
        return self.queries if commit_ts == self.commit_ts else ()

    def has(self, ddl: DdlEvent) -> bool:
        """True if the DDL is one of them, which another version of TiCDC may write otherwise."""
        queries = self.at(ddl.commit_ts)
        return ddl.query in queries or any(
            statements_of(query, ddl.database, ddl.table) == ddl.statements != () for query in queries
        )

    def after(self, ddl: DdlEvent) -> AppliedDdls:
        """Returns those that the state includes once this DDL is applied, too."""
        queries = self.at(ddl.commit_ts)
        return self if self.has(ddl) else AppliedDdls(commit_ts=ddl.commit_ts, queries=(*queries, ddl.query))


@dataclass(slots=True, eq=False)
class TablePlanBuilder:
    """Builds the plan of one table while the window's DDLs are applied."""

    name: TableName
    """The table's current name in TiDB. A blocked table is still renamed and dropped."""
    definition: Definition | None
    """None while the table's columns are unknown."""
    state: TableState | None
    """The published state; None if the table is new in this window."""
    complete_through: int
    """commit_ts up to which the published table is complete."""
    start: Definition | None = None
    """The definition at ``complete_through``."""
    steps: list[Step] = field(default_factory=list)
    new_definitions: list[PlannedDefinition] = field(default_factory=list)
    """Definitions that this window adds."""
    stop: StopReason | None = None
    """Why the table is blocked; None if it is not."""
    applied_ddls: AppliedDdls = field(default_factory=AppliedDdls)
    dropped_at: int | None = None
    """commit_ts of the DROP or TRUNCATE; None if the table exists."""
    published_name: TableName | None = None
    """The name that the table has at the published watermark, also if it is below; None if it is new since."""
    named_until: int = 0
    """DDLs below this commit_ts have led to the name of a published table: one that is lost, or whose columns and rows
    are unknown. (Any other has the name of its definition, and is followed from there.)"""
    awaits_rows_reason: StopReason | None = None
    """Why a table without rows has no columns: they are unknown, or the lake cannot name one. Its first rows show
    them."""
    _recorded: DdlEvent | None = None
    """The DDL that was recorded last."""

    @property
    def defined(self) -> bool:
        """True if a statement defines the table; False if its definition is inferred from the wire."""
        return self.definition is not None and self.definition.origin is not Origin.WIRE

    @property
    def named_at(self) -> int:
        """commit_ts since which rows under its name belong to this table; 0 if always, or if that is not known."""
        if self.definition is None:
            awaits = self.awaits_rows_reason
            return 0 if awaits is None else awaits.named_at or awaits.commit_ts or 0
        return self.definition.named_at

    @property
    def mergeable_since(self) -> int:
        """As in `Definition`; 0 while the table's columns are unknown."""
        return 0 if self.definition is None else self.definition.mergeable_since

    def awaited_rows_at(self, commit_ts: int) -> bool:
        """True if the table, which still awaits its first rows, had another name at this commit_ts."""
        awaits = self.awaits_rows_reason
        return awaits is not None and (awaits.commit_ts or 0) < commit_ts <= (awaits.named_at or 0)

    @property
    def is_published_blocked(self) -> bool:
        """True if a published table with columns is blocked."""
        return self.definition is not None and self.stop is not None and self.published_name is not None

    def was_blocked_by(self, ddl: DdlEvent) -> bool:
        """True if an earlier window blocked the table before this DDL, or before another one of its commit_ts."""
        stop = None if self.state is None else self.state.stop
        return stop is not None and stop.of_ddl and stop.commit_ts == ddl.commit_ts

    @property
    def waits_for_override(self) -> bool:
        """True if a published table stays blocked until an override."""
        return self.published_name is not None and self.stop is not None and self.stop.needs_override

    def dropped_before(self, commit_ts: int) -> bool:
        """True if TiDB dropped the table before this commit_ts."""
        return self.dropped_at is not None and self.dropped_at < commit_ts

    @property
    def planned_through(self) -> int:
        """commit_ts up to which the steps lead."""
        match self.steps[-1:]:
            case [MergeRows(through=tso) | AlterRows(commit_ts=tso) | ExchangeRows(commit_ts=tso)]:
                return tso
            case _:
                return self.complete_through

    @property
    def is_empty(self) -> bool:
        """True if a DDL of this window made the table, and no row has come since."""
        is_new = self.state is None and self.start is not None and self.start.origin is Origin.DDL
        return is_new and not any(
            isinstance(step, ExchangeRows) or (isinstance(step, MergeRows) and step.groups) for step in self.steps
        )

    def includes(self, ddl: DdlEvent) -> bool:
        """True if the table's state already includes this DDL, or the DDL is older than the table. A DDL that is being
        applied may have more to do: ``RENAME TABLE a TO b, b TO c``."""
        if ddl is self._recorded:
            return False
        if self.has_recorded(ddl) or (ddl.commit_ts < self.named_until and not ddl.out_of_order and not ddl.replayed):
            return True
        if self._went_back_to(ddl):
            return True
        return ddl.commit_ts < (self.named_at if ddl.out_of_order else self.planned_through)

    def _went_back_to(self, ddl: DdlEvent) -> bool:
        """True if the table went back to where this DDL, which its definition has, is the last one."""
        is_last = self.definition is not None and self.definition.since == ddl.commit_ts
        is_known = ddl.out_of_order or ddl.replayed or self.applied_ddls.at(ddl.commit_ts)
        return is_last and not is_known

    @property
    def is_lost(self) -> bool:
        """True if the table has its published name, since it could not be followed to it from its definition."""
        return self.definition is not None and self.named_until > 0

    def has_recorded(self, ddl: DdlEvent) -> bool:
        """True if this DDL is among those at the last commit_ts."""
        return self.applied_ddls.has(ddl)

    def may_include(self, ddl: DdlEvent) -> bool:
        """True if the table is of an export that was taken so shortly before the DDL that it may have its effect."""
        return self.definition is not None and self.definition.may_include(ddl.commit_ts)

    def has_effect_of(self, ddl: DdlEvent, statement: AlterTable) -> bool:
        """True if the export that the table is of has the DDL's effect already."""
        return self.definition is not None and self.may_include(ddl) and is_done(self.definition.table, statement)

    def record_ddl(self, ddl: DdlEvent) -> None:
        """Records that the table's state includes this DDL."""
        self.applied_ddls = self.applied_ddls.after(ddl)
        self._recorded = ddl

    def block(self, stop: StopReason) -> None:
        """Blocks the table; an earlier reason stays."""
        self.stop = self.stop or stop

    def merge_rows(
        self,
        through: int,
        groups: Sequence[RowGroup],
        table: Table,
        inputs: PlanningInput,
        batches: BatchRange | None,
    ) -> None:
        """Adds a step that merges the row groups up to ``through``. With ``batches``, the first step also merges late
        rows that have this definition."""
        takes_late_rows = batches is not None and not self.steps
        after = max(self.named_at if takes_late_rows else self.planned_through, self.mergeable_since)
        if through > self.planned_through or groups:
            rows = MergeRows(
                table=table,
                after=after,
                through=through,
                groups=tuple(groups),
                mergeable_since=self.mergeable_since,
                batches=batches,
                replays_seen=inputs.window.replays_seen,
                replays_before=inputs.before.replays_seen,
            )
            self.steps.append(rows)

    def gets_first_key(self, statement: AlterTable) -> bool:
        """True if the ALTER TABLE gives a key to a defined table without one: TiCDC has sent no row of it. Raises
        ApplyError if gold does not support the statement."""
        if self.stop is not None or self.definition is None or self.definition.origin is Origin.WIRE:
            return False
        table = self.definition.table
        return not table.names_rows and bool(change(table, statement).table.key)

    def alter(self, ddl: DdlEvent, statement: AlterTable, config: GoldConfig) -> None:
        """Adds a step that applies an ALTER TABLE. Raises ApplyError if gold does not support it."""
        if self.stop is not None or self.definition is None:
            return
        changed = change(self.definition.table, statement)
        if config.traits.names_elements:
            changed = replace(changed, table=with_named_elements(changed.table))
        # Several effects lead through rows that have columns of before and of after.
        of_columns = [effect for effect in changed.effects if not isinstance(effect, KeyChanged)]
        before = self.definition.table.sent if len(of_columns) > 1 else ()
        if (clash := name_clash((*before, *changed.table.sent))) is not None:
            raise ApplyError(clash)
        _check_keys(changed, config.rewrites_key)
        self.record_ddl(ddl)
        if changed.effects or _order(changed.table) != _order(self.definition.table):
            alter = AlterRows(commit_ts=ddl.commit_ts, query=ddl.query, effects=changed.effects, table=changed.table)
            self.steps.append(alter)
        if statement.of_indexes and changed.table != self.definition.table:
            self.define(replace(self.definition, table=changed.table))
        elif changed.effects or changed.table != self.definition.table:
            since = max(ddl.commit_ts, self.definition.since)  # the DDL may be late, and a later one followed
            self.define(replace(self.definition, table=changed.table, commit_ts=since, origin=Origin.DDL))

    def rename(self, ddl: DdlEvent, lake_name: str) -> None:
        """Renames the definition to the builder's new name, from the DDL on. A blocked table keeps the name of its
        definition, from which it is followed again; the state of one without columns has only its newest name."""
        to = self.name
        if self.definition is None:
            self.complete_through = ddl.commit_ts
            self.record_ddl(ddl)
            if self.awaits_rows_reason is not None or self.stop is None:
                self.awaits_rows_reason = replace(self.awaits_rows_reason or UNKNOWN_COLUMNS, named_at=ddl.commit_ts)
        elif self.stop is None:
            table = replace(self.definition.table, database=to[0], table=to[1])
            renamed = replace(
                self.definition, table=table, commit_ts=ddl.commit_ts, lake_name=lake_name, named_at=ddl.commit_ts
            )
            self.define(renamed)
            self.record_ddl(ddl)

    def restore(self, ddl: DdlEvent, lake_name: str) -> None:
        """Restores a dropped table with the rows that it had at its DROP, under its current name."""
        self.dropped_at, self.stop = None, None
        self.rename(ddl, lake_name)
        assert self.definition is not None
        self.steps.append(AlterRows(commit_ts=ddl.commit_ts, query=ddl.query, effects=(), table=self.definition.table))

    def exchange(self, ddl: DdlEvent, step: ExchangeRows) -> None:
        """Adds a step that exchanges rows with another table."""
        assert self.definition is not None
        self.steps.append(step)
        self.record_ddl(ddl)
        # Earlier rows are in the other table now.
        self.define(replace(self.definition, commit_ts=ddl.commit_ts, origin=Origin.DDL))

    def define(self, definition: Definition) -> None:
        """Replaces the definition."""
        self.definition = definition
        self.start = self.start or definition
        after = self.planned_through if self.steps else 0
        self.new_definitions.append(PlannedDefinition(definition=definition, after=after))


def name_clash(columns: Iterable[ColumnDefinition]) -> str | None:
    """Names the column whose name is reserved for gold, or equals another one in Spark; None if there is none."""
    others: dict[tuple[int, str], str] = {}
    for name in dict.fromkeys(column.name for column in columns):
        same = [*enumerate(spark_names(name))]
        if same[0][1].startswith(RESERVED_PREFIX):
            return f"column `{name}`: names that begin with {RESERVED_PREFIX} are reserved for gold"
        for other in filter(None, map(others.get, same)):
            if fold(other) != fold(name):
                return (
                    f"columns `{other}` and `{name}`: two names in TiDB and one in Spark, which compares capitals: "
                    "rename one in TiDB, and `ticdc-lake load` an export taken since"
                )
        others |= dict.fromkeys(same, name)
    return None


def _order(table: Table) -> list[str]:
    return [column.name for column in table.sent]


def _check_keys(changed: Changed, rewrites_key: Callable[[MysqlType], bool]) -> None:
    """Raises ApplyError if rebuilt keys of stored rows, in MySQL's texts, would differ from the keys in later
    messages."""
    columns = {column.name: column for column in changed.table.columns if column.name in changed.table.key}
    rekeyed = any(
        isinstance(e, KeyChanged) or (isinstance(e, ColumnConverted) and e.after.name in columns)
        for e in changed.effects
    )
    for column in columns.values():
        if rekeyed and rewrites_key(column.type):
            raise ApplyError(
                f"key column `{column.name}`: the protocol writes {column.type.text} keys with different digits, so "
                "stored keys would no longer match"
            )


def exchange_step(ddl: DdlEvent, partition: str, builders: Sequence[TablePlanBuilder]) -> ExchangeRows:
    """Returns the step of a partitioned and a plain table, given in this order. Raises ApplyError if one of them is
    unknown or blocked, or if the definition does not determine the partition's rows."""
    definitions = [
        builder.definition for builder in builders if builder.stop is None and builder.definition is not None
    ]
    if len(definitions) < 2:
        raise ApplyError("EXCHANGE PARTITION: one table is unknown to this feed or blocked")
    partitioned, plain = definitions
    return ExchangeRows(
        commit_ts=ddl.commit_ts,
        query=ddl.query,
        part=exchanged(partitioned.table, plain.table, partition),
        partitioned=partitioned.stable_id,
        plain=plain.stable_id,
    )
