"""Decoding and encoding: CPU time a row of one thread, against a bare reader of the same rows.

The yardsticks are those by which TiCDC's own Go decoders were measured, json.loads of the same bytes, and for Craft,
which has no JSON, of Open's keys and values; for Simple in Avro it is fastavro. Decoding ends with finished Arrow
columns, the yardsticks with Python objects that somebody would still have to put into columns.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import fastavro

from bench.recorded import Recorded, json_texts, recorded, simple_schema
from bench.report import Target, table
from bench.timing import Times, cpu, interleaved
from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import RowChange, events_of
from ticdc_codec.protocols import Decoder, protocol_named
from ticdc_lakehouse.schema.script import tables_from_sql

ROWS = 8400
REPETITIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One protocol's decoder and what it is measured by."""

    yardstick: str
    """One of ``YARDSTICKS``, and whose messages it reads."""
    bound: float
    """What the decoder may take, as a multiple of that."""
    go: float | None = None
    """What TiCDC's own decoder in Go takes, roughly."""


CONTESTS = {
    "craft": Contest(yardstick="json.loads open_protocol", bound=0.15, go=0.64),
    "open_protocol": Contest(yardstick="json.loads open_protocol", bound=0.8, go=2.2),
    "canal_json": Contest(yardstick="json.loads canal_json", bound=0.4, go=1.5),
    "simple_json": Contest(yardstick="json.loads simple_json", bound=0.8, go=1.7),
    "simple_avro": Contest(yardstick="fastavro simple_avro", bound=1.3),
    "debezium": Contest(yardstick="json.loads debezium", bound=0.5, go=1.2),
    "debezium_no_schema": Contest(yardstick="json.loads debezium_no_schema", bound=0.8),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecResult:
    """Times of all contestants."""

    rows: dict[str, int]
    """How many rows each one's messages had."""
    times: dict[str, Times]

    def ratio(self, what: str, name: str) -> float:
        """Best time of ``what`` (decode or encode) of one protocol as a multiple of its yardstick's."""
        return self.times[f"{what} {name}"].best / self.times[CONTESTS[name].yardstick].best


def measure(rows: int = ROWS, repetitions: int = REPETITIONS) -> CodecResult:
    """Time decoders, encoders and yardsticks, interleaved."""
    samples = {name: recorded(name).repeated(rows) for name in CONTESTS}
    contestants: dict[str, Callable[[], object]] = {}
    for yardstick in dict.fromkeys(contest.yardstick for contest in CONTESTS.values()):
        reader, _, name = yardstick.partition(" ")
        contestants[yardstick] = YARDSTICKS[reader](samples[name])
    for name, sample in samples.items():
        contestants[f"decode {name}"] = _decoding(sample)
        contestants[f"encode {name}"] = _encoding(sample)
    for contestant in contestants.values():
        contestant()
    times = interleaved(contestants, repetitions, {"cpu": cpu})["cpu"]
    return CodecResult(rows={name: samples[name.partition(" ")[2]].rows for name in contestants}, times=times)


def _json(messages: Recorded) -> Callable[[], object]:
    return partial(_read_all, json.loads, json_texts(messages))


def _avro(messages: Recorded) -> Callable[[], object]:
    schema = fastavro.parse_schema(simple_schema())
    return partial(_read_all, lambda value: fastavro.schemaless_reader(io.BytesIO(value), schema), messages.values)


def _read_all(read: Callable[[bytes], object], texts: Sequence[bytes]) -> None:
    for text in texts:
        read(text)


YARDSTICKS = {"json.loads": _json, "fastavro": _avro}
"""Bare readers, which keep nothing of what they read."""


def _decoding(messages: Recorded) -> Callable[[], object]:
    decoder = Decoder(messages.protocol, messages.options)
    return partial(decoder.decode, list(messages.keys), list(messages.values))


def _encoding(messages: Recorded) -> Callable[[], object]:
    """What Debezium's messages do not tell of the types, an encoder must know: the table's definition tells it."""
    definitions = {(t.database, t.table, 0): t.described for t in tables_from_sql(messages.create, "test")}
    decoder = Decoder(messages.protocol, messages.options, DecoderContext(schemas=definitions))
    decoded = decoder.decode(messages.keys, messages.values)
    events = [event for _, event in events_of(decoded) if isinstance(event, RowChange)]
    return partial(protocol_named(messages.protocol).encode, events, messages.options)


def targets(result: CodecResult) -> list[Target]:
    """What decoding has to keep."""
    return [
        Target(
            what=f"decode {name} / {contest.yardstick}",
            measured=result.ratio("decode", name),
            bound=contest.bound,
            at_most=True,
        )
        for name, contest in CONTESTS.items()
    ]


def report(result: CodecResult) -> str:
    """The times, their ratios to each one's own yardstick, and TiCDC's."""
    lines = [_line(result, name) for name in result.times]
    heads = ("", "µs a row, best", "median", "of yardstick", "TiCDC in Go")
    return table(f"codec: CPU time of one thread, about {max(result.rows.values())} rows", heads, lines)


def _line(result: CodecResult, contestant: str) -> tuple[str, ...]:
    times = result.times[contestant]
    what, _, name = contestant.partition(" ")
    ratio = f"{result.ratio(what, name):.2f} {CONTESTS[name].yardstick}" if name in CONTESTS and what in _CODED else ""
    go = str(CONTESTS[name].go or "") if what == "decode" else ""
    rows = result.rows[contestant]
    return contestant, _micros(times.best, rows), _micros(times.middle, rows), ratio, go


_CODED = ("decode", "encode")


def _micros(seconds: float, rows: int) -> str:
    return f"{seconds / rows * 1e6:.2f}"


def main() -> list[Target]:
    """Measure and print."""
    result = measure()
    print(report(result))
    return targets(result)
