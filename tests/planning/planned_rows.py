"""What gold's tables hold after each window of a recorded stream, without Spark: plans are done to rows in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import Any
from unicodedata import category

import orjson
from planned import Planner

from ticdc_codec.event import Image, Op, RowChange, key_order
from ticdc_codec.mysql_type import Family, MysqlType, parse_type, whole_range
from ticdc_codec.open_protocol.value import quoted, unquoted
from ticdc_lakehouse.planning.compatibility import is_misread
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.steps import AlterRows, ExchangeRows, MergeRows, Step
from ticdc_lakehouse.planning.window_plan import TablePlan
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.effect import (
    ColumnAdded,
    ColumnConverted,
    ColumnDropped,
    ColumnRenamed,
    Effect,
    KeyChanged,
    RowsRemoved,
)
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.unwritten_rows import is_known
from ticdc_testkit.comparison import LOST, comparable
from ticdc_testkit.respelled_streams import commit_order


@dataclass(frozen=True, slots=True)
class Converted:
    """A value that a MODIFY COLUMN converted: SQL does that (`Conversion`)."""

    before: ColumnDefinition
    after: ColumnDefinition
    text: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """What TiDB made of a value."""

    before: MysqlType
    after: MysqlType
    text: str
    becomes: str | None
    time_zone: str
    """Of the session that changed the type."""


class Pending:
    """A value that no message shows."""


Cell = str | Converted | Pending | None
Row = dict[str, Cell]


class UntracedError(Exception):
    """Rows of which this model does not know what becomes of them."""


@dataclass
class RowPlanner(Planner):
    """A planner whose plans are done to rows."""

    held: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    """By stable id of the table."""
    untraced: set[str] = field(default_factory=set)
    """Tables, by stable id, that are not compared any more."""
    conversions: set[Conversion] = field(default_factory=set)
    time_zone: str = ""
    """Of the session that runs DDLs."""
    planned: list[TablePlan] = field(default_factory=list)
    named: dict[TableName, list[RowChange]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.rows:
            self.named[TableName(row.database, row.table)].append(row)

    def _plan(self, tso: int) -> tuple[TablePlan, ...]:
        self.planned.clear()
        plans = super()._plan(tso)
        steps = [
            (step, plan.definition.stable_id)
            for plan in self.planned
            if plan.definition is not None
            for step in plan.steps
        ]
        for step, data in sorted(steps, key=lambda each: _order(each[0])):
            if data in self.untraced and not isinstance(step, ExchangeRows):
                continue
            try:
                self._do(step, data)
            except UntracedError:
                self.untraced.add(data)
        return plans

    def _publish(self, plan: TablePlan) -> TableState:
        self.planned.append(plan)
        return super()._publish(plan)

    def _do(self, step: Step, data: str) -> None:
        match step:
            case MergeRows():
                self.held[data] = merged(step, self.named[step.table.name], self.held[data])
            case AlterRows(effects=effects):
                for effect in effects:
                    self.held[data] = changed(effect, self.held[data])
            case ExchangeRows(partitioned=partitioned, plain=plain) if data == partitioned:
                inside, outside = parted(step.part, self.held[partitioned])
                if parted(step.part, self.held[plain])[1] or not self.untraced.isdisjoint((partitioned, plain)):
                    self.untraced |= {partitioned, plain}  # WITHOUT VALIDATION: gold finds that out
                self.held[partitioned], self.held[plain] = outside + self.held[plain], inside

    def differences(self, tables: Mapping[str, Any]) -> Iterator[str]:
        """Each row in which the tables that go on differ from the answer's. Converted values become the answer's."""
        for name, table in tables.items():
            database, _, plain = name.partition(".")
            yield from self.differences_of(TableName(database, plain), table)

    def differences_of(self, name: TableName, answer: Mapping[str, Any]) -> Iterator[str]:
        """The same of one table."""
        state = self.before.tables[name]
        definition = self.definitions.get(state.stable_id)
        if state.stop is not None or definition is None or state.stable_id in self.untraced:
            return
        names = [column["name"] for column in answer["columns"]]
        wanted = [dict(zip(names, map(_plain, row), strict=True)) for row in answer["rows"]]
        types = {column["name"]: parse_type(column["type"]) for column in answer["columns"]}
        yield from self._compared(name, types, wanted)

    def _compared(
        self, name: TableName, types: Mapping[str, MysqlType], wanted: Sequence[Mapping[str, Any]]
    ) -> Iterator[str]:
        rows, data = self.held[self.before.tables[name].stable_id], self.before.tables[name].stable_id
        unknown = {column for row in rows for column, cell in row.items() if isinstance(cell, Converted | Pending)}
        known = [column for column in types if column not in unknown]
        found = _by_cells(rows, known, types, self.stream.protocol)
        expected = _by_cells(wanted, known, types, self.stream.protocol)
        yield from (f"{name}: {text}" for text in self._unequal(found, expected, known, types))
        if any(isinstance(cell, Converted) for row in rows for cell in row.values()):
            if any(len(some) > 1 for some in chain(found.values(), expected.values())):
                self.untraced.add(data)
                return
            for place in found.keys() & expected.keys():
                self._take(found[place][0], expected[place][0])

    def _unequal(
        self,
        found: Mapping[tuple[Any, ...], Sequence[Row]],
        expected: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]],
        known: Sequence[str],
        types: Mapping[str, MysqlType],
    ) -> Iterator[str]:
        counts = [Counter({place: len(rows) for place, rows in each.items()}) for each in (found, expected)]
        more, less = [*(counts[0] - counts[1]).elements()], [*(counts[1] - counts[0]).elements()]
        lost = LOST.get(self.stream.protocol)
        if lost is not None and len(more) == len(less):
            for have, want in zip(sorted(more, key=str), sorted(less, key=str), strict=True):
                pairs = zip(known, have, want, strict=True)
                if all(a == b or lost(types[column], str(b), a) for column, a, b in pairs):
                    more.remove(have)
                    less.remove(want)
        if more or less:
            yield f"rows {sorted(more, key=str)[:3]} instead of {sorted(less, key=str)[:3]} of {list(known)}"

    def _take(self, row: Row, wanted: Mapping[str, Any]) -> None:
        """A row with what TiDB converted."""
        for column, cell in row.items():
            if isinstance(cell, Converted):
                row[column] = wanted[column]
                self.conversions.add(
                    Conversion(cell.before.type, cell.after.type, cell.text, wanted[column], self.time_zone)
                )


def _order(step: Step) -> tuple[int, bool]:
    match step:
        case MergeRows(through=through):
            return through, False
        case AlterRows(commit_ts=commit_ts) | ExchangeRows(commit_ts=commit_ts):
            return commit_ts, True


def _by_cells(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], types: Mapping[str, MysqlType], protocol: str
) -> dict[tuple[Any, ...], list[Any]]:
    """Rows by their values."""
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        found[tuple(_comparable(types[column], row[column], protocol) for column in columns)].append(row)
    return found


_WITH_DIGITS = (Family.DECIMAL, Family.TIME, Family.DATETIME, Family.TIMESTAMP)


def _comparable(kind: MysqlType, value: Any, protocol: str) -> Any:
    """How many zeros end a number or a time of Debezium's is SQL's work."""
    if protocol != "debezium" or value is None or kind.family not in _WITH_DIGITS:
        return comparable(kind, value)
    return value.rstrip("0").rstrip(".") if "." in value else value


def _plain(value: Any) -> Any:
    """As `ticdc_testkit.comparison` takes an answer's value."""
    if isinstance(value, dict):
        return next(str(value[name]) for name in ("hex", "name", "names") if name in value)
    return None if value is None else str(value)


