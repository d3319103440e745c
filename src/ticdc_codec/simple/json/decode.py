"""Rows of Simple-JSON: read together by the type of their table, and one by one where one is not like the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ticdc_codec.batch import Events, Rows, checked_tso, collect_one
from ticdc_codec.bisect_failures import add_by_halves
from ticdc_codec.bounded_cache import make_room
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.json_text import Unreadable, names_of, quotes_of, unreadable
from ticdc_codec.message import stored_value
from ticdc_codec.message_prefix import Head
from ticdc_codec.options import Corruption, SinkOptions
from ticdc_codec.row_builder import Gathered, alone
from ticdc_codec.simple.control import add_control
from ticdc_codec.simple.json.kind import Kind, begin_of, by_begin, head_of
from ticdc_codec.simple.json.row import Row, check_names
from ticdc_codec.simple.json.table import Table
from ticdc_codec.simple.message import IMAGES, OPS, Envelope, read_envelope
from ticdc_codec.simple.schema import Schemas, layout_with

_ROW_BEGIN = b'{"version":1,"database":'
"""What both writers begin a row with, and nothing else; no more than a hint."""
_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODE = msgspec.json.Encoder().encode
_NO_NAMES: frozenset[str] = frozenset()

_TOGETHER = 512
"""Rows that are read before they are added: so many stay in a processor's cache."""


class JsonMessages:
    """Reads the messages of one batch after the other."""

    def __init__(self, options: SinkOptions, schemas: Schemas, stored: Mapping[str, bytes]) -> None:
        self._options = options
        self._schemas = schemas
        self._stored = stored
        self._tables: dict[Layout, Table] = {}
        self._by_begin: dict[bytes, tuple[Kind, Head]] = {}

    def read(self, values: Mapping[int, bytes], out: Events) -> Rows | None:
        """The row changes of messages (by number); other events and errors are added to ``out``."""
        rows = []
        for begin, numbers in by_begin(values).items():
            if values[numbers[0]].startswith(_ROW_BEGIN):
                rows.append((begin, numbers))
            else:
                rows += [(begin, [one]) for one in numbers if not self._is_control(one, values[one], out)]
        gathered = Gathered()
        for begin, numbers in rows:
            self._read_rows(begin, numbers, values, gathered, out)
        return gathered.rows()

    def _is_control(self, number: int, value: bytes, out: Events) -> bool:
        """Whether the message is no row; then its event or its error has been added."""
        length = len(out)
        collect_one(self._control, number, None, value, out)
        return len(out) > length

    def _control(self, _: bytes | None, value: bytes | None, out: Events) -> None:
        envelope = read_envelope(value or b"")
        if not envelope.is_row:
            _check_names(value or b"", envelope)
            add_control(envelope, self._schemas, out)

    def _read_rows(
        self, begin: bytes, numbers: list[int], values: Mapping[int, bytes], gathered: Gathered, out: Events
    ) -> None:
        """Add rows that begin alike: together if they are known, or once the first row has shown how they are."""
        if begin not in self._by_begin:
            first, *numbers = numbers
            self._alone(first, values[first], gathered, out)
        for start in range(0, len(numbers), _TOGETHER):
            some = numbers[start : start + _TOGETHER]
            known = self._by_begin.get(begin)
            if known is None:
                for number in some:
                    self._alone(number, values[number], gathered, out)
            else:
                self._together(*known, some, values, gathered, out)

    def _together(
        self,
        kind: Kind,
        head: Head,
        numbers: Sequence[int],
        values: Mapping[int, bytes],
        gathered: Gathered,
        out: Events,
    ) -> None:
        """Add rows. One that has any fault, or is not like the others, is left to its envelope."""
        begin = len(head.text)

        def add_all(numbers: Sequence[int]) -> bool:
            chosen = [values[number] for number in numbers]
            commits = head.numbers(chosen)
            if commits is None:
                return False
            texts = [b"{" + value[begin:] for value in chosen]
            self._add(kind, numbers, commits, texts, [*map(kind.table.read, texts)], gathered)
            return True

        add_by_halves(numbers, add_all, lambda number: self._alone(number, values[number], gathered, out))

    def _alone(self, number: int, value: bytes, gathered: Gathered, out: Events) -> None:
        """Add the row of one message."""

        def add(_: bytes | None, value: bytes | None, out: Events) -> None:
            self._by_envelope(number, value or b"", gathered, out)

        collect_one(add, number, None, value, out)

    def _by_envelope(self, number: int, value: bytes, gathered: Gathered, out: Events) -> None:
        envelope = read_envelope(value)
        if not envelope.is_row:
            # It began as rows do.
            return self._control(None, value, out)
        if envelope.claim_check_location is not None:
            value, envelope = self._claimed(envelope, envelope.claim_check_location)
        kind = self._kind_of(value, envelope)
        try:
            text = _after_head(envelope)
            rows = [kind.table.read(text)]
            _check_names(value, envelope)
            self._add(kind, [number], [checked_tso(envelope.commit_ts)], [text], rows, gathered)
        except DecodeError as error:
            raise envelope.fault(error.reason, error.detail, offset=error.offset) from None
        except Unreadable as error:
            fault = unreadable(error, value)
            raise envelope.fault(fault.reason, f"in a row image: {fault.detail}", offset=fault.offset) from None
        head = head_of(value)
        if head is not None:
            make_room(self._by_begin)
            self._by_begin[begin_of(value)] = (kind, head)
        return None

    def _claimed(self, envelope: Envelope, location: str) -> tuple[bytes, Envelope]:
        """The whole message that lies in claim-check storage, in place of the one that names it."""
        try:
            value = stored_value(self._stored, location, self._options)
            claimed = read_envelope(value)
        except DecodeError as error:
            raise envelope.fault(error.reason, f"at {location}: {error.detail}") from None
        one, other = (
            (each.database, each.table, each.type, each.commit_ts, each.schema_version) for each in (envelope, claimed)
        )
        if one != other or claimed.claim_check_location is not None or claimed.handle_key_only:
            raise envelope.fault("claim_check_mismatch", f"expected the row {one} at {location}, found {other}")
        return value, claimed

    def _kind_of(self, value: bytes, envelope: Envelope) -> Kind:
        """The kind of a row, its table as its schema and the columns of its images describe it. Raises DecodeError."""
        database, table, version = envelope.database, envelope.table, envelope.schema_version
        if database is None or table is None or version is None or envelope.table_id is None:
            detail = "expected database, table, tableID and schemaVersion in a row"
            raise DecodeError("missing_member", detail)
        _check_row(envelope)
        layout = self._schemas.find(database, table, version)
        try:
            data, old = (_columns_of(image) for image in (envelope.data, envelope.old))
            layout = layout_with(layout, _one_choice(data, old))
        except DecodeError as error:
            raise envelope.fault(error.reason, error.detail) from None
        except Unreadable as error:
            fault = unreadable(error, value)
            raise envelope.fault(fault.reason, f"in a row image: {fault.detail}") from None
        found = self._tables.get(layout)
        if found is None:
            make_room(self._tables)
            found = self._tables[layout] = Table(layout, self._options.time_zone)
        return Kind(table=found, op=OPS[envelope.type], table_id=envelope.table_id)

    def _add(
        self,
        kind: Kind,
        numbers: Sequence[int],
        commits: list[int],
        texts: Sequence[bytes],
        rows: list[Row],
        gathered: Gathered,
    ) -> None:
        """Add rows of one kind, read from these texts. Raises DecodeError if one has a fault."""
        table, op, count = kind.table, kind.op, len(rows)
        data = [row.data for row in rows if row.data is not None]
        old = [row.old for row in rows if row.old is not None]
        if (len(data), len(old)) != tuple(count * given for given in IMAGES[op]):
            raise DecodeError("missing_member", f"expected the images of an {op} in each row")
        wire, after = table.texts(data)
        wire_old, before = table.texts(old)
        check_names(texts, rows, wire, wire_old)
        if self._options.corruption_handle_level is Corruption.ERROR:
            table.check_sums(rows)
        gathered.add_columns(
            alone(numbers),
            op,
            (commits, None),
            table.layout,
            (table.handle_keys(data or old), table.old_handle_keys(old, data) if op is Op.UPDATE else None),
            (before, after),
            handle_only=[row.handle_key_only for row in rows],
            table_ids=[kind.table_id] * count,
        )


