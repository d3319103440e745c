"""``ticdc-lake decode``: messages in, events out, as JSON lines."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import orjson

from ticdc_lakehouse.canonical import canonical
from ticdc_lakehouse.cli.place import named_values
from ticdc_lakehouse.codec import PROTOCOLS, Decoder, protocol_named
from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.options import sink_options
from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.event import Failure, events_of
from ticdc_lakehouse.lake.claim import StoredObjects

_AT_A_TIME = 512


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--protocol", required=True, help=f"one of {', '.join(PROTOCOLS)}")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a sink-uri option, or time-zone"
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="JSON lines with key and value (base64 or null); default stdin"
    )


def run(options: argparse.Namespace) -> int:
    """Print one line a message: ``{"line", "events"}``, or ``{"line", "error": {"reason", "detail", "offset"}}``."""
    given = named_values(options.option, "--option")
    protocol_named(options.protocol)
    protocol = options.protocol.replace("-", "_")
    sink = sink_options(protocol, given)
    decoder = Decoder(protocol, sink, Known(objects=StoredObjects(sink.claim_check_storage_uri)))
    lines = sys.stdin.buffer if options.file is None else _opened(options.file)
    for number, result in decoded_lines(decoder, lines):
        # ASCII only: a raw U+2028 in a value would be the end of a line to some readers of lines.
        print(json.dumps({"line": number, **result}, separators=(",", ":")))
    return 0


def decoded_lines(decoder: Decoder, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, object]]]:
    """Each input line's number from 1, and its ``events`` or ``error``."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    while chunk := list(islice(numbered, _AT_A_TIME)):
        messages = [_message(number, line) for number, line in chunk]
        results: list[dict[str, object]] = [{"events": []} for _ in chunk]
        for message, event in events_of(decoder.decode(*zip(*messages, strict=True))):
            if isinstance(event, Failure):
                results[message] = {"error": canonical(event)}
            else:
                results[message]["events"].append(canonical(event))  # type: ignore[attr-defined]
        yield from zip((number for number, _ in chunk), results, strict=True)


def _message(number: int, line: bytes) -> tuple[bytes | None, bytes | None]:
    try:
        record = orjson.loads(line)
        return _bytes(record["key"]), _bytes(record["value"])
    except (orjson.JSONDecodeError, KeyError, TypeError, binascii.Error) as error:
        raise ConfigError(
            f'line {number}: expected {{"key": base64 or null, "value": base64 or null}}: {error}'
        ) from None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
