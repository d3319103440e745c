"""What a window starts from: the published state of a feed, and how far the feed is complete since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold import state, views
from ticdc_lakehouse.gold.feed_completeness import feed_completeness
from ticdc_lakehouse.gold.naming import check_schemas
from ticdc_lakehouse.gold.time_zones import check_zone
from ticdc_lakehouse.gold.watermark import Completeness
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published, Restart
from ticdc_lakehouse.policy import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStart:
    """The published state, and how far the feed is complete since."""

    before: Published
    undisturbed: bool
    """As in `GoldRun`."""
    completeness: Completeness
    tso: int
    """The watermark up to which the window goes."""

    @property
    def can_publish(self) -> bool:
        """True if anything is complete. Late rows and tables of an export are published at the same watermark."""
        return self.tso >= self.before.tso and self.tso > 0


def begin_window(
    lake: Lake, config: GoldConfig, known: Published | None, until_tso: int | None, restart: Restart
) -> WindowStart:
    """Returns the start of a feed's next window, after finishing what a run that died has published. ``known`` is the
    state that an earlier run of this process published; tables of ``restart`` are about to be replaced.

    Raises ConfigError if gold cannot continue from the published state as its feed file is now, and
    PublishedMeanwhileError if tables of ``restart`` were made from another one.
    """
    before, complete = _state_and_completeness(lake, config, known or Published(), until_tso)
    if restart.tables:
        state.check_same(config.feed, before.number, restart.number)
    if known is not None and before is not known:
        views.refresh_session(lake, config.feed)
    views.finish_publishing(lake, config, before, replaced=restart.tables)
    tso = complete.tso if until_tso is None else min(complete.tso, until_tso)
    return WindowStart(before=before, undisturbed=before is known, completeness=complete, tso=tso)


def _state_and_completeness(
    lake: Lake, config: GoldConfig, known: Published, until_tso: int | None
) -> tuple[Published, Completeness]:
    """Returns the published state, and how far the feed is complete: asked at once where the state is most likely
    known."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(state.newest, lake, config.feed, known)
        complete = _completeness(lake, config, known, until_tso) if known.number else None
        before = asked.result()
    _check_mode(config, before)
    check_zone(config, before.time_zone)
    check_filter(config, before)
    check_schemas(config, before)
    if complete is None or before is not known:
        complete = _completeness(lake, config, before, until_tso)
    return before, complete


def _check_mode(config: GoldConfig, before: Published) -> None:
    if before.tso and before.mode is not config.mode:
        raise ConfigError(
            f"feed {config.feed}: gold.mode: it was published in mode {before.mode.value}, and a feed's mode cannot "
            f"change; use a new feed name for mode {config.mode.value}"
        )


def check_filter(config: GoldConfig, before: Published) -> None:
    """Raises ConfigError if the feed's filter leaves out all that was published: a wrong pattern, as likely as not."""
    if before.tables and not any(config.matches(*name) for name in before.tables):
        raise ConfigError(
            f"feed {config.feed}: tables: it leaves out all tables that the feed has in gold, {min(before.tables)} for "
            "one, and would take them out: correct include and exclude, or remove the feed (docs/databricks.md)"
        )


def _completeness(lake: Lake, config: GoldConfig, before: Published, until_tso: int | None) -> Completeness:
    if config.mode is Mode.EVENTUAL and until_tso is not None:
        raise ConfigError(
            f"feed {config.feed}: until_tso stops at a watermark, and gold mode eventual has none: leave it out"
        )
    return feed_completeness(lake, config, before, config.mode)
