"""The time zone in which silver wrote the texts of instants: a file beside the checkpoint of silver's stream."""

from __future__ import annotations

from ticdc_lakehouse import stream_checkpoint

_FILE = "time_zone"


def noted_zone(checkpoint: str) -> str | None:
    """Returns the zone; None before silver's first message, and after the checkpoint was lost."""
    return stream_checkpoint.read_beside(checkpoint, _FILE)


def note_zone(checkpoint: str, zone: str) -> None:
    """Notes the zone for good."""
    stream_checkpoint.write_beside(checkpoint, _FILE, zone)
