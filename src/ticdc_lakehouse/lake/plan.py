"""What a window does to each table, decided before anything is written: pure, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ticdc_lakehouse.codec.options import CraftFloat
from ticdc_lakehouse.definition import Table, table_from_wire
from ticdc_lakehouse.lake.ddl import CreateDatabase, CreateTable, Unfollowed, read_ddl
from ticdc_lakehouse.lake.state import Definition, Published, TableName
from ticdc_lakehouse.lake.watermark import Hold
from ticdc_lakehouse.lake.window import DdlEvent, Shape, TableChanges, Window
from ticdc_lakehouse.mysql_type import Family, MysqlType, parse_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """How a feed's changes become tables."""

    feed: str
    time_zone: str
    """The TiCDC server's time zone, in which TIMESTAMP texts are written."""
    tables: tuple[Table, ...] = ()
    """Tables that existed before the feed began."""
    matches: Callable[[str, str], bool] = lambda _database, _table: True
    """The feed's table filter."""
    craft_float: CraftFloat = CraftFloat.TRUST
    """What the feed says of Craft's FLOAT; other protocols are to be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """What to do with one table: changes in (after, through], and what it stands at then."""

    name: TableName
    definition: Definition | None
    """None if there is nothing to make a table of."""
    after: int
    through: int
    reason: str | None = None
    """Why the table stands still at ``through``, None if it does not."""
    final: bool = False
    changes: TableChanges = field(default_factory=TableChanges)

    @property
    def merges(self) -> bool:
        """Whether there is a change to merge."""
        return self.changes.replayed or any(shape.first <= self.through for shape in self.changes.shapes)


@dataclass(slots=True)
class _Draft:
    """What the window's DDLs say, collected in commit order."""

    created: dict[TableName, Definition] = field(default_factory=dict)
    stops: dict[TableName, Hold] = field(default_factory=dict)
    database_stops: dict[str, Hold] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that decides what a window does."""

    applying: Applying
    before: Published
    known: Mapping[TableName, Definition]
    """Definitions recorded so far."""
    window: Window
    holds: Mapping[TableName, Hold]
    """Tables with messages in quarantine."""
    tso: int
    """Where the window ends."""
    name_of: Callable[[TableName], str]
    """Gives a new table's name in the lake."""


def plan_tables(now: Situation) -> tuple[TablePlan, ...]:
    """One plan for each table that exists or has changes in the window."""
    files = {(t.database, t.table): t for t in now.applying.tables}
    new = {name: _from_file(t, now.name_of) for name, t in files.items() if name not in now.known}
    now = replace(now, known={**new, **now.known})
    draft = _read_ddls(now)
    names = {*now.before.tables, *now.known, *draft.created, *draft.stops, *now.window.rows}
    return tuple(_plan(now, draft, name) for name in sorted(names) if now.applying.matches(*name))


def _from_file(table: Table, name_of: Callable[[TableName], str]) -> Definition:
    return Definition(table=table, commit_ts=0, source="file", name=name_of((table.database, table.table)))


def _read_ddls(now: Situation) -> _Draft:
    draft = _Draft()

    def definition_of(name: TableName) -> Table | None:
        found = draft.created.get(name) or now.known.get(name)
        return None if found is None else found.table

    for ddl in now.window.ddls:
        match read_ddl(ddl, definition_of):
            case CreateDatabase():
                pass
            case CreateTable(table=table):
                _create(now, draft, ddl, table)
            case Unfollowed(tables=tables, database=None):
                for name in tables:
                    draft.stops.setdefault(name, _ddl_hold(ddl))
            case Unfollowed(database=database):
                draft.database_stops.setdefault(str(database), _ddl_hold(ddl))
    return draft


def _create(now: Situation, draft: _Draft, ddl: DdlEvent, table: Table) -> None:
    """A CREATE TABLE makes a table that nobody knows, repeats the one that made it, or cannot be right."""
    name = (table.database, table.table)
    existing = draft.created.get(name) or now.known.get(name)
    if existing is None:
        draft.created[name] = Definition(table=table, commit_ts=ddl.commit_ts, source="ddl", name=now.name_of(name))
    elif existing.commit_ts < ddl.commit_ts:
        draft.stops.setdefault(name, _ddl_hold(ddl))


def _ddl_hold(ddl: DdlEvent) -> Hold:
    return Hold(tso=ddl.commit_ts, reason=f"DDL at {ddl.commit_ts} is not followed yet: {ddl.query}")


