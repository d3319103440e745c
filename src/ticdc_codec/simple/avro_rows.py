"""Messages of Simple in Avro: rows all at once, one field of all of them after the other; others one by one.

Fields of a row before its images (wire.md 1.3.2): version int, database string, table string, tableID, type enum,
commitTs, buildTs, schemaVersion, claimCheckLocation [null, string], handleKeyOnly [null, boolean],
checksum [null, Checksum].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.batch import Events, RowBatch
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.message import stored_value
from ticdc_codec.number import Bools, Int64s, read_uvarint
from ticdc_codec.options import Corruption, SinkOptions
from ticdc_codec.simple.avro_cursors import ColumnNames, Cursors
from ticdc_codec.simple.avro_images import Entries, Images, read_maps
from ticdc_codec.simple.avro_message import read_control
from ticdc_codec.simple.avro_schema import ROW
from ticdc_codec.simple.checksum import check
from ticdc_codec.simple.message import VERSION, Checksum, add_control
from ticdc_codec.simple.schema import Schemas

OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)
"""In the order of the schema's enum."""
_INSERT, _UPDATE, _DELETE = range(len(OPS))


class AvroMessages:
    """Decodes batches of Simple in Avro."""

    def __init__(self, options: SinkOptions, schemas: Schemas, stored: Mapping[str, bytes]) -> None:
        self._options = options
        self._schemas = schemas
        self._stored = stored

    def read(self, values: Mapping[int, bytes], out: Events) -> RowBatch | None:
        """Returns the row changes of messages (by their index in the batch); adds other events and errors to
        ``out``."""
        for number, value in values.items():
            if not value.startswith(ROW):
                self._add_control(number, value, out)
        rows = {number: value for number, value in values.items() if value.startswith(ROW)}
        return self._rows(rows, out) if rows else None

    def _add_control(self, number: int, value: bytes, out: Events) -> None:
        """Adds the event of a message that is no row, or its failure."""
        out.message = number
        try:
            add_control(read_control(value), self._schemas, out)
        except DecodeError as error:
            out.error(error)

    def _rows(self, values: Mapping[int, bytes], out: Events) -> RowBatch:
        contents = [*values.values()]
        cursors, headers, claims = self._headers(contents)
        images = self._images(cursors, headers)
        if self._options.corruption_handle_level is Corruption.ERROR:
            _check_sums(cursors, headers, images, self._options.time_zone)
        numbers = np.array([*values], np.int32)
        rows = _row_columns(cursors, headers, images, numbers)
        cursors.name_faults(contents)
        for message, error in cursors.errors.items():
            out.message = int(numbers[message])
            out.error(_with_table(error, headers.names[message], claims.get(message)))
        return rows

    def _images(self, cursors: Cursors, headers: Headers) -> Images:
        """Returns the images: all ``data``, then all ``old``. Reads the messages to their ends."""
        layouts, layout = _layouts_of(headers, cursors, self._schemas)
        names = ColumnNames(layouts)
        entries = Entries()
        _read_images(cursors, headers.op != _DELETE, layout, names, entries)
        entries.number_from(len(layout))
        _read_images(cursors, headers.op != _INSERT, layout, names, entries)
        cursors.finish(cursors.all_valid())
        valid = cursors.are_valid()
        # exists[i]: True if image i exists: data of message i, then old of message i - len(layout).
        exists = np.append(valid & (headers.op != _DELETE), valid & (headers.op != _INSERT))
        arrays = entries.arrays(exists)  # without entries of messages that have failed
        return Images(cursors, layouts, names, arrays, np.tile(layout, 2), exists, self._options.time_zone)

    def _headers(self, values: list[bytes]) -> tuple[Cursors, Headers, dict[int, str]]:
        """Returns the messages up to their images, and the claim-check location of each that names one.

        Such a message is replaced in ``values`` by the row in claim-check storage (wire.md 1.3.6).
        """
        cursors = Cursors(values, len(ROW))
        headers = _read_headers(cursors, values)
        valid = cursors.are_valid()
        claims = {number: location for number, location in headers.locations.items() if valid[number]}
        if not claims:
            return cursors, headers, claims
        faults = {}
        for number, location in claims.items():
            try:
                values[number] = self._stored_row(location)
            except DecodeError as error:
                faults[number] = error
        cursors = Cursors(values, len(ROW))
        claimed = _read_headers(cursors, values)
        for number in claims:
            fault = faults.get(number) or _mismatch(headers, claimed, number)
            if fault is not None:
                cursors.fail(number, fault)
        return cursors, claimed, claims

    def _stored_row(self, location: str) -> bytes:
        value = stored_value(self._stored, location, self._options)
        if not value.startswith(ROW):
            raise DecodeError("claim_check_mismatch", f"expected a row, found {value[:3].hex(' ')}")
        return value


