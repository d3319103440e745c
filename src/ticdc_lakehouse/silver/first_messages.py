"""Some of a feed's messages, compared with the protocol that its file names, before silver decodes anything.

A wrong ``protocol`` would put every message into quarantine. The bytes show it: the run stops with what they look like.
A single poison message stops nothing: nearly all must fail, and be messages of one other protocol.

Once silver has decoded messages, the feed keeps its protocol: the key of one row has other texts in another one
(Debezium has names of ENUMs and its own digits), so the row would be there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import functions as F

from ticdc_codec.batch import DecoderContext
from ticdc_codec.claim_check_storage import StoredObjects
from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Event, Failure, Kind, events_of
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder, Pair, spelling
from ticdc_codec.recognition import DECIDING, NEARLY_ALL, Recognised, recognise
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.silver import decode_stream, events_table

MESSAGES = 48
"""Messages that are compared: those that bronze returns first."""
ENOUGH = 2
"""Messages that must fail: a single one is poison."""
_MOST_BYTES = 256 * 1024
"""Longer values are skipped: the driver reads these messages."""
_HAS_DECODED = "has_decoded"
"""Name of the file beside the checkpoint that says that silver has decoded a message, and its protocol."""


def check_protocol(lake: Lake, decoding: decode_stream.Decoding) -> None:
    """Raises ConfigError if the feed's messages plainly belong to another protocol, or were written with other options,
    and as `check_same_protocol`.

    Reads them only while silver has decoded nothing of the feed.
    """
    check_same_protocol(lake, decoding)
    if _has_decoded(lake, decoding) or not lake.exists(Layer.BRONZE, landing.messages_table(decoding.feed)):
        return
    fault = mistake(decoding, _first_pairs(lake, decoding))
    if fault is not None:
        raise ConfigError(fault)


def check_same_protocol(lake: Lake, decoding: decode_stream.Decoding) -> None:
    """Raises ConfigError if silver has decoded messages of the feed in another protocol."""
    noted = stream_checkpoint.read_beside(decode_stream.stream(lake, decoding.feed), _HAS_DECODED)
    if noted not in (None, "", decoding.protocol):  # empty: noted by a build that did not say which
        former = spelling(str(noted))
        raise ConfigError(
            f"feed {decoding.feed}: protocol: the feed was read as {former}, and in {spelling(decoding.protocol)} the "
            f"same row may have another key. Put {former} back, and begin a new feed for what comes in another protocol"
        )


def note_protocol(lake: Lake, decoding: decode_stream.Decoding) -> None:
    """Notes, for good, in which protocol silver has decoded messages of the feed."""
    checkpoint = decode_stream.stream(lake, decoding.feed)
    if stream_checkpoint.read_beside(checkpoint, _HAS_DECODED) != decoding.protocol:
        stream_checkpoint.write_beside(checkpoint, _HAS_DECODED, decoding.protocol)


def _has_decoded(lake: Lake, decoding: decode_stream.Decoding) -> bool:
    """True if silver has decoded any message; a file beside the stream's checkpoint records that it has."""
    checkpoint = decode_stream.stream(lake, decoding.feed)
    if stream_checkpoint.read_beside(checkpoint, _HAS_DECODED) is not None:
        return True
    if not events_table.exists(lake, decoding.feed):
        return False
    events = events_table.events(lake, decoding.feed)
    has_events = bool(events.where(F.col("kind") != Kind.ERROR.value).select("kind").take(1))
    if has_events and Path(checkpoint).exists():  # a new stream wants an empty folder
        note_protocol(lake, decoding)
    return has_events


def _first_pairs(lake: Lake, decoding: decode_stream.Decoding) -> list[Pair]:
    messages = lake.spark.table(lake.table(Layer.BRONZE, landing.messages_table(decoding.feed)))
    short = messages.where(F.length("value") <= min(decoding.max_message_bytes, _MOST_BYTES))
    with decode_stream.row_by_row(lake.spark):
        rows = short.select("key", "value").take(MESSAGES)
    return [(None if key is None else bytes(key), bytes(value)) for key, value in rows]


def mistake(decoding: decode_stream.Decoding, messages: Sequence[Pair]) -> str | None:
    """Returns what is wrong with the feed's protocol or options, by these messages; None if they do not show it."""
    failed = _failed(decoding, messages)
    if len(failed) < max(ENOUGH, NEARLY_ALL * len(messages)):
        return None
    recognised = recognise([messages[number] for number in failed])
    if recognised.protocol is None:
        return None
    change = _change(decoding, recognised)
    return _sentence(decoding, recognised, next(iter(failed.values())), change) if change else None


def events_in(decoding: decode_stream.Decoding, messages: Sequence[Pair]) -> list[tuple[int, Event]]:
    """Returns the events of some messages, each with the number of its message."""
    objects = StoredObjects(decoding.options.claim_check_storage_uri)
    decoder = Decoder(decoding.protocol, decoding.options, DecoderContext(objects=objects, schemas=decoding.schemas))
    return list(events_of(decoder.decode([key for key, _ in messages], [value for _, value in messages])))


def _failed(decoding: decode_stream.Decoding, messages: Sequence[Pair]) -> dict[int, Failure]:
    """Returns the messages that do not decode, by number."""
    return {number: event for number, event in events_in(decoding, messages) if isinstance(event, Failure)}


def _change(decoding: decode_stream.Decoding, recognised: Recognised) -> dict[str, str]:
    """Returns the keys of the feed file to change, with their new values."""
    deciding = {name: value for name, value in recognised.options.items() if name in DECIDING}
    if recognised.protocol == decoding.protocol:
        return _differing(decoding.options, recognised.protocol, deciding)
    protocol = str(recognised.protocol)
    return {"protocol": spelling(protocol), **_differing(SinkOptions(), protocol, deciding)}


def _differing(options: SinkOptions, protocol: str, given: Mapping[str, str]) -> dict[str, str]:
    recognised = sink_options(protocol, given)
    fields = {name: name.replace("-", "_") for name in given}
    return {name: given[name] for name, at in fields.items() if getattr(recognised, at) != getattr(options, at)}


def _sentence(
    decoding: decode_stream.Decoding, recognised: Recognised, failure: Failure, change: Mapping[str, str]
) -> str:
    protocol = spelling(decoding.protocol)
    options = ", ".join(f"{name}: {value}" for name, value in change.items() if name != "protocol")
    parts = [f"protocol: {change['protocol']}"] if "protocol" in change else []
    parts += [f"under options {options}"] if options else []
    return (
        f"feed {decoding.feed}: {decoding.feed}.yml: protocol: the first messages do not decode as {protocol} "
        f"({failure.reason}: {failure.detail}); found {recognised.reason}; expected {' and '.join(parts)}"
    )
