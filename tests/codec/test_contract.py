"""What all decoders promise, whatever the bytes: well-typed events or one error that says why and where.

By one table (``wires``) over TiCDC's own messages: the shortest of each kind of event, and the one with most types.
What only one protocol has stands in ``test_<protocol>_strict.py``.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest
from mutated import DEEP, WRONG, Path, doubled, octets, places, replaced, without
from vectors import FOLDER, cases, header
from well_typed import well_typed
from wires import WIRES, Pair, Wire, flat, spread

from ticdc_codec.event import Ddl, Event, Failure, RowChange
from ticdc_codec.message import MAX_DECOMPRESSED, compress
from ticdc_codec.mysql_type import family_of
from ticdc_codec.number import uvarint
from ticdc_codec.open_protocol.frame import framed, texts_of
from ticdc_codec.options import Compression

_ALL = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
_JSON = pytest.mark.parametrize("wire", [wire for wire in WIRES.values() if wire.json], ids=lambda wire: wire.name)
_BINARY = pytest.mark.parametrize("wire", [WIRES["craft"], WIRES["simple_avro"]], ids=lambda wire: wire.name)


_MOST = 600
"""Ways in which one message is changed; if there are more, these of them."""


@cache
def chosen(wire: Wire) -> list[Pair]:
    """The shortest message of each kind of event, and the one with most types of columns."""
    shortest: dict[tuple[object, ...], Pair] = {}
    richest, most = None, 0
    for pair, events in zip(wire.messages, wire.decode(wire.messages), strict=True):
        kind = tuple((type(event), getattr(event, "op", None)) for event in events[:2])
        if kind not in shortest or size_of(pair) < size_of(shortest[kind]):
            shortest[kind] = pair
        types = {family_of(column.type) for column in getattr(events[0], "columns", ())} if events else ()
        if isinstance(events[0], RowChange) and len(types) > most:
            richest, most = pair, len(types)
    assert richest is not None
    # Debezium's keys of what is no row say nothing, and are not read.
    found = [*shortest.items(), (((RowChange, None),), richest)]
    return [pair if wire.framed or kind[0][0] is RowChange else (None, pair[1]) for kind, pair in found]


def size_of(pair: Pair) -> int:
    return sum(len(part or b"") for part in pair)


def changed(wire: Wire, pair: Pair, change: Callable[[bytes], Iterator[bytes]]) -> Iterator[Pair]:
    """The message with its value, then with its key, changed in each way; of framed ones the first text."""
    for place, part in enumerate(pair):
        start = 8 * (place == 0)
        texts = texts_of(part or b"", start) if wire.framed else [part or b""]
        if not texts or not texts[0]:
            continue
        for text in spread([*change(texts[0])], _MOST):
            whole = (part or b"")[:start] + framed([text, *texts[1:]]) if wire.framed else text
            yield (whole, pair[1]) if place == 0 else (pair[0], whole)


def check(wire: Wire, messages: list[Pair]) -> list[list[Event]]:
    """The events of messages, which are all well-typed, beside a sound message that gives what it always gives."""
    sound = chosen(wire)[-1]
    first, *found, last = wire.decode([sound, *messages, sound])
    assert first == last == wire.decode([sound])[0]
    for pair, events in zip(messages, found, strict=True):
        assert len(events) == 1 or Failure not in map(type, events)
        for event in events:
            well_typed(event, max(len(part or b"") for part in pair), wire.verbatim)
    return found


def read_places(text: bytes) -> list[Path]:
    """Every place but those in Debezium's schemas, which are read only where they are new and for rows."""
    return [at for at in places(json.loads(text)) if at[:1] != ("schema",)]


def members(text: bytes) -> list[Path]:
    """Those of them that have a name."""
    return [at for at in read_places(text) if at and isinstance(at[-1], str)]


def refused(found: list[list[Event]]) -> bool:
    return all(isinstance(event, Failure) for event in flat(found))


@_ALL
def test_recorded_messages_are_well_typed(wire: Wire) -> None:
    assert not any(isinstance(event, Failure) for event in flat(check(wire, wire.messages)))


@_ALL
def test_a_statement_about_a_database_names_no_table(wire: Wire) -> None:
    statements = [event for event in flat(wire.decode(wire.messages)) if isinstance(event, Ddl)]
    about_databases = [event for event in statements if " DATABASE " in event.query]
    assert about_databases
    assert {event.table for event in about_databases} == {None}
    assert "" not in {event.table for event in statements}