def _check_names(value: bytes, envelope: Envelope) -> None:
    """Raise DecodeError if a name occurs twice: that makes two more quotes than the members that were read need."""
    if quotes_of(value) != quotes_of(_ENCODE(envelope)):
        names_of(value)


def _columns_of(image: Any) -> frozenset[str]:
    return frozenset(_NAMES.decode(image)) if bytes(image) else _NO_NAMES


def _one_choice(data: frozenset[str], old: frozenset[str]) -> frozenset[str]:
    if data and old and data != old:
        raise DecodeError("wrong_columns", f"expected one choice of columns, found {sorted(data)} and {sorted(old)}")
    return data or old


def _check_row(envelope: Envelope) -> None:
    """Which images a row has, and what it has not."""
    expected = IMAGES[OPS[envelope.type]]
    found = (bytes(envelope.data) != b"", bytes(envelope.old) != b"")
    if found != expected:
        detail = f"expected data and old of an {envelope.type} to be there as {expected}, found {found}"
        raise envelope.fault("missing_member" if found < expected else "wrong_type", detail)
    others = ("sql", "table_schema", "pre_table_schema")
    if any(getattr(envelope, name) is not None for name in others):
        raise envelope.fault("unknown_member", f"expected none of {others} in a row")
    if envelope.table_id is not None and not -(1 << 63) <= envelope.table_id < 1 << 63:
        raise envelope.fault("out_of_range", f"expected a tableID of 64 bits, found {envelope.table_id}")


def _after_head(envelope: Envelope) -> bytes:
    """The members of a row after its head, as a JSON object."""
    data, old = (image if bytes(image) else None for image in (envelope.data, envelope.old))
    return _ENCODE(Row(envelope.handle_key_only, envelope.checksum, data, old))
