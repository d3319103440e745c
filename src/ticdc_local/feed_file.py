"""Writes feed files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import yaml

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.policy import Mode


@contextmanager
def kept_if_readable(path: Path) -> Iterator[None]:
    """Keeps the feed file that is written within only if a job can read it; otherwise restores ``path``.

    Raises ConfigError if it is invalid.
    """
    with restored_on_error(path):
        yield
        load_feed(path)


@contextmanager
def restored_on_error(*paths: Path) -> Iterator[None]:
    """Restores files that are written within, or removes them if they are new, where that ends with ConfigError or
    OSError."""
    before = {path: path.read_bytes() if path.is_file() else None for path in paths}
    try:
        yield
    except (ConfigError, OSError):
        for path, content in before.items():
            if content is not None:
                path.write_bytes(content)
            elif path.is_file():
                path.unlink()
        raise


def write_feed_file(
    path: Path,
    *,
    protocol: str,
    options: Mapping[str, object],
    time_zone: str,
    bootstrap_servers: str,
    topic: str,
    schema_file: str | None,
    gold: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Writes ``path``, and creates its folder. ``schema_file`` is relative to it; ``gold``: see `gold_keys`."""
    described = {
        "protocol": protocol,
        "options": dict(options),
        "time_zone": time_zone,
        "kafka": {"bootstrap_servers": bootstrap_servers, "topics": [topic]},
        **({"gold": dict(gold)} if gold else {}),
        **({} if schema_file is None else {"schema_file": schema_file}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")


def gold_keys(mode: Mode, ddl_time_zone: str | None = None) -> dict[str, object]:
    """Returns the keys of a feed file's ``gold``, without those that are at their defaults."""
    keys = {"mode": None if mode is Mode.WATERMARKS else mode.value, "ddl_time_zone": ddl_time_zone}
    return {name: value for name, value in keys.items() if value is not None}


_COMMENTED = """\
# yaml-language-server: $schema=feed.schema.json
# Every key is described in docs/feeds.md.
protocol: {protocol}

# Zone of the TiCDC server (cdc server --tz): TIMESTAMP values depend on it, and most protocols do not carry it.
time_zone: {time_zone}

# As in the changefeed's sink-uri, without its secrets.
options: {options}

kafka:
  bootstrap_servers: {bootstrap_servers}
  topics: {topics}
  # A secret is always a reference; here kafka/jaas is the environment variable LAKEHOUSE_SECRET_KAFKA_JAAS.
  # security:
  #   security.protocol: SASL_SSL
  #   sasl.mechanism: SCRAM-SHA-512
  #   sasl.jaas.config: {{secret: kafka/jaas}}

tables:
  include: {include}

# CREATE TABLE statements of the tables that existed before the changefeed; their exact types come from there.
# schema_file: {name}.sql
"""
_WITHOUT_WATERMARKS = """
# TiCDC sends no watermarks without enable-tidb-extension: the newest commit of each key that has arrived is shown.
gold: {{mode: eventual}}
"""


def commented(
    name: str,
    *,
    protocol: str,
    options: Mapping[str, object],
    time_zone: str,
    bootstrap_servers: str,
    topics: Sequence[str],
    include: Sequence[str],
    mode: Mode,
) -> str:
    """Returns the text of a new feed file, with comments for the person who edits it."""
    return (_COMMENTED if mode is Mode.WATERMARKS else _COMMENTED + _WITHOUT_WATERMARKS).format(
        name=name,
        protocol=_inline(protocol),
        options=_inline(dict(options)),
        time_zone=_inline(time_zone),
        bootstrap_servers=_inline(bootstrap_servers),
        topics=_inline(list(topics)),
        include=_inline(list(include)),
    )


def _inline(value: object) -> str:
    """Returns a value as YAML writes it on one line."""
    return yaml.safe_dump([value], default_flow_style=True, width=1 << 30)[1:-2]


def yaml_value(text: str) -> object:
    """Returns an option's value as a person writes it into YAML: ``true`` and ``16`` bare, ``'null'`` as the word it
    is."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else text
