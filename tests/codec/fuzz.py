"""Fuzzing of the decoders: ``python tests/codec/fuzz.py [WIRE …] [--count N | --seconds S] [--seed N] [--again ID]``.

Recorded messages, changed at random (``fuzz_mutation``), in batches with untouched ones between them. What must hold:

    a message gives well-typed events (``well_typed``) or one failure, and no other exception
    the untouched messages give what they always give
    of some batches: each message alone gives what it gave among the others
    of some events: what is encoded of them decodes to them again

Equal seeds give equal messages, as long as what is kept is the same. A message that breaks a rule is printed as a
line to repeat it, and kept in ``tests/data/fuzz``, which also holds a short message for each outcome (``--keep``). The
tests decode them all: after mending, ``why`` of the kept message becomes its outcome.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from fuzz_mutation import mutated
from well_typed import well_typed
from wires import WIRES, Pair, Wire, flat, spread

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Bootstrap, Ddl, Event, Failure, RowChange
from ticdc_codec.protocols import protocol_named
from ticdc_testkit.recorded_streams import base64_bytes, base64_text

FOLDER = Path(__file__).parent.parent / "data" / "fuzz"
BATCH = 512
SOUND_EVERY = 8
"""One message in so many stays as it was."""
_ENOUGH = 20
"""Mistakes after which a run ends."""
_SAMPLE = 16
"""Batches of which one is decoded message by message too, and encoded again."""
_SHORT = 700
"""Bytes of a message that may be kept."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that does not hold."""

    what: str
    messages: tuple[Pair, ...]


@dataclass(slots=True)
class Fuzzer:
    """One wire's messages and what came of them."""

    wire: Wire
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    shortest: dict[str, Pair] = field(default_factory=dict)
    """For each outcome the shortest message that has it."""
    messages: int = 0
    corpus: list[Pair] = field(init=False)
    """What is changed: all recorded messages, and those that were kept."""
    sound: list[tuple[Pair, list[Event]]] = field(init=False)
    """Rows that stay as they are, with their events."""

    def __post_init__(self) -> None:
        self.corpus = [*self.wire.messages, *(pair for pair, _ in kept(self.wire).values())]
        some = spread(self.wire.messages, 100)
        decoded = zip(some, self.wire.decode(some), strict=True)
        self.sound = [(pair, events) for pair, events in decoded if isinstance(events[0], RowChange)]

    def batch(self, number: int) -> list[Broken]:
        """Make and decode one batch; which one it is, its number and the seed say."""
        drawn = self._drawn(number)
        messages = [pair for pair, _ in drawn]
        self.messages += BATCH
        try:
            found = self.wire.decode(messages)
        except Exception as error:  # noqa: BLE001 - any exception is what is looked for
            return [*self._alone(messages)] or [Broken(f"only together: {error!r}", tuple(messages))]
        for pair, events in zip(messages, found, strict=True):
            self._count(pair, events)
        return [*self._mistakes(number, drawn, found)]

    def _drawn(self, number: int) -> list[tuple[Pair, list[Event] | None]]:
        """Messages, and the events of those that are sound."""
        rng = Random(f"{self.wire.name} {self.seed} {number}")
        return [
            rng.choice(self.sound) if at % SOUND_EVERY == 0 else (mutated(self.wire, self.corpus, rng), None)
            for at in range(BATCH)
        ]

    def _mistakes(
        self, number: int, drawn: list[tuple[Pair, list[Event] | None]], found: list[list[Event]]
    ) -> Iterator[Broken]:
        # A schema that is broken and valid is that of other rows too.
        apart = protocol_named(self.wire.protocol).traits.external_schemas and _tells_schemas(found)
        sampled = number % _SAMPLE == 0 and not apart
        everything = tuple(pair for pair, _ in drawn)
        for (pair, wanted), events in zip(drawn, found, strict=True):
            what = self._rules(pair, events, sampled=sampled)
            if what is not None:
                yield Broken(what, (pair,))
            if wanted not in (None, events) and not apart:
                yield Broken(f"a sound message among broken ones: {events}", everything)
            if sampled and self.wire.decode([pair]) != [events]:
                yield Broken(f"alone it gives other events than {events}", everything)

    def _alone(self, messages: Sequence[Pair]) -> Iterator[Broken]:
        for pair in messages:
            try:
                self.wire.decode([pair])
            except Exception as error:  # noqa: BLE001 - any exception is what is looked for
                yield Broken(repr(error), (pair,))

    def _rules(self, pair: Pair, events: list[Event], *, sampled: bool) -> str | None:
        """What does not hold of a message's events, None if all does."""
        try:
            assert len(events) == 1 or Failure not in map(type, events), "a failure beside events"
            for event in events:
                well_typed(event, max(len(part or b"") for part in pair), self.wire.verbatim)
            if sampled:
                return again(self.wire, events)
        except Exception as error:  # noqa: BLE001 - any exception is what is looked for
            return repr(error)
        return None

    def _count(self, pair: Pair, events: list[Event]) -> None:
        found = outcome(events)
        self.outcomes[found] += 1
        best = self.shortest.get(found)
        if best is None or _size(pair) < _size(best):
            self.shortest[found] = pair


