"""The steps of one table in a window, in commit order: rows to merge, DDLs to follow, partitions to exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ticdc_lakehouse.planning.compatibility import is_misread, misreadable, names_key
from ticdc_lakehouse.planning.window import BatchRange, RowGroup
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.effect import Effect, RowsRemoved


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One segment in a set of temporary files that hold the latest change of each key of many segments."""

    path: str
    segment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """Merges the rows of a table with commit_ts in (after, through]."""

    table: Table
    """The definition of these rows, with the name that their messages carry."""
    after: int
    through: int
    groups: tuple[RowGroup, ...]
    mergeable_since: int = 0
    """As in `Definition`: late rows after it can be merged. Replayed rows up to it are not merged again."""
    batches: BatchRange | None = None
    """Mode eventual: the bronze batches whose rows are merged; None in mode watermarks."""
    replays_seen: datetime | None = None
    """As in `Window`: rows that are replayed later, while gold runs, are left to the next window."""
    replays_before: datetime | None = None
    """``replays_seen`` of the published state: rows that were replayed until then have been merged or refused."""
    stage: Stage | None = None
    """The staged latest changes of these rows; None if the step reads the window's events."""
    whole_rows: str | None = None
    """Folder of files with the rows read whole from TiDB; None if none was read."""

    @property
    def eventual(self) -> bool:
        """True in mode eventual: the latest change of a key wins whenever it arrives, and deleted rows stay as
        tombstones."""
        return self.batches is not None

    @property
    def wire_keys(self) -> bool:
        """True if the rows carry their keys as MySQL's texts; otherwise the keys are built from the definition's
        columns."""
        if not self.table.key:
            return True
        undeclared = any(column.open for column in self.table.columns if column.name in self.table.key)
        if undeclared or not self.misread.keys().isdisjoint(self.table.key):
            return False
        return all(names_key(self.table, group) for group in self.groups)

    @property
    def misread(self) -> Mapping[str, frozenset[str]]:
        """Columns of which some rows carry bytes as texts, or texts as bytes, each with the types that those rows
        declare."""
        types = {column.name: column.type for column in self.table.columns}
        partitioned = self.table.partitioning is not None
        sent = {column for group in self.groups for column in group.columns if column.name in types}
        if self._reads_again and any(column.flags is not None for column in sent):
            return misreadable(self.table.columns, partitioned=partitioned)
        misread = [column for column in sent if is_misread(column, types[column.name], partitioned=partitioned)]
        return {each.name: frozenset(c.type for c in misread if c.name == each.name) for each in misread}

    @property
    def _reads_again(self) -> bool:
        """True if the step also reads rows of earlier windows, whose types are not among those of the groups."""
        return self.replayed or (self.batches is not None and self.batches.rereads_all)

    @property
    def has_cut_rows(self) -> bool:
        """True if messages hold only the handle key of some rows."""
        return any(group.has_only_key for group in self.groups)

    @property
    def replayed(self) -> bool:
        """True if the step also merges rows at or below ``after`` that were replayed since ``replays_before``."""
        return any(group.replayed for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRows:
    """Applies a DDL at ``commit_ts`` to the columns and rows of a table."""

    commit_ts: int
    query: str
    effects: tuple[Effect, ...]
    table: Table
    """The definition after the DDL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRows:
    """Exchanges the rows of a partition with all rows of a plain table (EXCHANGE PARTITION). Both tables have this
    step."""

    commit_ts: int
    query: str
    part: RowsRemoved
    """The partition's rows."""
    partitioned: str
    """Stable id of the partitioned table."""
    plain: str
    """Stable id of the plain table."""


Step = MergeRows | AlterRows | ExchangeRows
