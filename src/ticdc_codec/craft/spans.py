"""Every byte of a Craft message, field by field (wire.md 1.1.2, 1.1.3)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ticdc_codec.byte_map import ByteMap, Span, Walk, mapped
from ticdc_codec.craft.frame import NO_TERM, VERSION, EventType, GroupType
from ticdc_codec.craft.group import ValueEncoding, encoding_of
from ticdc_codec.errors import DecodeError
from ticdc_codec.number import read_reversed_uvarint, read_uvarint, zigzag
from ticdc_codec.options import SinkOptions
from ticdc_codec.tidb_codes import flag_names, type_of
from ticdc_codec.tso import Tso, time_of

_DELTA = "zigzag difference from the one before"
_NAMES = {GroupType.NEW: "New", GroupType.OLD: "Old"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """The size tables of a message, decoded."""

    header: int
    dictionary: int
    bodies: list[int]
    groups: list[list[int]]
    """The sizes of each row's column groups, in their order."""


def byte_maps(key: bytes | None, value: bytes | None, options: SinkOptions) -> tuple[ByteMap, ...]:
    """Returns the map of a message's value; its key is null."""
    del key, options
    return (mapped("value", value or b"", _read_message),)


def _read_message(walk: Walk) -> None:
    version = walk.number("version", "uvarint", int)
    if version != VERSION:
        raise DecodeError("unknown_version", f"expected version {VERSION}, found {version}", offset=0)
    header_at = walk.at
    tables_at, sizes = _read_end(walk)
    bodies_at = header_at + sizes.header
    dictionary_at = bodies_at + sum(sizes.bodies)
    if not header_at <= bodies_at <= dictionary_at <= tables_at or dictionary_at + sizes.dictionary != tables_at:
        found = f"they say {dictionary_at + sizes.dictionary}, they begin at {tables_at}"
        raise DecodeError("bad_size", f"expected parts that end where the size tables begin: {found}", offset=tables_at)
    walk.at = dictionary_at
    terms: list[str] = []
    if sizes.dictionary:
        with walk.section("term dictionary", sizes.dictionary, "names, which the rest calls by number") as part:
            terms = _read_terms(part)
    walk.at = header_at
    with walk.section("header", sizes.header, "five columns, each with one number an event") as part:
        types = _read_header(part, len(sizes.bodies), terms)
    groups = iter(sizes.groups)
    for number, (kind, size) in enumerate(zip(types, sizes.bodies, strict=True)):
        with walk.section(f"body {number}", size, _named(EventType, kind)) as part:
            _read_body(part, kind, next(groups, []) if kind == EventType.ROW else [], terms)


def _read_end(walk: Walk) -> tuple[int, _Sizes]:
    """Returns where the size tables begin, and the sizes in them."""
    length, at = read_reversed_uvarint(walk.data)
    if at < walk.at:
        raise DecodeError("bad_size", "the length of the size tables runs into the version", offset=at)
    begin = at - length
    walk.spans.append(
        Span(
            name="length of the size tables",
            start=at,
            end=walk.end,
            meaning="uvarint, its bytes backwards",
            value=f"{length}",
        )
    )
    if begin < walk.at:
        raise DecodeError("out_of_range", f"size tables of {length} bytes in a message of {walk.end}", offset=at)
    walk.at = begin
    with walk.section("size tables", length, "where everything lies; read first") as part:
        return begin, _read_sizes(part)


def _read_sizes(walk: Walk) -> _Sizes:
    with walk.section("table of header and dictionary") as part:
        meta = _table(part, ["size of the header", "size of the term dictionary"])
    with walk.section("table of bodies", meaning="its count is the number of events") as part:
        bodies = _table(part, ["size of body"])
    groups: list[list[int]] = []
    while walk.at < walk.end:
        with walk.section(f"table of column groups {len(groups)}", meaning="of one row") as part:
            groups.append(_table(part, ["size of group"]))
    if min([*meta, *bodies]) < 0 or not bodies:
        raise DecodeError("bad_size", "expected sizes of at least 0 and one body at least", offset=walk.at)
    return _Sizes(header=meta[0], dictionary=meta[1], bodies=bodies, groups=groups)


def _table(walk: Walk, names: Sequence[str]) -> list[int]:
    count = _count(walk, "number of sizes", 1)
    if 1 < len(names) != count:
        raise DecodeError("bad_size", f"expected {len(names)} sizes in this table, found {count}", offset=walk.at - 1)
    named = names if len(names) == count else [f"{names[0]} {number}" for number in range(count)]
    return _deltas(walk, named)


def _count(walk: Walk, name: str, smallest: int) -> int:
    """Reads a count of items of ``smallest`` bytes at least. A damaged count must not let the reader run forever."""
    start = walk.at
    count = walk.number(name, "uvarint", int)
    if count * smallest > walk.end - walk.at:
        raise DecodeError("out_of_range", f"{name} of {count}, {walk.end - walk.at} bytes are left", offset=start)
    return count