def _mismatch(headers: Headers, claimed: Headers, number: int) -> DecodeError | None:
    """Returns the error if a row in claim-check storage is not the one that a message names, else None."""
    one, other = (
        (each.names[number], OPS[each.op[number]], int(each.commit_ts[number]), int(each.schema_version[number]))
        for each in (headers, claimed)
    )
    if one == other and number not in claimed.locations and not claimed.handle_only[number]:
        return None
    return DecodeError("claim_check_mismatch", f"expected the row {one}, found {other}")


def _with_table(error: DecodeError, name: tuple[str, str] | None, location: str | None) -> DecodeError:
    """Returns the error with the row's table, and with the claim-check object in which it is."""
    detail = error.detail if location is None else f"at {location}: {error.detail}"
    database, table = name or (None, None)
    return DecodeError(error.reason, detail, offset=error.offset, database=database, table=table)


def _read_images(cursors: Cursors, expected: Bools, layout: Int64s, names: ColumnNames, entries: Entries) -> None:
    """Reads ``data`` or ``old`` of all messages: an INSERT has no ``old``, a DELETE no ``data`` (wire.md 1.3.1)."""
    messages = cursors.all_valid()
    at = cursors.at[messages]
    present = cursors.numbers_to(messages, 1) == 1
    wrong = present != expected[messages]
    cursors.refuse(messages, wrong, "wrong_type", lambda n: f"expected an image: {not present[n]}", at)
    read_maps(cursors, messages[present], layout, names, entries)


def _check_sums(cursors: Cursors, headers: Headers, images: Images, zone: ZoneInfo) -> None:
    """Refuses rows whose values do not have their checksums (wire.md 1.3.4)."""
    count = len(headers.op)
    valid = cursors.are_valid()
    for message, checksum in headers.checksums.items():
        if not valid[message]:
            continue
        # The checksum is of the whole row: one of its handle key only may be corrupted, and shows no more.
        numbers = (message, message + count)
        data, old = (None if headers.handle_only[message] else images.texts_of(number) for number in numbers)
        columns = images.layouts_found[
            images.layout_index[message if headers.op[message] != _DELETE else message + count]
        ].columns
        try:
            check(checksum, columns, data, old, zone)
        except DecodeError as error:
            cursors.fail(message, error)


def _row_columns(cursors: Cursors, headers: Headers, images: Images, numbers: npt.NDArray[np.int32]) -> RowBatch:
    """Returns the row changes of the valid messages."""
    count = len(numbers)
    updates = np.flatnonzero(cursors.are_valid() & (headers.op == _UPDATE))
    differ = images.layout_index[updates] != images.layout_index[updates + count]
    cursors.refuse(
        updates, differ, "wrong_columns", lambda _: "expected the same columns in data and old", cursors.at[updates]
    )
    messages = cursors.all_valid()
    # after[r], before[r]: index of row r's image in images.texts and images.keys, -1 for none.
    op, after, before = headers.op[messages], images.number[messages], images.number[messages + count]
    key, old_key = (images.keys.take(_nullable(each)) for each in (np.where(op == _DELETE, before, after), before))
    return RowBatch(
        message=numbers[messages],
        index=np.zeros(len(messages), np.int64),
        op=pa.array(OPS, pa.string()).take(pa.array(op)),
        commit_ts=pa.array(headers.commit_ts[messages].view(np.uint64)),
        layouts=images.layouts_found,
        layout=images.layout_index[np.where(op == _DELETE, messages + count, messages)],
        table_id=pa.array(headers.table_id[messages]),
        handle_key=key,
        old_handle_key=pc.if_else(pc.not_equal(key, old_key), old_key, None),
        before=images.texts.take(_nullable(before)),
        after=images.texts.take(_nullable(after)),
        handle_only=pa.array(headers.handle_only[messages]),
    )


def _nullable(indices: Int64s) -> pa.Array:
    """Returns indices for Arrow's ``take``, null where they are negative."""
    return pa.array(indices, mask=indices < 0)


@dataclass(frozen=True, slots=True, eq=False)
class Headers:
    """The headers of messages, one item each; the items of messages that have failed have no meaning."""

    names: list[tuple[str, str] | None]
    """Database and table; None for a message that failed before them."""
    table_id: Int64s
    op: Int64s
    commit_ts: Int64s
    schema_version: Int64s
    locations: dict[int, str]
    """Claim-check locations, by index of the message."""
    handle_only: Bools
    checksums: dict[int, Checksum]


