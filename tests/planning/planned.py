"""A recorded stream's windows, planned one after the other without Spark: as gold would find them in silver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ticdc_codec.event import Ddl, Op, RowChange
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.planning.barriers import barriers, lagging_names
from ticdc_lakehouse.planning.naming import NameInUse, Naming, TakenNames
from ticdc_lakehouse.planning.planning_input import GoldConfig, PlanningInput
from ticdc_lakehouse.planning.published_state import Definition, Published, Recoverable, TableState
from ticdc_lakehouse.planning.window import BatchRange, BlockingPoint, DdlEvent, RowGroup, Window, statements_of
from ticdc_lakehouse.planning.window_plan import TablePlan, plan_tables
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_local.verify_stream import mode_of
from ticdc_testkit.recorded_streams import RecordedStream, answers
from ticdc_testkit.respelled_streams import commit_order, decoded_messages


@dataclass
class Planner:
    """Gold without its tables: every step succeeds."""

    stream: RecordedStream
    before: Published = field(default_factory=Published)
    definitions: dict[str, Definition] = field(default_factory=dict)
    taken: list[NameInUse] = field(default_factory=list)
    rows: list[RowChange] = field(default_factory=list)
    ddls: list[DdlEvent] = field(default_factory=list)
    fresh: list[RowChange] = field(default_factory=list)
    """Rows that were replayed from quarantine since the last window."""
    quarantine_points: dict[TableName, BlockingPoint] = field(default_factory=dict)
    skipped: frozenset[tuple[str, int]] = frozenset()
    """DDLs that an override skips, as in `PlanningInput`."""

    def __post_init__(self) -> None:
        events = [event for _, event in decoded_messages(self.stream)]
        self.rows = sorted((e for e in events if isinstance(e, RowChange)), key=commit_order)
        ddls = dict.fromkeys((commit_order(e), e.database, e.table, e.query) for e in events if isinstance(e, Ddl))
        self.ddls = [
            DdlEvent(commit_ts=at, database=db, table=table, query=query, statements=statements_of(query, db, table))
            for at, db, table, query in sorted(ddls, key=lambda line: line[0])
        ]

    @property
    def config(self) -> GoldConfig:
        return GoldConfig(
            feed="f",
            time_zone=self.stream.time_zone,
            tables=tuple(tables_from_sql(self.stream.create_statements())),
            options=sink_options(self.stream.protocol, self.stream.options),
            traits=protocol_named(self.stream.protocol).traits,
            mode=mode_of(self.stream),
        )

    def windows(self, others: Iterable[int] = ()) -> Iterator[tuple[int, tuple[TablePlan, ...]]]:
        """The plans of each window: one an answer, and one that ends at each of ``others`` up to the last answer; or a
        single one of a stream without watermarks."""
        if mode_of(self.stream) is Mode.EVENTUAL:
            ends = [max(map(commit_order, self.rows))]
        else:
            ends = [answer.watermark for answer in answers(self.stream.folder)]
        for end in sorted({*ends, *(other for other in others if other < ends[-1])}):
            yield end, self._plan(end)

    @property
    def topics(self) -> set[str]:
        """The feed's topics."""
        return {ddl.topic for ddl in self.ddls}

    def _plan(self, tso: int) -> tuple[TablePlan, ...]:
        eventual = self.config.mode is Mode.EVENTUAL
        now = PlanningInput(
            config=self.config,
            before=self.before,
            definitions=self.definitions,
            window=self._window(tso),
            quarantine_points=self.quarantine_points,
            skipped=self.skipped,
            tso=tso,
            naming=Naming(feed="f", taken=TakenNames(names=tuple(self.taken))),
            batches=BatchRange(after=None, through=0) if eventual else None,
        )
        plan = plan_tables(now)
        tables = {each.name: self._publish(each) for each in plan.tables}
        recoverable = tuple(self._remember(each) for each in plan.recoverable)
        self.before = replace(self.before, tso=tso, tables=tables, recoverable=recoverable)
        return plan.tables

    def _remember(self, plan: TablePlan) -> Recoverable:
        assert plan.dropped_at is not None
        state = self._publish(plan)
        version = state.version if plan.stop is None else -1
        return Recoverable(name=plan.name, stable_id=state.stable_id, version=version, dropped_at=plan.dropped_at)

    def _publish(self, plan: TablePlan) -> TableState:
        for found in (each.definition for each in plan.new_definitions):
            self.definitions[found.stable_id] = found
            self.taken.append(
                NameInUse(
                    feed="f",
                    table=found.table.name,
                    lake_name=found.lake_name,
                    stable_id=found.stable_id,
                    named_at=found.named_at,
                )
            )
        return TableState(
            lake_name=plan.lake_name,
            stable_id="" if plan.definition is None else plan.definition.stable_id,
            version=0,
            applied_tso=plan.through,
            ddls=plan.ddls,
            stop=plan.stop,
        )

    def _window(self, tso: int) -> Window:
        """What is new, and what tables that are blocked have yet to take (``gold.window_reader``)."""
        applied = (state.applied_tso for state in self.before.tables.values() if not state.dropped)
        first = min(self.before.tso, *applied, self.before.tso)
        ddls = tuple(ddl for ddl in self.ddls if first <= ddl.commit_ts <= tso)
        after: dict[TableName, int] = {}
        for lagging, names in lagging_names(ddls, self.before).items():
            at = self.before.tables[lagging].applied_tso
            after |= {name: min(at, after.get(name, at)) for name in names}
        parted = barriers(ddls, self.before, self.before.definitions.values() if self.fresh else ())
        by_layout: dict[tuple[object, ...], list[RowChange]] = defaultdict(list)
        for row in self.rows:
            unapplied = after.get(TableName(row.database, row.table), self.before.tso)
            is_read = min(unapplied, self.before.tso) < commit_order(row) or row in self.fresh
            if is_read and commit_order(row) <= tso:
                passed = parted.passed(TableName(row.database, row.table), commit_order(row))
                keyed = row.handle_key is not None
                by_layout[row.database, row.table, row.columns, row.op, row.handle_only, keyed, passed].append(row)
        groups: dict[TableName, list[RowGroup]] = defaultdict(list)
        for rows in sorted(by_layout.values(), key=lambda rows: commit_order(rows[0])):
            group = replace(row_group(rows), replayed=any(row in self.fresh for row in rows))
            groups[group.name].append(group)
        by_table = {name: tuple(each) for name, each in groups.items()}
        topics = dict.fromkeys(self.topics, frozenset[TableName]())
        return Window(rows=by_table, ddls=ddls, replays_seen=None, row_changes=len(self.rows), topics=topics)


def topics_of(number: int) -> set[str]:
    """The names of a script's topics."""
    return {""} if number == 1 else {*map(str, range(number))}


def row_group(rows: Sequence[RowChange]) -> RowGroup:
    """The group of rows that have one layout."""
    first = rows[0]
    return RowGroup(
        name=TableName(str(first.database), str(first.table)),
        columns=first.columns,
        is_upsert=first.op is not Op.DELETE,
        handle_only=bool(first.handle_only),
        keyed=first.handle_key is not None,
        first=commit_order(first),
        last=commit_order(rows[-1]),
        rows=len(rows),
    )