def _plan(now: Situation, draft: _Draft, name: TableName) -> TablePlan:
    state = now.before.tables.get(name)
    after = now.before.tso if state is None else state.applied_tso
    changes = now.window.rows.get(name, TableChanges())
    definition = now.known.get(name) or draft.created.get(name) or _from_wire(name, changes, now.name_of)
    if state is not None and state.final:
        return TablePlan(name=name, definition=definition, after=after, through=after, reason=state.reason, final=True)
    late = next((doubt for doubt in _doubts(now.applying, definition, changes) if doubt.tso < after), None)
    if late is not None:  # only what was replayed from quarantine can be so old
        reason = f"a row replayed from quarantine cannot be put in its place: {late.reason}"
        return TablePlan(name=name, definition=definition, after=after, through=after, reason=reason, final=True)
    ddl = draft.stops.get(name) or _database_stop(draft, name, changes, state is not None or name in now.known)
    stop = _first_stop(now, name, definition, changes, ddl)
    return TablePlan(
        name=name,
        definition=definition,
        after=after,
        through=now.tso if stop is None else max(after, stop.tso),
        reason=None if stop is None else stop.reason,
        final=stop is not None and stop is ddl,
        changes=changes,
    )


def _first_stop(
    now: Situation, name: TableName, definition: Definition | None, changes: TableChanges, ddl: Hold | None
) -> Hold | None:
    """Where the table must stop first, None if it goes through. A DDL stops it even at the window's end: rows after
    it may differ."""
    holds = [hold for hold in (now.holds.get(name), *_doubts(now.applying, definition, changes)) if hold is not None]
    below = [hold for hold in holds if hold.tso < now.tso] + ([] if ddl is None else [ddl])
    return min(below, key=lambda hold: hold.tso, default=None)


def _database_stop(draft: _Draft, name: TableName, changes: TableChanges, existed: bool) -> Hold | None:
    """A DDL on a database is about the tables that it held at that time."""
    hold = draft.database_stops.get(name[0])
    if hold is None:
        return None
    created = draft.created.get(name)
    had_rows = any(shape.first <= hold.tso for shape in changes.shapes)
    return hold if existed or had_rows or (created is not None and created.commit_ts < hold.tso) else None


def _from_wire(name: TableName, changes: TableChanges, name_of: Callable[[TableName], str]) -> Definition | None:
    whole = [shape for shape in changes.shapes if shape.whole and not shape.handle_only]
    if not whole:
        return None
    first = min(whole, key=lambda shape: shape.first)
    table = table_from_wire(*name, first.columns)
    return Definition(table=table, commit_ts=first.first, source="wire", name=name_of(name))


def _doubts(applying: Applying, definition: Definition | None, changes: TableChanges) -> Iterator[Hold]:
    """Rows that the table cannot take, each held just below its first commit."""
    for shape in changes.shapes:
        doubt = _doubt(applying, definition, shape)
        if doubt is not None:
            yield Hold(tso=shape.first - 1, reason=doubt)


def _doubt(applying: Applying, definition: Definition | None, shape: Shape) -> str | None:
    if shape.handle_only:
        return "a row was too large for a message and came with its handle key alone (large-message-handle-option)"
    if definition is None:
        return "the table's columns are not known yet: give its CREATE TABLE in the feed's schema_file"
    if not shape.keyed and not definition.table.key:
        return "the table has no handle key that the feed knows: give its CREATE TABLE in the feed's schema_file"
    doubts = {column.doubt for column in shape.columns if column.doubt is not None}
    if "craft-float" in doubts and applying.craft_float is not CraftFloat.TRUST:
        return (
            "it has a FLOAT column, and TiCDC 8.2 and later write Craft's FLOAT wrongly: set the feed's option "
            "craft-float to trust if the writer is older, or to null"
        )
    return _mismatch(definition.table, shape)


def _mismatch(table: Table, shape: Shape) -> str | None:
    """Where the wire's columns are not those of the definition, None if they are."""
    defined = {column.name: column.type for column in table.sent}
    sent = {column.name: parse_type(column.type) for column in shape.columns}
    unknown = sorted(sent.keys() - defined.keys())
    if unknown:
        return f"rows have columns that the table's definition has not: {', '.join(unknown)}"
    missing = sorted((defined.keys() if shape.whole else set(table.key)) - sent.keys())
    if missing:
        return f"rows lack columns of the table's definition: {', '.join(missing)}"
    for name, kind in sent.items():
        if not _same_kind(kind, defined[name]):
            return f"column {name} is {defined[name].text} in the table's definition, rows have {kind.text}"
    return None


def _same_kind(sent: MysqlType, defined: MysqlType) -> bool:
    if Family.OTHER in (sent.family, defined.family):
        return True
    return sent.family is defined.family and (sent.family is not Family.INTEGER or sent.unsigned == defined.unsigned)
