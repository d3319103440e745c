"""The section ``kafka`` of a feed file: the brokers, the topics by name or by pattern, and the client's security."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar
from warnings import catch_warnings

from msgspec import Meta, Struct, field

from ticdc_lakehouse.bronze.topic_pattern import may_match, only_python_reads
from ticdc_lakehouse.config.keys import Key

_SERVER = re.compile(r"[^\s,/]+:[0-9]{1,5}")
_LONGEST_LABEL = 63
"""Characters that a host's name may have between two dots."""


class Servers(tuple[str, ...]):
    """Brokers, each ``host:port``."""

    __slots__ = ()

    expected: ClassVar[str] = "host:port, a list of them or comma text"
    json_schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    }

    @classmethod
    def parse(cls, value: object) -> Servers:
        """Returns the brokers. Raises ValueError."""
        servers = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not (isinstance(servers, list) and servers and all(_is_server(server) for server in servers)):
            raise ValueError
        return cls(servers)


def _is_server(server: object) -> bool:
    if not isinstance(server, str) or _SERVER.fullmatch(server) is None:
        return False
    host, _, port = server.rpartition(":")
    labels = host.removesuffix(".").split(".")
    return 0 < int(port) < 65536 and all(0 < len(label) <= _LONGEST_LABEL for label in labels)


class TopicPattern(str):
    """A regular expression for whole topic names."""

    __slots__ = ()

    expected: ClassVar[str] = "a regular expression"
    json_schema: ClassVar[dict[str, Any]] = {"type": "string", "format": "regex"}

    @classmethod
    def parse(cls, value: object) -> TopicPattern:
        """Returns the pattern. Raises ValueError, also for one that Java refuses: Kafka's client could not read it."""
        try:
            with catch_warnings(action="ignore", category=FutureWarning):  # of classes that only Java nests
                re.compile(value if isinstance(value, str) and value else "(")
        except (re.error, OverflowError, RecursionError):
            raise ValueError from None
        if only_python_reads(str(value)):
            raise ValueError("a regular expression that Java reads, too: without (?P and (?(, and with \\{ for a brace")
        return cls(value)


# Kafka gives no topic the names . and ..
_Topic = Annotated[
    str,
    Meta(
        pattern=r"^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$(?!\n)",
        extra={"expected": "topic names of letters, digits, '.', '_' and '-', but not `.` or `..`"},
    ),
]

_TopicOrPartition = Annotated[
    str,
    Meta(
        pattern=r"^(?!\.{1,2}(/|$))[a-zA-Z0-9._-]{1,249}(/(0|[1-9][0-9]{0,8}))?$(?!\n)",
        extra={"expected": "topics, or partitions such as shop-changes/3, without leading zeros"},
    ),
]


class Kafka(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the messages are."""

    bootstrap_servers: Annotated[Servers, Meta(description="Brokers, `host:port` each.")]
    topics: Annotated[
        tuple[_Topic, ...],
        Meta(
            min_length=1,
            description="The changefeed's topics; either these or `topic_pattern`. One that bronze has read must stay, "
            "and is named in `retired` as well if TiCDC sends nothing to it any more.",
            extra={"null": "as not given: `Kafka.check` says what is expected"},
        ),
    ] = ()
    topic_pattern: Annotated[
        TopicPattern | None,
        Meta(
            description="A regular expression for the whole names of the changefeed's topics. If they have a "
            "database's name with capitals, take both spellings: `(?i)Shop_.*` ([why](limits.md#kafka))."
        ),
    ] = None
    retired: Annotated[
        tuple[_TopicOrPartition, ...],
        Meta(
            description="Topics, or partitions as `topic/3`, to which TiCDC sends nothing any more: the watermark does "
            "not wait for them ([when](operator.md#runbook))."
        ),
    ] = ()
    security: Annotated[
        dict[str, Any],
        Meta(
            description="[Options of the Kafka client](#kafkasecurity) for encryption and authentication. What is "
            "secret is a reference `{secret: scope/key}`."
        ),
    ] = field(default_factory=dict)

    def check(self, given: object, key: Key) -> None:
        """Notes what is wrong with the topics together; ``given`` is the section as the file has it."""
        given_keys = [
            name for name in ("topics", "topic_pattern") if isinstance(given, dict) and given.get(name) is not None
        ]
        if len(given_keys) != 1:
            found = "both" if given_keys else "neither"
            (key / "topics").note(f"expected either topics or topic_pattern, found {found}")
        _check_repetitions(self.topics, "each topic", key / "topics")
        _check_repetitions(self.retired, "each topic or partition", key / "retired")
        for retired in self.retired:
            if not self._may_have(retired.partition("/")[0]):
                (key / "retired").note(f"expected topics of the feed, or their partitions, found {retired!r}")

    def _may_have(self, topic: str) -> bool:
        """True if the topic is one of the feed's, as far as the file says."""
        if self.topic_pattern is None:
            return topic in self.topics
        return may_match(self.topic_pattern, topic)


def _check_repetitions(names: Sequence[str], expected: str, key: Key) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            key.note(f"expected {expected} once, found {name!r} {times} times")