def merged(step: MergeRows, changes: Sequence[RowChange], rows: Sequence[Row]) -> list[Row]:
    """The newest change of each key: at one commit_ts a delete is before an upsert."""
    table = step.table
    if not table.key and not step.groups:
        return list(rows)
    if any(isinstance(row[name], Converted | Pending) for row in rows for name in table.key):
        raise UntracedError
    by_key = {_key(table, row): row for row in rows}
    assert len(by_key) == len(rows)
    within = (as_defined(table, row) for row in changes if step.after < commit_order(row) <= step.through)
    for row in sorted(within, key=lambda row: (commit_order(row), row.op is not Op.DELETE)):
        for key in filter(None, (row.old_handle_key, row.handle_key if row.op is Op.DELETE else None)):
            by_key.pop(_wire_key(step, row, key), None)
        if row.handle_key is None and row.before is not None:  # the definition alone knows a key
            whole = {**(row.after or {}), **row.before}  # of an update there may be the changed columns alone
            by_key.pop(_key(table, _named(table, whole)), None)
        if row.after is not None:
            assert row.after.keys() == {column.name for column in table.sent}
            new = _named(table, row.after)
            assert (
                row.handle_key is None or not step.wire_keys or _wire_key(step, row, row.handle_key) == _key(table, new)
            )
            by_key[_key(table, new)] = new
    return list(by_key.values())