def again(wire: Wire, events: list[Event]) -> str | None:
    """What is wrong with what is encoded of events and decoded again, None if nothing or if they cannot be encoded."""
    if Failure in map(type, events) or not events:
        return None
    try:
        messages = wire.encoded(events)
    except (ConfigError, ValueError):
        return None
    found = [event for event in flat(wire.decode(messages)) if not isinstance(event, Bootstrap)]
    wanted = [event for event in events if not isinstance(event, Bootstrap)]
    both = [*map(_told, wanted)], [*map(_told, found)]
    return None if both[0] == both[1] else "encoded and decoded again: " + _difference(*map(str, both))


def _difference(one: str, other: str) -> str:
    """Where two texts begin to differ, with a little before it."""
    begin = next((at for at, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), 0)
    return " became ".join(text[max(0, begin - 60) : begin + 80] for text in (one, other))


def _told(event: Event) -> Event:
    """What an event keeps on the way through an encoder: no writer defects, and of a DDL only its text."""
    match event:
        case RowChange(columns=columns):
            plain = tuple(replace(column, defect=None) for column in columns)
            return replace(event, columns=plain, schema_version=None, commit_ms=0)
        case Ddl():
            return replace(event, type=None, columns=(), schema_version=None, commit_ms=0)
        case _:
            return event


def _tells_schemas(found: Sequence[list[Event]]) -> bool:
    return any(isinstance(event, Bootstrap | Ddl) for event in flat(found))


def outcome(events: list[Event]) -> str:
    """What came of a message, in a few words."""
    return " ".join(map(_outcome, events[:2]))


def _outcome(event: Event) -> str:
    if isinstance(event, Failure):
        wording = re.sub(r"[`'\"].*|column \S+|[^a-zA-Z ]", "", event.detail)
        return f"{event.reason}: {' '.join(wording.split()[:4])}"
    return type(event).__name__


def _size(pair: Pair) -> int:
    return sum(len(part or b"") for part in pair)


def _file(wire: Wire) -> Path:
    return FOLDER / f"{wire.name}.jsonl"


def kept(wire: Wire) -> dict[str, tuple[Pair, str]]:
    """The messages that were kept and what came of them, by their ids."""
    if not _file(wire).exists():
        return {}
    lines = map(json.loads, _file(wire).read_text().splitlines())
    return {line["id"]: ((base64_bytes(line["key"]), base64_bytes(line["value"])), line["why"]) for line in lines}


def keep(wire: Wire, pair: Pair, why: str) -> str:
    """Add a message to those that are kept; its id."""
    key, value = map(base64_text, pair)
    name = hashlib.sha256(f"{key} {value}".encode()).hexdigest()[:8]
    if name not in kept(wire):
        FOLDER.mkdir(exist_ok=True)
        with _file(wire).open("a") as lines:
            lines.write(json.dumps({"id": name, "why": why[:200], "key": key, "value": value}) + "\n")
    return name


def main(arguments: Sequence[str]) -> int:
    """Fuzz as the command line says; 1 if a rule does not hold."""
    parser = argparse.ArgumentParser(
        prog="fuzz.py", description="Changes recorded messages at random and decodes them."
    )
    parser.add_argument("wires", nargs="*", metavar="WIRE", default=[*WIRES], help=f"of {', '.join(WIRES)}")
    parser.add_argument("--count", type=int, help="messages, of a batch at least")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--again", metavar="ID", help="decode one message of tests/data/fuzz and show what comes of it")
    parser.add_argument("--keep", action="store_true", help="keep a short message of each outcome that is new")
    options = parser.parse_args(arguments)
    if unknown := {*options.wires} - WIRES.keys():
        parser.error(f"expected any of {', '.join(WIRES)}, found {unknown.pop()!r}")
    if options.again:
        wire = WIRES[options.wires[0]]
        print(*wire.decode([kept(wire)[options.again][0]])[0], sep="\n")
        return 0
    return 1 if sum([_fuzz(WIRES[name], options) for name in options.wires]) else 0


def _fuzz(wire: Wire, options: argparse.Namespace) -> int:
    """Mistakes of one wire's decoder."""
    fuzzer = Fuzzer(wire, options.seed)
    mistakes = 0
    for number in _batches(options):
        for broken in fuzzer.batch(number):
            mistakes += 1
            _tell(wire, broken, f"--seed {options.seed} --first {number} --count 1")
        if mistakes > _ENOUGH:
            break
    for found, count in fuzzer.outcomes.most_common(None if options.keep else 12):
        print(f"{count:9} {found}")
    if options.keep:
        _keep_outcomes(wire, fuzzer)
    print(f"{wire.name}: {fuzzer.messages} messages, {len(fuzzer.outcomes)} outcomes, {mistakes} mistakes")
    return mistakes


def _batches(options: argparse.Namespace) -> Iterator[int]:
    end = time.monotonic() + options.seconds
    number = options.first
    last = None if options.count is None else options.first + max(1, options.count // BATCH)
    while number < last if last is not None else time.monotonic() < end:
        yield number
        number += 1


def _tell(wire: Wire, broken: Broken, place: str) -> None:
    if len(broken.messages) == 1:
        name = keep(wire, broken.messages[0], broken.what)
        place = f"--again {name}"
    print(f'make fuzz PROTOCOL={wire.name} ARGS="{place}"\n    {broken.what[:1000]}')


def _keep_outcomes(wire: Wire, fuzzer: Fuzzer) -> None:
    have = {why for _, why in kept(wire).values()}
    for found, pair in fuzzer.shortest.items():
        if found not in have and _size(pair) <= _SHORT:
            keep(wire, pair, found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
