"""Where a feed's messages are: the brokers, and the topics by name or by pattern."""

from __future__ import annotations

import re

from ticdc_lakehouse.config.section import Section

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NO_TOPICS = (".", "..")
"""Kafka gives no topic these names."""
_SERVER = re.compile(r"[^\s,/]+:[0-9]{1,5}")


def servers(kafka: Section, override: str | None) -> tuple[str, ...]:
    """Each ``host:port``; ``override`` (comma text) takes the place of what the file says."""
    given = kafka.values.get("bootstrap_servers") if override is None else override
    if given is None:
        kafka.require("bootstrap_servers")
        return ()
    found = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if isinstance(found, list) and found and all(_is_server(server) for server in found):
        return tuple(found)
    kafka.note("bootstrap_servers", f"expected host:port, a list of them or comma text, found {given!r}")
    return ()


def _is_server(server: object) -> bool:
    return (
        isinstance(server, str) and _SERVER.fullmatch(server) is not None and 0 < int(server.rpartition(":")[2]) < 65536
    )


def topics(kafka: Section) -> tuple[str, ...]:
    """The names, none where there is a pattern."""
    named, matched = (kafka.values.get(key) is not None for key in ("topics", "topic_pattern"))
    if named == matched:
        kafka.note("topics", f"expected either topics or topic_pattern, found {'both' if named else 'neither'}")
    found = kafka.texts("topics")
    for topic in dict.fromkeys(found):
        if not _TOPIC.fullmatch(topic) or topic in _NO_TOPICS:
            expected = "topic names of letters, digits, '.', '_' and '-', not . or .. alone"
            kafka.note("topics", f"expected {expected}, found {topic!r}")
        elif found.count(topic) > 1:
            kafka.note("topics", f"expected each topic once, found {topic!r} {found.count(topic)} times")
    return found


def topic_pattern(kafka: Section) -> str | None:
    """A regular expression for whole topic names."""
    pattern = kafka.text("topic_pattern")
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as error:
        kafka.note("topic_pattern", f"expected a regular expression, found {pattern!r}: {error}")
    return pattern