@_ALL
def test_every_truncation_is_refused(wire: Wire) -> None:
    for key, value in chosen(wire):
        found = check(wire, [(key, (value or b"")[:end]) for end in range(len(value or b""))])
        assert refused(found)
        assert [len(events) for events in found] == [1] * len(found)
        if key is not None:
            assert refused(check(wire, [(key[:end], value) for end in range(1, len(key))]))


@_ALL
def test_trailing_bytes_are_refused(wire: Wire) -> None:
    for key, value in chosen(wire):
        assert value is not None
        assert refused(check(wire, [(key, value + more) for more in (b"\0", b"\xff", b"x", b"{}", value or b"y")]))
        assert refused(check(wire, [(key, more + value) for more in (b"\0", b"\xff", b"x", b"{}")]))


@_JSON
def test_any_wrong_member_gives_an_event_or_a_failure(wire: Wire) -> None:
    def change(text: bytes) -> Iterator[bytes]:
        yield from (replaced(text, at, wrong) for at in places(json.loads(text)) for wrong in WRONG)
        yield from without(text)

    for pair in chosen(wire):
        messages = [*changed(wire, pair, change)]
        together = check(wire, messages)
        # alone it is read by its envelope, together with rows of its table by that table's type
        assert together[::41] == [wire.decode([one])[0] for one in messages[::41]]


@_JSON
def test_a_duplicate_name_is_refused(wire: Wire) -> None:
    for pair in chosen(wire):
        found = check(wire, [*changed(wire, pair, lambda text: map(partial(doubled, text), members(text)))])
        assert refused(found)
        reasons = [getattr(event, "reason", None) for event in flat(found)]
        assert reasons.count("duplicate_name") > 0.8 * len(reasons)


@_BINARY
def test_any_wrong_byte_gives_an_event_or_a_failure(wire: Wire) -> None:
    for pair in chosen(wire):
        check(wire, [*changed(wire, pair, octets)])


@_JSON
def test_nesting_is_bounded(wire: Wire) -> None:
    for pair in chosen(wire)[:3]:
        deep = [*changed(wire, pair, lambda text: (replaced(text, at, DEEP) for at in read_places(text)))]
        assert refused(check(wire, deep))


HUGE = (1 << 30, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1)


@_ALL
def test_sizes_that_a_message_claims_cost_nothing(wire: Wire) -> None:
    """Twenty bytes that claim a gigabyte and more."""
    claims = [part + rest for size in HUGE for part in (size.to_bytes(8), uvarint(size), uvarint(2 * size))
              for rest in (b"", b"{}" * 6)]  # fmt: skip
    heads = [(value or b"")[:end] for _, value in chosen(wire) for end in range(0, min(20, len(value or b"")), 3)]
    tails = [b"", *((value or b"")[-8:] for _, value in chosen(wire))]
    key = chosen(wire)[0][0]
    messages = [(key, head + claim + tail) for head in heads for claim in claims[::3] for tail in tails[:2]]
    messages += [(None if key is None else key[:8] + claim, b"") for claim in claims]
    wire.decode(messages[:1])
    tracemalloc.start()
    begin = time.process_time()
    check(wire, messages)
    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (seconds < 10, peak < 64 << 20) == (True, True), (seconds, peak)


COMPRESSED = [path.name.removesuffix(".jsonl.gz") for path in sorted(FOLDER.glob("t*-*.jsonl.gz"))
              if path.name.removesuffix(".jsonl.gz").endswith(("lz4", "snappy"))]  # fmt: skip


@cache
def bomb(compression: Compression) -> bytes:
    return compress(b"0" * (MAX_DECOMPRESSED + 1), compression)


@pytest.mark.parametrize("file", [file for file in COMPRESSED if "claim-check" not in file and "open" not in file])
def test_compressed_values_that_are_none(file: str) -> None:
    compression = Compression(file.rpartition("-")[2])
    file_header = header(file)
    wire = Wire(name=file, protocol=file_header["protocol"], files=(file,))
    sound = next(pair for case in cases(file)[5:] for pair in zip(case.keys, case.values, strict=True) if pair[1])
    key, value = sound
    assert value is not None
    broken = [b"\xff\xff\xff\xff\x07" + b"x" * 20, value[:-5], value[:9], b"\x04\x22\x4d\x18", b"{}", value + b"x"]
    found = wire.decode([(key, each) for each in broken])
    assert refused(found)
    (too_large,) = flat(wire.decode([(key, bomb(compression))]))
    assert isinstance(too_large, Failure)
    assert too_large.reason == "too_large"
