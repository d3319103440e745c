"""Events to Craft messages, byte for byte as tiflow v5.2 to v8.1 writes them (wire.md 1.1.2 to 1.1.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ticdc_codec.craft.compose import Composer, Groups, Header
from ticdc_codec.craft.frame import NO_TERM, EventType, GroupType
from ticdc_codec.craft.plan import Plan, Plans
from ticdc_codec.craft.text import group_bytes
from ticdc_codec.event import Bootstrap, Ddl, Event, Failure, Resolved, RowChange
from ticdc_codec.message import Message
from ticdc_codec.number import uvarint
from ticdc_codec.options import SinkOptions

_NEW, _OLD = GroupType.NEW, GroupType.OLD


def encode(events: Sequence[Event], options: SinkOptions) -> list[Message]:
    """The events as messages, without bootstraps: Craft has none. Raises ValueError for what Craft cannot write."""
    rows = [event for event in events if isinstance(event, RowChange)]
    writer = _Writer(options, _groups(rows, options))
    for event in events:
        writer.add(event)
    writer.flush()
    return writer.messages


def _groups(rows: Sequence[RowChange], options: SinkOptions) -> Iterator[Groups]:
    """The column groups of each row: the values of all are written together."""
    plans = Plans(only_keys=options.delete_only_output_handle_key_columns)
    chosen: list[Plan] = []
    texts: list[str | None] = []
    for row in rows:
        for kind, image in ((_NEW, row.after), (_OLD, row.before)):
            if image is not None:
                plan = plans.of(kind, row.columns, tuple(image), deleted=row.after is None)
                chosen.append(plan)
                texts += plan.values(image)
    forms = [plan.forms for plan in chosen]
    groups = zip(chosen, group_bytes(texts, b"".join(forms), [*map(len, forms)]), strict=True)
    for row in rows:
        yield tuple(islice(groups, (row.after is not None) + (row.before is not None)))


class _Writer:
    """Batches row changes; DDLs and watermarks are messages of their own."""

    def __init__(self, options: SinkOptions, groups: Iterator[Groups]) -> None:
        self.messages: list[Message] = []
        self._options = options
        self._composer = Composer()
        self._following = groups
        """The row changes' column groups, in the order of the events."""
        self._rows: list[RowChange] = []
        self._groups: list[Groups] = []
        self._size = 0

    def add(self, event: Event) -> None:
        match event:
            case RowChange():
                self._add_row(event, next(self._following))
            case Ddl():
                query = event.query.encode()
                body = uvarint(_ddl_type(event)) + uvarint(len(query)) + query
                self._add_alone(EventType.DDL, _commit_ts(event), body, event.database, event.table)
            case Resolved(commit_ts=commit_ts):
                self._add_alone(EventType.RESOLVED, commit_ts)
            case Bootstrap():
                pass
            case Failure():
                raise ValueError(f"a message that did not decode has no events to encode: {event.detail}")

    def flush(self) -> None:
        """Close the message that collects row changes."""
        if self._rows:
            self.messages.append(self._composer.rows(_header(self._rows), self._groups))
        self._rows, self._groups, self._size = [], [], 0

    def _add_alone(
        self, kind: EventType, commit_ts: int, body: bytes = b"", database: str | None = None, table: str | None = None
    ) -> None:
        self.flush()
        header = Header(kind=kind, commit_ts=[commit_ts], partitions=[NO_TERM], databases=[database], tables=[table])
        self.messages.append(self._composer.alone(header, body))

    def _add_row(self, row: RowChange, groups: Groups) -> None:
        self._rows.append(row)
        self._groups.append(groups)
        for plan, values in groups:
            self._size += len(values) + 4 * len(plan.names)
        # As TiCDC does it: a message is closed once it is over the limit, so it may exceed it.
        if len(self._rows) >= self._options.max_batch_size or self._size > self._options.max_message_bytes:
            self.flush()


def _header(rows: Sequence[RowChange]) -> Header:
    return Header(
        kind=EventType.ROW,
        commit_ts=[_commit_ts(row) for row in rows],
        partitions=[NO_TERM if row.table_id is None else row.table_id for row in rows],
        databases=[row.database for row in rows],
        tables=[row.table for row in rows],
    )


def _commit_ts(event: RowChange | Ddl) -> int:
    if event.commit_ts is None:
        raise ValueError(f"Craft needs a commit_ts, {event.database}.{event.table} has none")
    return event.commit_ts


def _ddl_type(ddl: Ddl) -> int:
    if ddl.type is None or not ddl.type.isdecimal():
        raise ValueError(f"Craft needs TiDB's number of a DDL's type, found {ddl.type}: {ddl.query}")
    return int(ddl.type)
