"""One table's way through a window: the rows that it takes and the changes of its columns, in commit order.

A lane is one table from its CREATE to its DROP, whatever its names meanwhile: RENAME gives it another name, TRUNCATE
and a new CREATE TABLE under an old name end it and begin another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ticdc_codec.errors import ApplyError
from ticdc_codec.mysql_type import Family
from ticdc_lakehouse.planning.published_state import Definition, TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.planning.window import DdlEvent, RowGroup
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.effect import Changed, ConvertedColumn, Effect, Rekeyed, RowsGone
from ticdc_lakehouse.schema.names import TableName, fold
from ticdc_lakehouse.schema.partitioned import exchanged
from ticdc_lakehouse.schema.statement import AlterTable

OWN_COLUMNS = "_ticdc_"
"""How the names of columns begin that gold adds to a table's own."""
NONCANONICAL_KEY_DIGITS = (Family.DECIMAL, Family.TIME, Family.DATETIME, Family.TIMESTAMP)
"""Types whose keys Debezium writes with digits of its own (``GoldConfig.noncanonical_key_digits``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Temporary files with the latest change of each key of many segments, and the number of one of them."""

    path: str
    segment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """Take the rows of a table with commit_ts in (after, through]."""

    table: Table
    """The definition in force, with the name that the rows bear."""
    after: int
    through: int
    groups: tuple[RowGroup, ...]
    since: int = 0
    """From here on all rows have this definition: replays below are not looked at again."""
    batches: tuple[int, int] | None = None
    """Eventual mode: only what came with bronze batches in (first, second], however old it is."""
    stage: Stage | None = None
    """Where the latest changes of these rows are staged; None if the window's events are read."""

    @property
    def wire_keys(self) -> bool:
        """Whether the wire names the rows' keys, in MySQL's texts; else they are made from the definition's columns."""
        if not self.table.key:
            return True
        left_open = any(column.open for column in self.table.columns if column.name in self.table.key)
        return not left_open and all(group.keyed for group in self.groups)

    @property
    def replayed(self) -> bool:
        """Whether to look again at keys that replays from quarantine touch at or below ``after``."""
        return any(group.replayed for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRows:
    """Change what the rows are, as a DDL at ``commit_ts`` did."""

    commit_ts: int
    query: str
    effects: tuple[Effect, ...]
    table: Table
    """The definition afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRows:
    """The rows of a partition and all rows of another table change places, as a DDL at ``commit_ts`` did: a step of
    both tables."""

    commit_ts: int
    query: str
    part: RowsGone
    """The partition's rows."""
    table: Table
    """Of both tables, but for the name: TiDB exchanges rows of the same columns and keys alone."""
    partitioned: str
    """The Delta table of the partitioned one."""
    plain: str
    """The Delta table of the other one."""


Step = MergeRows | AlterRows | ExchangeRows


@dataclass(slots=True, eq=False)
class TablePlanBuilder:
    """A lane in the making."""

    name: TableName
    """What TiDB calls it. A table that is blocked goes on being renamed and dropped."""
    definition: Definition | None
    """None while the table's columns are not known."""
    state: TableState | None
    """As published; None if it is new in this window."""
    after: int
    """Up to here it is applied."""
    start: Definition | None = None
    """The definition at ``after``."""
    steps: list[Step] = field(default_factory=list)
    found: list[Definition] = field(default_factory=list)
    """Definitions that are new in this window."""
    stop: StopReason | None = None
    """Why it is blocked."""
    seen: tuple[int, tuple[str, ...]] = (0, ())
    """The last commit_ts with DDLs that are in, and their texts."""
    dropped_at: int | None = None
    """commit_ts of the DDL that ended it; it may come back."""

    @property
    def defined(self) -> bool:
        """Whether a statement, not the rows alone, says what the table is."""
        return self.definition is not None and self.definition.source != "wire"

    @property
    def named_at(self) -> int:
        """Since when the rows of its name are its own."""
        return 0 if self.definition is None else self.definition.named_at

    @property
    def at(self) -> int:
        """Up to where the steps go."""
        match self.steps[-1:]:
            case [MergeRows(through=tso) | AlterRows(commit_ts=tso) | ExchangeRows(commit_ts=tso)]:
                return tso
            case _:
                return self.after

    def includes(self, ddl: DdlEvent) -> bool:
        """Whether a DDL is in already, or older than the table."""
        if ddl.commit_ts == self.seen[0] and ddl.query in self.seen[1]:
            return True
        return ddl.commit_ts < (self.named_at if ddl.late else self.at)

    def record_ddl(self, ddl: DdlEvent) -> None:
        """Remember that a DDL is in."""
        texts = self.seen[1] if self.seen[0] == ddl.commit_ts else ()
        self.seen = (ddl.commit_ts, (*texts, ddl.query))

    def block(self, stop: StopReason) -> None:
        """Block the table from here on, if it is not blocked already."""
        self.stop = self.stop or stop

    def merge_rows(
        self, through: int, groups: Sequence[RowGroup], table: Table, batches: tuple[int, int] | None = None
    ) -> None:
        """Take the rows up to ``through``; of ``batches``, the first time also those that came late."""
        since = self.definition.commit_ts if self.definition is not None and self.definition.source == "ddl" else 0
        after = self.at if batches is None or self.steps else self.named_at
        if through > self.at or groups:
            rows = MergeRows(
                table=table, after=after, through=through, groups=tuple(groups), since=since, batches=batches
            )
            self.steps.append(rows)

    def alter(self, ddl: DdlEvent, statement: AlterTable, *, noncanonical_key_digits: bool = False) -> None:
        """Change the columns as a DDL says. Raises ApplyError if that cannot be followed."""
        if self.stop is not None or self.definition is None:
            return
        changed = change(self.definition.table, statement)
        if (clash := name_clash(changed.table)) is not None:
            raise ApplyError(clash)
        if noncanonical_key_digits:
            _check_keys(changed)
        self.record_ddl(ddl)
        if changed.effects:
            alter = AlterRows(commit_ts=ddl.commit_ts, query=ddl.query, effects=changed.effects, table=changed.table)
            self.steps.append(alter)
        if statement.of_indexes and changed.table != self.definition.table:
            self.define(replace(self.definition, table=changed.table))
        elif changed.effects or changed.table != self.definition.table:
            self.define(replace(self.definition, table=changed.table, commit_ts=ddl.commit_ts, source="ddl"))

    def rename(self, ddl: DdlEvent, view: str) -> None:
        """Go on under another name, which it has already."""
        to = self.name
        if self.definition is not None and self.stop is None:
            table = replace(self.definition.table, database=to[0], table=to[1])
            renamed = replace(self.definition, table=table, commit_ts=ddl.commit_ts, name=view, named_at=ddl.commit_ts)
            self.define(renamed)
            self.record_ddl(ddl)

    def restore(self, ddl: DdlEvent, view: str) -> None:
        """Go on from the DDL on with the rows that it had when it ended, perhaps under another name."""
        self.dropped_at, self.stop = None, None
        self.rename(ddl, view)
        assert self.definition is not None
        self.steps.append(AlterRows(commit_ts=ddl.commit_ts, query=ddl.query, effects=(), table=self.definition.table))

    def exchange(self, ddl: DdlEvent, step: ExchangeRows) -> None:
        """Take part in an exchange of rows."""
        assert self.definition is not None
        self.steps.append(step)
        self.record_ddl(ddl)
        # Rows from before it lie in the other table now.
        self.define(replace(self.definition, commit_ts=ddl.commit_ts, source="ddl"))

    def define(self, definition: Definition) -> None:
        """Go on with another definition."""
        self.definition = definition
        self.start = self.start or definition
        self.found.append(definition)


def name_clash(table: Table) -> str | None:
    """Why gold cannot have a table's columns beside its own; None if it can."""
    names = [column.name for column in table.columns if fold(column.name).startswith(OWN_COLUMNS)]
    return f"column `{names[0]}`: names that begin with {OWN_COLUMNS} are gold's own" if names else None


def _check_keys(changed: Changed) -> None:
    """Stored rows' keys are made anew of MySQL's texts, which must be those that the wire will name."""
    columns = {column.name: column for column in changed.table.columns if column.name in changed.table.key}
    rekeyed = any(
        isinstance(e, Rekeyed) or (isinstance(e, ConvertedColumn) and e.after.name in columns) for e in changed.effects
    )
    for column in columns.values():
        if rekeyed and column.type.family in NONCANONICAL_KEY_DIGITS:
            raise ApplyError(
                f"key column `{column.name}`: the protocol writes {column.type.text} keys with different digits, so "
                "stored keys would no longer match"
            )


def exchange_step(ddl: DdlEvent, partition: str, builders: Sequence[TablePlanBuilder]) -> ExchangeRows:
    """The step of a partitioned table and another one, in this order. Raises ApplyError if one of them is not known or
    blocked, or if nothing shows which rows the partition holds."""
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
        table=partitioned.table,
        partitioned=partitioned.data,
        plain=plain.data,
    )


def unsupported_ddl(
    commit_ts: int, query: str, detail: str, *, can_skip: bool = True, needs_override: bool = True
) -> StopReason:
    """Why a table is blocked before a DDL. ``can_skip``: the table goes on if the DDL is skipped, which is not so
    where the DDL makes the table."""
    return StopReason(
        kind=StopKind.UNSUPPORTED_DDL,
        commit_ts=commit_ts,
        query=query,
        detail=detail,
        can_skip=can_skip,
        needs_override=needs_override,
    )