def as_defined(table: Table, row: RowChange) -> RowChange:
    """A row with the values that stale flags made another kind of, as the definition has them."""
    types, partitioned = {column.name: column.type for column in table.sent}, table.partitioning is not None
    sent = (column for column in row.columns if column.name in types)
    misread = {c.name: c.type for c in sent if is_misread(c, types[c.name], partitioned=partitioned)}

    def image(of: Image | None) -> Image | None:
        changed = {name: _reread(misread[name], text) for name, text in (of or {}).items() if text and name in misread}
        return None if of is None else {**of, **changed}

    return replace(row, before=image(row.before), after=image(row.after)) if misread else row


def _reread(declared: str, text: str) -> str:
    """The text of bytes or the bytes of a text, of which rows declare the other one."""
    match declared:
        case "char" | "varchar":
            return unquoted(text).hex()
        case "binary" | "varbinary":
            characters = bytes.fromhex(text).decode(errors="surrogateescape")
            return "".join(c if category(c) == "Cn" else quoted(c.encode(errors="surrogateescape")) for c in characters)
    is_bytes = parse_type(declared).family is Family.BINARY
    return bytes.fromhex(text).decode() if is_bytes else text.encode().hex()


def _named(table: Table, image: Image) -> Row:
    """A row of an image that has all columns."""
    return {column.name: named_value(column, image[column.name]) for column in table.sent}


def _key(table: Table, row: Mapping[str, Cell]) -> tuple[Cell, ...]:
    return tuple(row[name] for name in table.key_text_columns)


def _wire_key(step: MergeRows, row: RowChange, text: str) -> tuple[Cell, ...]:
    """The values of the table's key of a row whose message has ``text`` as its handle key."""
    columns = {column.name: column for column in step.table.columns}
    named = key_order(column.name for column in row.columns if column.key)
    values: dict[str, str | None] = dict(zip(named, orjson.loads(text), strict=True))
    if not step.wire_keys:
        image = row.before if row.before is not None and text == (row.old_handle_key or row.handle_key) else row.after
        assert image is not None
        values |= image
    return tuple(named_value(columns[name], values[name]) for name in step.table.key_text_columns)


def named_value(column: ColumnDefinition, text: str | None) -> str | None:
    """ENUM and SET by name."""
    members = column.type.elements
    if text is None or not members or column.by == "name":
        return text
    if column.type.family is Family.ENUM:
        return ("", *members)[int(text)]
    return ",".join(member for at, member in enumerate(members) if int(text) >> at & 1)


def changed(effect: Effect, rows: Sequence[Row]) -> list[Row]:
    """The rows after an effect."""
    match effect:
        case RowsRemoved():
            return parted(effect, rows)[1]
        case KeyChanged():
            return list(rows)
        case ColumnConverted(before=before, may_show_default=True) if _may_not_store(before, rows):
            raise UntracedError  # gold blocks the table
        case _:
            return [_changed_row(effect, row) for row in rows]


