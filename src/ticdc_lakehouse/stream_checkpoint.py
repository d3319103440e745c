"""What a streaming query's checkpoint says about its batches: Spark plans each in ``offsets/<number>`` before it runs,
and commits it in ``commits/<number>`` afterwards. What reads these files raises ConfigError if one is damaged.

Beside Spark's files in that folder are these of our own, which go with it when it is deleted:

| folder | file | says | after its deletion |
|---|---|---|---|
| ``bronze_<feed>`` | ``first_batch`` | the feed's number of the query's batch 0 | bronze's table of offsets has it |
| ``bronze_<feed>`` | ``topic_ids.json`` | Kafka's ids of the topics that bronze has read | Kafka's present ids count |
| ``silver_<feed>`` | ``has_decoded`` | silver has decoded a message, in this protocol | silver's events are asked |
| ``silver_<feed>`` | ``messages_read`` | messages that bronze had when silver last ended | all messages count as new |
| ``silver_<feed>`` | ``schemas_learned`` | up to where events were searched for schemas | all events are searched |
| ``silver_<feed>`` | ``time_zone`` | the zone of the instants' texts in silver | that of what gold published counts |
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ticdc_codec.errors import ConfigError

_ENDED_AT: dict[str, tuple[str | None, int | None]] = {}
"""By checkpoint, the query and the newest batch when a stream of this process ended: a loop need not look again."""


class _Query(msgspec.Struct):
    """The file ``metadata``."""

    id: str


class _DeltaOffset(msgspec.Struct):
    """The last line of a file in ``offsets``, of a stream that reads a Delta table."""

    reservoirVersion: int  # noqa: N815 - Delta's name


def query_id(checkpoint: str) -> str | None:
    """Returns the query's id, None before its first start."""
    path = Path(checkpoint) / "metadata"
    return str(_last_line(checkpoint, path, _Query).id) if path.exists() else None


def planned(checkpoint: str) -> int | None:
    """Returns the number of the newest batch that was planned, None before the first."""
    return _newest(checkpoint, "offsets")


def next_batch(checkpoint: str) -> int:
    """Returns the number of the first batch that is not committed."""
    newest = _newest(checkpoint, "commits")
    return 0 if newest is None else newest + 1


def interrupted(checkpoint: str) -> int | None:
    """Returns the number of a batch that was planned and not committed: it runs again, and its rows may be written
    already."""
    newest = planned(checkpoint)
    return newest if newest is not None and newest >= next_batch(checkpoint) else None


def planned_offsets(checkpoint: str, number: int) -> dict[tuple[str, int], int]:
    """Returns by topic and partition the end offset of a batch that reads Kafka."""
    return _offsets_in(checkpoint, Path(checkpoint) / "offsets" / str(number))


def planned_topics(checkpoint: str) -> set[str]:
    """Returns the topics of the newest batch that was planned by a stream which reads Kafka; none before the first."""
    newest = planned(checkpoint)
    return set() if newest is None else {topic for topic, _ in planned_offsets(checkpoint, newest)}


def first_offsets(checkpoint: str) -> dict[tuple[str, int], int]:
    """Returns by topic and partition the offset at which a stream that reads Kafka began; empty if its checkpoint does
    not show it."""
    file = Path(checkpoint) / "sources" / "0" / "0"
    return _offsets_in(checkpoint, file) if file.exists() else {}


def _offsets_in(checkpoint: str, file: Path) -> dict[tuple[str, int], int]:
    by_topic = _last_line(checkpoint, file, dict[str, dict[int, int]])
    return {(topic, partition): end for topic, ends in by_topic.items() for partition, end in ends.items()}


def _last_line(checkpoint: str, file: Path, kind: Any) -> Any:
    """Returns the JSON in the last line of one of Spark's files. Raises ConfigError if the file is damaged."""
    try:
        return msgspec.json.decode(file.read_bytes().splitlines()[-1], type=kind)
    except (IndexError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{file} is empty or cut off, as after a loss of power. Delete the folder {checkpoint}: bronze continues "
            "where its tables end; silver decodes anew what bronze keeps, and gold applies no change twice"
        ) from error


def version_needed(checkpoint: str) -> int | None:
    """Returns the version from which on a stream of a Delta table may read it; None before two batches are committed.

    A stream that starts again asks for the files of its last batch, whose first version the batch before notes.
    """
    file = Path(checkpoint) / "offsets" / str(next_batch(checkpoint) - 2)
    return int(_last_line(checkpoint, file, _DeltaOffset).reservoirVersion) if file.exists() else None


def messages_read(checkpoint: str) -> int:
    """Returns how many messages a stream that reads Kafka has planned to read, from the first offsets on."""
    newest = planned(checkpoint)
    if newest is None:
        return 0
    first = first_offsets(checkpoint)
    return sum(end - first.get(partition, 0) for partition, end in planned_offsets(checkpoint, newest).items())


def write_beside(checkpoint: str, name: str, text: str) -> None:
    """Writes a file of our own beside those of Spark. A process that is killed leaves it as it was, or whole."""
    file = Path(checkpoint) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def read_beside(checkpoint: str, name: str) -> str | None:
    """Returns what `write_beside` wrote last; None if it never did, and after the folder was deleted. After a loss of
    power the file may be empty, or full of zeros: None, too."""
    try:
        text = (Path(checkpoint) / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return text if text.strip("\0") else None


def note_end(checkpoint: str) -> None:
    """Notes that a stream of this process has ended, and how far its checkpoint is."""
    _ENDED_AT[checkpoint] = query_id(checkpoint), planned(checkpoint)


def refuse_older(stream: str, checkpoint: str, batch_after: Callable[[str, int], int | None], way_out: str) -> None:
    """Raises ConfigError if the tables of a stream have batches that its checkpoint does not know, which was restored
    from a copy then: Spark would plan them anew, with all messages since, and Delta would ignore them.

    ``batch_after`` returns the newest batch of a query in the tables, None if they have none after the given one.
    """
    query, newest = query_id(checkpoint), planned(checkpoint)
    if query is None or _ENDED_AT.get(checkpoint) == (query, newest):
        return
    last = -1 if newest is None else newest
    found, newest = batch_after(query, last), planned(checkpoint)
    # Another run, which no lock keeps out on Databricks, plans a batch before the tables have it.
    if found is not None and found > (last if newest is None else newest):
        raise ConfigError(
            f"{stream} has batch {found}, its checkpoint {checkpoint} ends with batch {last}: it was restored from an "
            f"older copy, and what came since would be skipped. Delete that folder: {way_out}"
        )


def _newest(checkpoint: str, log: str) -> int | None:
    return max((int(path.name) for path in (Path(checkpoint) / log).glob("*") if path.name.isdecimal()), default=None)
