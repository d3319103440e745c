"""Decoding and encoding: CPU time a row of one thread, against json.loads of the same rows.

The yardsticks are those by which TiCDC's own Go decoders were measured: Canal-JSON's bytes, and the JSON texts in
Open's keys and values. Decoding ends with finished Arrow columns, json.loads with Python objects that somebody would
still have to put into columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.recorded import Recorded, open_texts, recorded
from bench.report import Target, table
from bench.timing import Times, cpu, interleaved
from ticdc_lakehouse.codec import Decoder, protocol_named
from ticdc_lakehouse.event import events_of

ROWS = 8400
REPETITIONS = 15
PROTOCOLS = ("canal_json", "craft")
YARDSTICK = {"canal_json": "json.loads, Canal-JSON", "craft": "json.loads, Open"}
GO = {"canal_json": 1.5, "craft": 0.64}
"""TiCDC's decoders in Go, as multiples of the same yardsticks (its Open decoder: 2.2)."""
BOUND = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecResult:
    """Times of all contestants for ``rows`` rows."""

    rows: int
    times: dict[str, Times]

    def ratio(self, name: str, yardstick: str) -> float:
        """Best time of one contestant as a multiple of another's."""
        return self.times[name].best / self.times[yardstick].best


def measure(rows: int = ROWS, repetitions: int = REPETITIONS) -> CodecResult:
    """Time decoders, encoders and yardsticks, interleaved."""
    samples = {name: recorded(name).repeated(rows) for name in (*PROTOCOLS, "open_protocol")}
    contestants: dict[str, Callable[[], object]] = {
        YARDSTICK["canal_json"]: partial(_load_all, list(samples["canal_json"].values)),
        YARDSTICK["craft"]: partial(_load_all, open_texts(samples["open_protocol"])),
    }
    for protocol in PROTOCOLS:
        contestants[f"decode {protocol}"] = _decoding(samples[protocol])
        contestants[f"encode {protocol}"] = _encoding(samples[protocol])
    for contestant in contestants.values():
        contestant()
    return CodecResult(rows=samples["craft"].rows, times=interleaved(contestants, repetitions, {"cpu": cpu})["cpu"])


def _load_all(texts: list[bytes]) -> None:
    for text in texts:
        json.loads(text)


def _decoding(messages: Recorded) -> Callable[[], object]:
    decoder = Decoder(messages.protocol, messages.options)
    return partial(decoder.decode, list(messages.keys), list(messages.values))


def _encoding(messages: Recorded) -> Callable[[], object]:
    decoded = Decoder(messages.protocol, messages.options).decode(messages.keys, messages.values)
    events = [event for _, event in events_of(decoded)]
    return partial(protocol_named(messages.protocol).encode, events, messages.options)


def targets(result: CodecResult) -> list[Target]:
    """What decoding has to keep."""
    return [
        Target(
            what=f"decode {protocol} / {YARDSTICK[protocol]}",
            measured=result.ratio(f"decode {protocol}", YARDSTICK[protocol]),
            bound=BOUND,
            at_most=True,
        )
        for protocol in PROTOCOLS
    ]


def report(result: CodecResult) -> str:
    """The times, their ratios, and TiCDC's."""
    canal, open_form = YARDSTICK.values()
    lines = [
        (
            name,
            f"{times.best / result.rows * 1e6:.2f}",
            f"{times.middle / result.rows * 1e6:.2f}",
            f"{result.ratio(name, canal):.2f}",
            f"{result.ratio(name, open_form):.2f}",
        )
        for name, times in result.times.items()
    ]
    heads = ("", "µs a row, best", "median", "of json.loads Canal", "of json.loads Open")
    go = f"TiCDC in Go: Canal-JSON {GO['canal_json']} of the first; Open 2.2 and Craft {GO['craft']} of the second."
    return table(f"codec: CPU time of one thread, {result.rows} rows", heads, lines) + f"\n{go}\n"


def main() -> list[Target]:
    """Measure and print."""
    result = measure()
    print(report(result))
    return targets(result)
