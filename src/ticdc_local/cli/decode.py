"""``ticdc-lake decode``: messages in, events out, as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import tee

from ticdc_codec.canonical import canonical
from ticdc_codec.decoding import MessageDecoder
from ticdc_codec.event import Event, Failure
from ticdc_codec.protocols import PROTOCOLS, spelling
from ticdc_local.cli.arguments import named_values
from ticdc_local.cli.messages import message_in, opened

EXAMPLES = """examples:
  kcat -b localhost:9092 -t crm -C -e -J | ticdc-lake inspect      another tool's messages: inspect reads them
  ticdc-lake generate --workload shop --protocol craft --file - --rows 10 | ticdc-lake decode --protocol craft
  ticdc-lake decode --protocol canal-json --option enable-tidb-extension=true messages.jsonl"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--protocol", required=True, help=f"one of {', '.join(map(spelling, PROTOCOLS))}")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a sink-uri option, or time-zone"
    )
    parser.add_argument("--lenient", action="store_true", help="exit code 0 also if a message does not decode")
    parser.add_argument("file", nargs="?", help="JSON lines with key and value (base64 or null); default, and -: stdin")


def run(options: argparse.Namespace) -> int:
    """Print one line a message: ``{"line", "events"}``, or ``{"line", "error": {"reason", "detail", "offset"}}``; 1 if
    one does not decode."""
    failed = 0
    decoder = MessageDecoder(options.protocol, named_values(options.option, "--option"))
    with opened(options.file) as lines:
        for number, result in decoded_lines(decoder, lines):
            failed += "error" in result
            # ASCII only: a raw U+2028 in a value would be the end of a line to some readers of lines.
            print(json.dumps({"line": number, **result}, separators=(",", ":")))
    if failed:
        print(f"{failed} messages do not decode", file=sys.stderr)
    return 1 if failed and not options.lenient else 0


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
