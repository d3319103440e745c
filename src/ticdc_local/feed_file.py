"""Writes the feed file that somebody with this changefeed would write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from ticdc_lakehouse.policy import Mode


def write_feed_file(
    path: Path,
    *,
    protocol: str,
    options: Mapping[str, object],
    time_zone: str,
    bootstrap_servers: str,
    topic: str,
    schema_file: str | None,
    mode: Mode = Mode.WATERMARKS,
) -> None:
    """Write ``path``; its folder is made if it is not there. ``schema_file`` is relative to it."""
    described = {
        "protocol": protocol,
        "options": dict(options),
        "time_zone": time_zone,
        "kafka": {"bootstrap_servers": bootstrap_servers, "topics": [topic]},
        **({"gold": {"mode": mode.value}} if mode is not Mode.WATERMARKS else {}),
        **({} if schema_file is None else {"schema_file": schema_file}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
