"""Every error this package raises, by who must act.

LakehouseError
├── ConfigError          the operator: the job stops before it touches data
│   ├── OffsetGapError   Kafka deleted messages before they were read
│   └── PublishedMeanwhileError  another run of the same feed published first
├── AttentionError       the operator, of a feed whose run did its work: a table is blocked, messages are in quarantine
├── DecodeError          the message: it goes to quarantine whole, the job continues
└── ApplyError           the table's owner: this table is blocked with a reason, the others continue
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_WORDS = 50
"""Words that a message lists: a broker may have thousands of topics, a feed thousands of tables."""


SCHEMA_MISSING = "schema_missing"
"""The reason of a `DecodeError` that ends once the schema of the message's rows has come (Simple)."""


class LakehouseError(Exception):
    """Any error of this package."""


class ConfigError(LakehouseError):
    """A request that cannot be carried out until the operator acts.

    A setting or an argument is missing or wrong, a file cannot be read or written, another run is working on the same
    feed, a broker or a store does not answer, a local job failed, or an encoder is given an event that its protocol
    cannot carry. The message names the place and what was expected.
    """


class OffsetGapError(ConfigError):
    """Kafka's retention overtook the reader: it deleted messages that were never read."""


class PublishedMeanwhileError(ConfigError):
    """Another run of the same feed published while this one was at work; this one has published nothing."""


class AttentionError(LakehouseError):
    """A run did its work, and its feed passes a threshold of its section ``alarm``."""


class DecodeError(LakehouseError):
    """A message that is not what its protocol allows.

    ``reason`` is one of a small fixed set of words (``truncated``, ``trailing_bytes``, ``bad_json`` …) to group by;
    ``detail`` says what was expected and what was found; ``offset`` is the position in the message's value, or None
    where the fault has no single place. ``database`` and ``table`` are given when the message was read far enough to
    know that it holds rows of that one table and nothing else.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        offset: int | None = None,
        database: str | None = None,
        table: str | None = None,
    ) -> None:
        super().__init__(f"{reason}: {detail}" if offset is None else f"{reason} at byte {offset}: {detail}")
        self.reason = reason
        self.detail = detail
        self.offset = offset
        self.database = database
        self.table = table


class ApplyError(LakehouseError):
    """A table cannot follow its changes; it stays at its last correct state."""


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Returns what a message says after an unknown word: the allowed word that looks most like it, or all of them
    (`listed`)."""
    words = sorted(allowed)
    if close := get_close_matches(word, words, n=1):
        return f"did you mean {close[0]}?"
    return f"expected one of {listed(words)}" if words else "there is none"


def listed(words: Iterable[str], most: int = _MOST_WORDS) -> str:
    """Returns words as a message lists them: of many the first, and the number of the others; ``none`` of none."""
    words = [*words]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{', '.join(words[:most]) or 'none'}{more}"
