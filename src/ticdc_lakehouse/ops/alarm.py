"""What needs a person's attention in a feed although its run did its work: thresholds of the feed file, each checked
against what is published and in quarantine. Creates nothing, and reads no history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ticdc_codec.tso import time_of
from ticdc_lakehouse.bronze.landing import landed_messages
from ticdc_lakehouse.catalog import Reader
from ticdc_lakehouse.counted import counted, duration
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.watermark import is_waited_for
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.schema.names import texts_of
from ticdc_lakehouse.silver import events_table, quarantine

_MOST_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits above which a feed needs attention."""

    behind_seconds: int | None = None
    """Age of the published watermark; None: any."""
    blocked: bool = True
    """True if a blocked table needs attention."""
    quarantine: int = 1
    """Quarantined messages from which on the feed needs attention; 0: never. One that stops the watermark of all tables
    needs it always."""


def problems(lake: Reader, feed: str, thresholds: Thresholds, retired: Collection[str] = ()) -> list[str]:
    """Returns a sentence for each threshold that the feed passes, and for a message that stops the whole feed; none if
    all is well. ``retired``: topics and partitions (``topic/3``) that nothing waits for."""
    current = published(lake, feed)
    landed = 0 if current.tso else landed_messages(lake, feed)
    has_errors = events_table.exists(lake, feed) and quarantine.has_errors(lake, feed)
    reasons = quarantine.reasons(lake, feed) if has_errors and thresholds.quarantine > 0 else {}
    is_quarantine_reported = any(_in_quarantine(reasons, thresholds.quarantine))
    has_watermark = current.tso > 0 and current.mode is Mode.WATERMARKS
    is_unreported = has_errors and not is_quarantine_reported
    stopping = _stopping(lake, feed, retired) if has_watermark and is_unreported else ()
    return [*stopping, *problems_of(current, landed, reasons, thresholds, datetime.now(UTC))]


def stopped_by(message: quarantine.BlockingMessage) -> str:
    """Returns the phrase for the message in quarantine that stops the watermark of a feed."""
    return f"waiting on the quarantined message {message.position}"


def _stopping(lake: Reader, feed: str, retired: Collection[str]) -> Iterator[str]:
    """Yields a phrase if a message in quarantine may have been anything: no watermark behind it in its partition counts
    (`gold.watermark`), and all tables stop, however many messages are tolerated."""
    unknown = (each for each in quarantine.blocking_messages(lake, feed) if each.table is None)
    messages = (each for each in unknown if is_waited_for((each.topic, each.partition), retired))
    if (first := min(messages, key=lambda each: (each.topic, each.partition), default=None)) is not None:
        yield stopped_by(first)


def problems_of(
    current: Published, landed: int, quarantined: Mapping[str, int], thresholds: Thresholds, at: datetime
) -> list[str]:
    """Returns what `problems` returns, for a published state, the number of messages that landed and those in
    quarantine by reason, at a time."""
    return [
        *_behind(current, landed, thresholds.behind_seconds, at),
        *(_blocked(current) if thresholds.blocked else ()),
        *_in_quarantine(quarantined, thresholds.quarantine),
    ]


def _behind(current: Published, landed: int, tolerated: int | None, at: datetime) -> Iterator[str]:
    """Yields a sentence if the published watermark is too old. A feed that published nothing has no age, but may have
    messages that wait for it."""
    if not current.tso and landed:
        yield f"nothing was ever published, though {counted(landed, 'message has', 'messages have')} landed"
    elif tolerated is None:
        return
    elif not current.tso:
        yield "no watermark is published"
    elif (age := (at - time_of(current.tso)).total_seconds()) > tolerated:
        yield f"the published watermark is {duration(age)} old, more than {duration(tolerated)}"


def _blocked(current: Published) -> Iterator[str]:
    blocked = {name: state.stop for name, state in current.tables.items() if state.blocked}
    if blocked:
        texts = texts_of(current.tables)
        listed = [f"{texts[name]} ({stop})" for name, stop in sorted(blocked.items())[:_MOST_NAMES]]
        more = f", and {len(blocked) - len(listed)} more" if len(blocked) > len(listed) else ""
        yield f"{counted(len(blocked), 'table is', 'tables are')} blocked: {', '.join(listed)}{more}"


def _in_quarantine(quarantined: Mapping[str, int], least: int) -> Iterator[str]:
    messages = sum(quarantined.values())
    if messages >= least > 0:
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(quarantined.items()))
        yield f"{counted(messages, 'message is', 'messages are')} in quarantine: {listed}"
