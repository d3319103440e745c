"""What comes before a row's images in Avro (wire.md 1.3.2).

version int, database string, table string, tableID, type enum, commitTs, buildTs, schemaVersion,
claimCheckLocation [null, string], handleKeyOnly [null, boolean], checksum [null, Checksum]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Layout, Op
from ticdc_codec.number import Bits, Places
from ticdc_codec.simple.avro.control import Reader
from ticdc_codec.simple.avro.cursors import Cursors
from ticdc_codec.simple.external_schemas import Schemas
from ticdc_codec.simple.message import VERSION, Checksum

OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)
"""In the order of the schema's enum."""


@dataclass(frozen=True, slots=True, eq=False)
class Headers:
    """The headers of messages, an item each. Those of messages that were refused mean nothing."""

    names: list[tuple[str, str] | None]
    """Database and table; None of a message that was not read as far."""
    table_id: Places
    op: Places
    commit_ts: Places
    schema_version: Places
    locations: dict[int, str]
    """Where rows lie that are too large for a message, by number."""
    handle_only: Bits
    checksums: dict[int, Checksum]


def read_headers(cursors: Cursors, values: Sequence[bytes]) -> Headers:
    """The headers of all messages; those that have none are refused."""
    who = np.arange(len(values))
    at = cursors.at.copy()
    version = cursors.longs(who)
    wrong = version != VERSION
    cursors.refuse(who, wrong, "unknown_version", lambda n: f"expected version {VERSION}, found {version[n]}", at)
    names = _read_names(cursors, values)
    table_id = cursors.longs(who)
    op = cursors.numbers_to(who, len(OPS) - 1, "a type of row change")
    commit_ts = _read_tso(cursors, who, "commitTs")
    cursors.longs(who)  # buildTs, the writer's clock
    schema_version = _read_tso(cursors, who, "schemaVersion")
    locations = _read_locations(cursors, who, values)
    handle_only = np.zeros(len(values), bool)
    some = cursors.optionals(who)
    handle_only[some] = cursors.booleans(some)
    checksums = _read_checksums(cursors, who)
    return Headers(names, table_id, op, commit_ts, schema_version, locations, handle_only, checksums)


def _read_names(cursors: Cursors, values: Sequence[bytes]) -> list[tuple[str, str] | None]:
    who = np.arange(len(values))
    starts = cursors.at - cursors.begin
    for _ in ("database", "table"):
        cursors.sized(who)
    ends = cursors.at - cursors.begin
    found: dict[bytes, tuple[str, str] | DecodeError] = {}
    names: list[tuple[str, str] | None] = [None] * len(values)
    alive = cursors.living(who).tolist()
    for number, start, end in zip(alive, starts[alive].tolist(), ends[alive].tolist(), strict=True):
        text = values[number][start:end]
        name = found.get(text)
        if name is None:
            name = found[text] = _names_in(text, start)
        if isinstance(name, DecodeError):
            cursors.fail(number, name)
        else:
            names[number] = name
    return names


def _names_in(text: bytes, start: int) -> tuple[str, str] | DecodeError:
    reader = Reader(text, 0)
    try:
        return reader.text(), reader.text()
    except DecodeError as error:
        return DecodeError(error.reason, error.detail, offset=start + (error.offset or 0))


def _read_tso(cursors: Cursors, who: Places, name: str) -> Places:
    start = cursors.at[who]
    tso = cursors.longs(who)
    cursors.refuse(who, tso < 0, "out_of_range", lambda n: f"a {name} is 0 to 2^63 - 1, found {tso[n]}", start)
    return tso


def _read_locations(cursors: Cursors, who: Places, values: Sequence[bytes]) -> dict[int, str]:
    some = cursors.optionals(who)
    starts, sizes = cursors.sized(some)
    locations = {}
    for number, start, size in zip(some.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        at = start - int(cursors.begin[number])
        try:
            locations[number] = values[number][at : at + size].decode()
        except UnicodeDecodeError as fault:
            cursors.fail(number, DecodeError("bad_utf8", f"expected UTF-8, found {fault.reason}", offset=at))
    return locations


def _read_checksums(cursors: Cursors, who: Places) -> dict[int, Checksum]:
    some = cursors.optionals(who)
    version, corrupted = cursors.longs(some), cursors.booleans(some)
    current, previous = cursors.longs(some), cursors.longs(some)
    fields = (each.tolist() for each in (some, version, corrupted, current, previous))
    return {number: Checksum(*values) for number, *values in zip(*fields, strict=True)}


def layouts_of(headers: Headers, cursors: Cursors, schemas: Schemas) -> tuple[list[Layout], Places]:
    """The layouts that messages name, and the number of each one's; messages are refused whose schema is missing."""
    layouts: list[Layout] = []
    found: dict[tuple[tuple[str, str] | None, int], int | DecodeError] = {}
    numbers = np.zeros(len(headers.names), np.int64)
    alive = cursors.living(np.arange(len(headers.names)))
    for message, version in zip(alive.tolist(), headers.schema_version[alive].tolist(), strict=True):
        name = headers.names[message]
        number = found.get((name, version))
        if number is None:
            number = found[name, version] = _find(name or ("", ""), version, schemas, layouts)
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
