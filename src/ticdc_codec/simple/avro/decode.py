"""Messages of Simple-Avro: controls one by one, rows all at once."""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ticdc_codec.batch import Events, Rows, collect_one
from ticdc_codec.claim_check import stored_value
from ticdc_codec.errors import DecodeError
from ticdc_codec.number import Bits, Places
from ticdc_codec.options import Corruption, SinkOptions
from ticdc_codec.simple.avro.control import ROW, read_control
from ticdc_codec.simple.avro.cursors import Cursors
from ticdc_codec.simple.avro.header import OPS, Headers, layouts_of, read_headers
from ticdc_codec.simple.avro.images import Images
from ticdc_codec.simple.avro.maps import Entries, read_maps
from ticdc_codec.simple.avro.names import ColumnNames
from ticdc_codec.simple.checksum import check
from ticdc_codec.simple.control import add_control
from ticdc_codec.simple.external_schemas import Schemas

_INSERT, _UPDATE, _DELETE = range(len(OPS))


class AvroMessages:
    """Reads the messages of one batch after the other."""

    def __init__(self, options: SinkOptions, schemas: Schemas, stored: Mapping[str, bytes]) -> None:
        self._options = options
        self._schemas = schemas
        self._stored = stored

    def read(self, values: Mapping[int, bytes], out: Events) -> Rows | None:
        """The row changes of messages (by number); other events and errors are added to ``out``."""
        for number, value in values.items():
            if not value.startswith(ROW):
                collect_one(self._control, number, None, value, out)
        rows = {number: value for number, value in values.items() if value.startswith(ROW)}
        return self._rows(rows, out) if rows else None

    def _control(self, _: bytes | None, value: bytes | None, out: Events) -> None:
        add_control(read_control(value or b""), self._schemas, out)

    def _rows(self, values: Mapping[int, bytes], out: Events) -> Rows:
        cursors, headers, claims = self._headers([*values.values()])
        images = self._images(cursors, headers)
        if self._options.corruption_handle_level is Corruption.ERROR:
            _check_sums(cursors, headers, images, self._options.time_zone)
        numbers = np.array([*values], np.int32)
        rows = _row_columns(cursors, headers, images, numbers)
        for message, error in cursors.errors.items():
            out.message = int(numbers[message])
            out.error(_told(error, headers.names[message], claims.get(message)))
        return rows

    def _images(self, cursors: Cursors, headers: Headers) -> Images:
        """The images, ``data`` before ``old``; messages are read to their ends."""
        layouts, layout = layouts_of(headers, cursors, self._schemas)
        names = ColumnNames(layouts)
        entries = Entries()
        _read_images(cursors, headers.op != _DELETE, layout, names, entries)
        entries.number_from(len(layout))
        _read_images(cursors, headers.op != _INSERT, layout, names, entries)
        everyone = np.arange(len(layout))
        cursors.finish(cursors.living(everyone))
        alive = np.zeros(len(layout), bool)
        alive[cursors.living(everyone)] = True
        exists = np.append(alive & (headers.op != _DELETE), alive & (headers.op != _INSERT))
        kept = entries.arrays(exists)
        return Images(cursors, layouts, names, kept, np.tile(layout, 2), exists, self._options.time_zone)

    def _headers(self, values: list[bytes]) -> tuple[Cursors, Headers, dict[int, str]]:
        """The messages up to their images; those that lie in claim-check storage in place of those that name them."""
        cursors = Cursors(values, len(ROW))
        headers = read_headers(cursors, values)
        claims = {number: place for number, place in headers.locations.items() if number not in cursors.errors}
        if not claims:
            return cursors, headers, claims
        faults = {}
        for number, location in claims.items():
            try:
                values[number] = self._stored_row(location)
            except DecodeError as error:
                faults[number] = error
        cursors = Cursors(values, len(ROW))
        claimed = read_headers(cursors, values)
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
    """What is wrong with a stored row in place of the one that names it."""
    one, other = (
        (each.names[number], OPS[each.op[number]], int(each.commit_ts[number]), int(each.schema_version[number]))
        for each in (headers, claimed)
    )
    if one == other and number not in claimed.locations and not claimed.handle_only[number]:
        return None
    return DecodeError("claim_check_mismatch", f"expected the row {one}, found {other}")


def _told(error: DecodeError, name: tuple[str, str] | None, location: str | None) -> DecodeError:
    """The error with its table, and with the object in which it is."""
    detail = error.detail if location is None else f"at {location}: {error.detail}"
    database, table = name or (None, None)
    return DecodeError(error.reason, detail, offset=error.offset, database=database, table=table)


def _read_images(cursors: Cursors, expected: Bits, layout: Places, names: ColumnNames, entries: Entries) -> None:
    """``data`` or ``old`` of all messages; an INSERT has no ``old`` and a DELETE no ``data``."""
    who = cursors.living(np.arange(len(layout)))
    at = cursors.at[who]
    found = cursors.numbers_to(who, 1, "a type of a union") == 1
    wrong = found != expected[who]
    cursors.refuse(who, wrong, "wrong_type", lambda n: f"expected an image: {not found[n]}", at)
    read_maps(cursors, who[found], layout, names, entries)


def _check_sums(cursors: Cursors, headers: Headers, images: Images, zone: ZoneInfo) -> None:
    """Refuse rows that are not those of their checksums."""
    count = len(headers.op)
    for message, checksum in headers.checksums.items():
        if message in cursors.errors or headers.handle_only[message]:
            continue
        data, old = (images.texts_of(number) for number in (message, message + count))
        columns = images.shapes[images.shape[message if headers.op[message] != _DELETE else message + count]].columns
        try:
            check(checksum, columns, data, old, zone)
        except DecodeError as error:
            cursors.fail(message, error)


def _row_columns(cursors: Cursors, headers: Headers, images: Images, numbers: npt.NDArray[np.int32]) -> Rows:
    """The row changes of the messages that have not been refused."""
    count = len(numbers)
    everyone = cursors.living(np.arange(count))
    updates = everyone[headers.op[everyone] == _UPDATE]
    differ = images.shape[updates] != images.shape[updates + count]
    cursors.refuse(
        updates, differ, "wrong_columns", lambda _: "expected the same columns in data and old", cursors.at[updates]
    )
    who = cursors.living(everyone)
    op, after, before = headers.op[who], images.number[who], images.number[who + count]
    key, old_key = (images.keys.take(_taken(each)) for each in (np.where(op == _DELETE, before, after), before))
    return Rows(
        message=numbers[who],
        index=np.zeros(len(who), np.int64),
        op=pa.array(OPS, pa.string()).take(pa.array(op)),
        commit_ts=pa.array(headers.commit_ts[who].view(np.uint64)),
        layouts=images.shapes,
        layout=images.shape[np.where(op == _DELETE, who + count, who)],
        table_id=pa.array(headers.table_id[who]),
        handle_key=key,
        old_handle_key=pc.if_else(pc.not_equal(key, old_key), old_key, None),
        before=images.texts.take(_taken(before)),
        after=images.texts.take(_taken(after)),
        handle_only=pa.array(headers.handle_only[who]),
    )


def _taken(places: Places) -> pa.Array:
    return pa.array(places, mask=places < 0)