def _deltas(walk: Walk, names: Sequence[str], show: Callable[[int], str] = str) -> list[int]:
    """Reads a delta varint chunk."""
    numbers: list[int] = []
    for name in names:
        before = numbers[-1] if numbers else 0
        meaning = f"{_DELTA}" if numbers else "zigzag varint"
        numbers.append(walk.number(name, meaning, partial(_delta_after, before), show))
    return numbers


def _delta_after(before: int, raw: int) -> int:
    return before + zigzag(raw)


def _commit_ts_after(before: int, raw: int) -> int:
    return (before + raw) % (1 << 64)


def _read_terms(walk: Walk) -> list[str]:
    count = _count(walk, "number of names", 1)
    lengths = [walk.number(f"length of name {number}", "uvarint", int) for number in range(count)]
    names = [walk.octets(f"name {number}", length, "text", _text) for number, length in enumerate(lengths)]
    return [_text(name) for name in names]


def _read_header(walk: Walk, events: int, terms: Sequence[str]) -> list[int]:
    """Reads the header; returns the events' types."""
    commit_ts = 0
    for number in range(events):
        before = commit_ts
        meaning = "uvarint difference from the one before, modulo 2^64" if number else "uvarint, a TSO"
        commit_ts = walk.number(f"commit_ts {number}", meaning, partial(_commit_ts_after, before), _tso)
    types = [
        walk.number(f"event type {number}", "uvarint", int, partial(_numbered, EventType)) for number in range(events)
    ]
    _deltas(
        walk, [f"partition {n}" for n in range(events)], lambda found: "-1, none" if found == NO_TERM else f"{found}"
    )
    for name in ("database", "table"):
        _deltas(walk, [f"{name} {number}" for number in range(events)], partial(_term, terms))
    return types


def _read_body(walk: Walk, kind: int, groups: Sequence[int], terms: Sequence[str]) -> None:
    match kind:
        case EventType.ROW:
            for size in groups:
                with walk.section("column group", size) as part:
                    _read_group(part, terms)
        case EventType.DDL:
            walk.number("DDL type", "uvarint, TiDB's number", int)
            length = walk.number("length of the query", "uvarint", int)
            walk.octets("query", length, "text", _text)
        case _:  # a watermark has no body
            pass


def _read_group(walk: Walk, terms: Sequence[str]) -> None:
    walk.number("group type", "byte", int, partial(_numbered, GroupType))
    count = _count(walk, "number of columns", 4)
    columns = range(count)
    ids = _deltas(walk, [f"name of column {number}" for number in columns], partial(_term, terms))
    names = [_term(terms, term).partition(" ")[2] for term in ids]
    types = [walk.number(f"type of {name}", "uvarint", int, _type) for name in names]
    flags = [walk.number(f"flags of {name}", "uvarint", int, _flags) for name in names]
    lengths = [walk.number(f"length of {name}", "zigzag varint", zigzag, _length) for name in names]
    for name, code, flag, length in zip(names, types, flags, lengths, strict=True):
        if length > 0:
            walk.octets(f"value of {name}", length, *_reader(code, flag))


def _reader(code: int, flags: int) -> tuple[str, Callable[[bytes], str]]:
    """Returns how a value is written, and what shows it."""
    try:
        text, encoding = encoding_of(code, flags)
    except KeyError:
        return "of no type that TiDB has", bytes.hex
    match encoding:
        case ValueEncoding.SIGNED | ValueEncoding.YEAR:
            return f"{text}: zigzag varint", lambda data: str(zigzag(_whole(data)))
        case ValueEncoding.UNSIGNED:
            return f"{text}: uvarint", lambda data: str(_whole(data))
        case ValueEncoding.FLOAT | ValueEncoding.DOUBLE:
            return f"{text}: float64, little endian", _double
        case ValueEncoding.TEXT:
            return f"{text}: text", _text
        case _:
            return f"{text}: bytes", bytes.hex


def _whole(data: bytes) -> int:
    return read_uvarint(data, 0, len(data))[0]


def _double(data: bytes) -> str:
    return repr(struct.unpack("<d", data)[0]) if len(data) == 8 else f"{data.hex()}: expected 8 bytes"


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _tso(commit_ts: int) -> str:
    return f"{commit_ts}, {time_of(Tso(commit_ts)):%Y-%m-%d %H:%M:%S.%f} UTC"


def _named(kind: type[EventType] | type[GroupType], number: int) -> str:
    return kind(number).name if number in set(kind) else "unknown"


def _numbered(kind: type[EventType] | type[GroupType], number: int) -> str:
    return f"{number} {_named(kind, number)}"


def _term(terms: Sequence[str], number: int) -> str:
    if number == NO_TERM:
        return "-1 none"
    return f"{number} {terms[number] if 0 <= number < len(terms) else '?'}"


def _length(length: int) -> str:
    return "-1, NULL" if length == -1 else str(length)


def _type(code: int) -> str:
    try:
        return f"{code} {type_of(code, 0)}"
    except KeyError:
        return f"{code} unknown"


def _flags(flags: int) -> str:
    return f"{flags} {', '.join(flag_names(flags))}".rstrip()
