"""``ticdc-lake decode``: messages in, events out, as JSON lines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from itertools import tee

from ticdc_codec.canonical import canonical
from ticdc_codec.decoding import MessageDecoder
from ticdc_codec.event import Event, Failure
from ticdc_codec.protocols import PROTOCOLS
from ticdc_local.cli.arguments import named_values
from ticdc_local.cli.messages import message_in, opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--protocol", required=True, help=f"one of {', '.join(PROTOCOLS)}")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a sink-uri option, or time-zone"
    )
    parser.add_argument("file", nargs="?", help="JSON lines with key and value (base64 or null); default stdin")


def run(options: argparse.Namespace) -> int:
    """Print one line a message: ``{"line", "events"}``, or ``{"line", "error": {"reason", "detail", "offset"}}``."""
    decoder = MessageDecoder(options.protocol, named_values(options.option, "--option"))
    with opened(options.file) as lines:
        for number, result in decoded_lines(decoder, lines):
            # ASCII only: a raw U+2028 in a value would be the end of a line to some readers of lines.
            print(json.dumps({"line": number, **result}, separators=(",", ":")))
    return 0


def decoded_lines(decoder: MessageDecoder, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, object]]]:
    """Each input line's number from 1, and its ``events`` or ``error``."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    read, kept = tee((number, message_in(line, f"line {number}")) for number, line in numbered)
    results = decoder.decode(message for _, message in read)
    yield from ((number, _result(events)) for (number, _), events in zip(kept, results, strict=True))


def _result(events: tuple[Event, ...]) -> dict[str, object]:
    match events:
        case (Failure() as fault,):
            return {"error": canonical(fault)}
    return {"events": [canonical(event) for event in events]}