def _may_not_store(before: ColumnDefinition, rows: Sequence[Row]) -> bool:
    """True if a row has the value of those that do not store the column (`gold.column_conversion`)."""
    first = before.origin_default
    if first is not None and not is_known(first):
        return bool(rows)
    shown = first.rstrip(" ") if first is not None and before.type.name == "char" else first
    values = {shown, None} if before.may_be_rewritten else {shown}
    return any(isinstance(row[before.name], Pending) or row[before.name] in values for row in rows)


def parted(part: RowsRemoved, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of a partition, and the others."""
    inside = [is_gone(part, row[part.column.name]) for row in rows]
    return (
        [row for row, gone in zip(rows, inside, strict=True) if gone],
        [row for row, gone in zip(rows, inside, strict=True) if not gone],
    )


def _changed_row(effect: Effect, row: Row) -> Row:
    match effect:
        case ColumnAdded(column=column, value=value):
            return {**row, column.name: Pending() if column.pending is not None else value}
        case ColumnDropped(column=column):
            return {name: cell for name, cell in row.items() if name != column.name}
        case ColumnRenamed(old=old, new=new):
            return {new if name == old else name: cell for name, cell in row.items()}
        case ColumnConverted(before=before, after=after):
            return {**row, after.name: _converted(before, after, row[after.name])}
        case _:
            raise NotImplementedError(effect)


def _converted(before: ColumnDefinition, after: ColumnDefinition, cell: Cell) -> Cell:
    if isinstance(cell, Converted):
        raise UntracedError
    if not isinstance(cell, str):
        return cell
    families = {before.type.family, after.type.family}
    if families == {Family.INTEGER}:
        least, most = whole_range(after.type)
        return _kept(cell, least <= int(cell) <= most)
    if families == {Family.TEXT} and after.type.name in ("char", "varchar"):
        text = cell.rstrip(" ") if after.type.name == "char" else cell
        return _kept(text, len(cell) <= after.type.digits)
    if families == {Family.TEXT}:
        return _kept(cell, before.type.name != "longtext")
    return Converted(before, after, cell)


def _kept(text: str, fits: bool) -> str:
    """A value that a MODIFY leaves as it is. Raises UntracedError for one that does not fit: gold blocks the table."""
    if not fits:
        raise UntracedError
    return text


_FUNCTIONS: Mapping[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "month": lambda day: day.month,
    "quarter": lambda day: (day.month + 2) // 3,
    "day": lambda day: day.day,
    "dayofmonth": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "weekday": lambda day: day.weekday(),
    "to_days": lambda day: day.toordinal() + 365,
}


def is_gone(part: RowsRemoved, cell: Cell) -> bool:
    """Whether a row is in the partition. Raises UntracedError for values that gold refuses."""
    if isinstance(cell, Converted | Pending):
        raise UntracedError
    if (part.low, part.high, part.values, part.remainder) == (None, None, None, None):
        return True
    value = None if cell is None else _partition_value(part, cell)
    if part.remainder is not None:
        number, count = part.remainder
        return number == 0 if value is None else abs(int(value)) % count == number
    if part.values is not None:
        return value in [None if text is None else _bound(part, text) for text in part.values]
    low, high = (None if text is None else _bound(part, text) for text in (part.low, part.high))
    if value is None:
        return low is None
    return (low is None or low <= value) and (high is None or value < high)


def _partition_value(part: RowsRemoved, text: str) -> Any:
    if part.function is None:
        return int(text) if part.column.type.family is Family.INTEGER else text
    try:
        return _FUNCTIONS[part.function](date.fromisoformat(text[:10]))
    except ValueError:
        raise UntracedError from None


def _bound(part: RowsRemoved, text: str) -> Any:
    whole = part.function is not None or part.column.type.family is Family.INTEGER
    return int(text) if whole else text