def _read_headers(cursors: Cursors, values: Sequence[bytes]) -> Headers:
    """Returns the headers of all messages. Messages without a valid one are refused or marked."""
    messages = np.arange(len(values))
    at = cursors.at.copy()
    version = cursors.longs(messages)
    wrong = version != VERSION
    cursors.refuse(messages, wrong, "unknown_version", lambda n: f"expected version {VERSION}, found {version[n]}", at)
    names = _read_names(cursors, values)
    table_id = cursors.longs(messages)
    op = cursors.numbers_to(messages, len(OPS) - 1)
    commit_ts = _read_tso(cursors, messages, "commitTs")
    cursors.longs(messages)  # buildTs: the writer's clock, which nothing is read from
    schema_version = _read_tso(cursors, messages, "schemaVersion")
    locations = _read_locations(cursors, messages, values)
    handle_only = np.zeros(len(values), bool)
    some = cursors.optionals(messages)
    handle_only[some] = cursors.booleans(some)
    checksums = _read_checksums(cursors, messages)
    return Headers(names, table_id, op, commit_ts, schema_version, locations, handle_only, checksums)


def _read_names(cursors: Cursors, values: Sequence[bytes]) -> list[tuple[str, str] | None]:
    """Returns database and table of each message, None for one that has failed. Equal bytes are decoded once."""
    messages = np.arange(len(values))
    # first[m], middle[m], last[m]: offsets in message m of its database's size, its table's size, and what follows.
    first = cursors.at - cursors.begin
    cursors.sized(messages)
    middle = cursors.at - cursors.begin
    cursors.sized(messages)
    last = cursors.at - cursors.begin
    names: list[tuple[str, str] | None] = [None] * len(values)
    valid = cursors.all_valid()
    read: dict[bytes, tuple[str, str] | None] = {}
    offsets = (each.tolist() for each in (valid, first[valid], middle[valid], last[valid]))
    for number, start, between, end in zip(*offsets, strict=True):
        text = values[number][start:end]
        if text not in read:
            read[text] = _decoded_names(text[: between - start], text[between - start :])
        names[number] = read[text]
        if names[number] is None:
            cursors.mark_malformed(np.array([number]))
    return names


def _decoded_names(*texts: bytes) -> tuple[str, str] | None:
    """Decodes two strings with their sizes before them; None if they are not UTF-8."""
    try:
        database, table = (text[read_uvarint(text, 0, len(text))[1] :].decode() for text in texts)
    except UnicodeDecodeError:
        return None
    return database, table


def _read_tso(cursors: Cursors, messages: Int64s, name: str) -> Int64s:
    start = cursors.at[messages]
    tso = cursors.longs(messages)
    cursors.refuse(messages, tso < 0, "out_of_range", lambda n: f"a {name} is 0 to 2^63 - 1, found {tso[n]}", start)
    return tso


def _read_locations(cursors: Cursors, messages: Int64s, values: Sequence[bytes]) -> dict[int, str]:
    present = cursors.optionals(messages)
    starts, sizes = cursors.sized(present)
    locations = {}
    for number, start, size in zip(present.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        at = start - int(cursors.begin[number])
        try:
            locations[number] = values[number][at : at + size].decode()
        except UnicodeDecodeError:
            cursors.mark_malformed(np.array([number]))
    return locations


def _read_checksums(cursors: Cursors, messages: Int64s) -> dict[int, Checksum]:
    present = cursors.optionals(messages)
    version, corrupted = cursors.longs(present), cursors.booleans(present)
    current, previous = cursors.longs(present), cursors.longs(present)
    fields = (each.tolist() for each in (present, version, corrupted, current, previous))
    return {number: Checksum(*values) for number, *values in zip(*fields, strict=True)}


def _layouts_of(headers: Headers, cursors: Cursors, schemas: Schemas) -> tuple[list[Layout], Int64s]:
    """Returns the layouts that messages name, and the index of each message's. Messages whose schema is missing are
    refused."""
    layouts: list[Layout] = []
    known: dict[tuple[tuple[str, str] | None, int], int | DecodeError] = {}
    numbers = np.zeros(len(headers.names), np.int64)
    valid = cursors.all_valid()
    for message, version in zip(valid.tolist(), headers.schema_version[valid].tolist(), strict=True):
        name = headers.names[message]
        number = known.get((name, version))
        if number is None:
            number = known[name, version] = _find(name or ("", ""), version, schemas, layouts)
        if isinstance(number, DecodeError):
            cursors.fail(message, number)
        else:
            numbers[message] = number
    return layouts, numbers


def _find(name: tuple[str, str], version: int, schemas: Schemas, layouts: list[Layout]) -> int | DecodeError:
    try:
        layouts.append(schemas.find(*name, version))
    except DecodeError as error:
        return error
    return len(layouts) - 1
