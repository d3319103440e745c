"""Quarantined messages by their bytes in bronze: shown, and decoded on trial, without Spark."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Failure
from ticdc_codec.inspection import Inspector
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Layer, Values
from ticdc_lakehouse.config.feed import Feed
from ticdc_lakehouse.config.layer_settings import decoding_of
from ticdc_lakehouse.silver import external_schemas, quarantine
from ticdc_lakehouse.silver.decode_stream import TOO_LARGE, Decoding, too_large_text
from ticdc_lakehouse.silver.first_messages import events_in
from ticdc_lakehouse.silver.quarantine import Position, fault_text, position_text
from ticdc_lakehouse.sql.text import literal
from ticdc_local.cli.arguments import in_same_place
from ticdc_local.cli.inspect import print_tree
from ticdc_local.cli.notice import note
from ticdc_local.cli.project import options_given
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.runner.display import without_controls

_LINE = 16
"""Bytes on a line of a dump."""
_AROUND = 4
"""Lines of a dump before and after the one with the fault."""
_ABSENT = "no open message"
_GROUP_BYTES = 64 * 2**20
"""Of values that are decoded on trial together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A message that was decoded with today's code and options."""

    position: str
    failure: Failure | None
    """Why it does not decode; None if it does."""


def show(options: argparse.Namespace, lake: DeltaReader, feed: Feed, positions: Sequence[Position]) -> int:
    """Prints why each of these messages is in quarantine, its bytes, and how `inspect` reads them. 1 if a position has
    no quarantined message."""
    rows = quarantine.first_open(lake, feed.name, positions)
    for row, raw in _with_bytes(lake, feed, rows):
        place = position_text(row)
        print(without_controls(f"{place} of feed {feed.name}: {fault_text(row)}"))
        print(f"  Kafka's time {row['timestamp']:%Y-%m-%d %H:%M:%S.%f} UTC, bronze batch {row['batch']}")
        print("\n".join(f"  {line}" for line in dump(raw["value"] or b"", row["error_offset"])))
        inspector = Inspector(feed.protocol, options_given(feed), explain=options.explain)
        print_tree(inspector.inspect((raw["key"], raw["value"]), place).tree, sys.stdout)
        replay = f"ticdc-lake quarantine replay --feed {feed.name} --at {shlex.quote(place)} --dry-run"
        note(f"Next: {in_same_place(options, replay)}")
    absent = quarantine.absent(lake, feed.name, positions)
    print_absent(feed.name, absent)
    return 1 if absent else 0


def print_absent(feed: str, positions: Sequence[Position]) -> None:
    """Prints a line for each position that has no open message."""
    for position in positions:
        print(f"{feed}: {_ABSENT} at {_text(position)}")


def absent_object(position: Position) -> dict[str, object]:
    """Returns a position that has no message to decode on trial, as a JSON object."""
    return {"position": _text(position), "decodes": False, "reason": "absent", "detail": _ABSENT}


def _text(position: Position) -> str:
    return "/".join(map(str, position))


def trial(lake: DeltaReader, feed: Feed, positions: Sequence[Position], limit: int) -> list[Tried]:
    """Returns the first of the messages that a replay would decode, decoded with today's code and options: open ones,
    or those at these positions, also dismissed ones. Raises ConfigError for one that retention has deleted."""
    decoding = decoding_of(feed, external_schemas.learned(lake, feed.name))
    messages = _with_bytes(lake, feed, quarantine.first_replayable(lake, feed.name, positions, limit))
    return [tried for some in _in_groups(messages) for tried in _tried(decoding, some)]


def _in_groups(messages: Iterator[tuple[Values, Values]]) -> Iterator[list[tuple[Values, Values]]]:
    """Yields messages until they have `_GROUP_BYTES`: a thousand large ones do not fit into memory."""
    group, size = list[tuple[Values, Values]](), 0
    for row, raw in messages:
        group.append((row, raw))
        size += len(raw["value"] or b"")
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _tried(decoding: Decoding, messages: Sequence[tuple[Values, Values]]) -> Iterator[Tried]:
    large = {number: failure for number, (_, raw) in enumerate(messages) if (failure := _too_large(decoding, raw))}
    pairs = [(raw["key"], None if number in large else raw["value"]) for number, (_, raw) in enumerate(messages)]
    failures = {number: event for number, event in events_in(decoding, pairs) if isinstance(event, Failure)} | large
    for number, (row, _) in enumerate(messages):
        yield Tried(position=position_text(row), failure=failures.get(number))


def _too_large(decoding: Decoding, raw: Values) -> Failure | None:
    """Returns why silver does not decode a message because of its size; None if it does."""
    size, limit = len(raw["value"] or b""), decoding.max_message_bytes
    if size <= limit:
        return None
    return Failure(reason=TOO_LARGE, detail=too_large_text(size, limit), offset=None, database=None, table=None)


def tried_object(tried: Tried) -> dict[str, object]:
    """Returns a message that was decoded on trial, as a JSON object."""
    reason, detail = (None, None) if tried.failure is None else (tried.failure.reason, tried.failure.detail)
    return {"position": tried.position, "decodes": tried.failure is None, "reason": reason, "detail": detail}


def failure_text(tried: Tried) -> str:
    """Returns a line for a message that does not decode."""
    return without_controls(
        f"  {tried.position}  {tried.failure and f'{tried.failure.reason}: {tried.failure.detail}'}"
    )


def _with_bytes(lake: DeltaReader, feed: Feed, rows: Sequence[Values]) -> Iterator[tuple[Values, Values]]:
    """Yields each quarantined message with its key and value in bronze. Raises ConfigError for one that bronze, which
    keeps what is in quarantine, has lost."""
    messages = lake.table(Layer.BRONZE, landing.messages_table(feed.name)) if rows else ""
    for row in rows:
        raw = lake.rows(f"""
            SELECT key, value FROM {messages} WHERE topic = {literal(row["topic"])}
            AND partition = {row["partition"]} AND offset = {row["offset"]} AND batch = {row["batch"]} LIMIT 1""")
        if not raw:
            raise ConfigError(
                f"feed {feed.name}: bronze has no message {position_text(row)} in batch {row['batch']}, which silver "
                "has in quarantine: bronze's tables were restored from an older copy (docs/operator.md, After a "
                "restore from a backup)"
            )
        yield row, raw[0]


def dump(data: bytes, fault: int | None) -> list[str]:
    """Returns the bytes as lines of hexadecimal and text, only those around the fault if there is one; it is marked
    ``>``."""
    first = 0 if fault is None else max(0, fault // _LINE - _AROUND)
    numbers = range(first, min(first + 2 * _AROUND + 1, -(-len(data) // _LINE)))
    return [_dump_line(data, number * _LINE, fault) for number in numbers]


def _dump_line(data: bytes, start: int, fault: int | None) -> str:
    part = data[start : start + _LINE]
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
    mark = ">" if fault is not None and start <= fault < start + _LINE else " "
    return f"{mark} {start:08x}  {part.hex(' '):{3 * _LINE - 1}}  {text}"
