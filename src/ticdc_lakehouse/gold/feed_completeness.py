"""How far a feed is complete, by its mode."""

from __future__ import annotations

from ticdc_lakehouse.bronze.micro_batch import TopicPartition
from ticdc_lakehouse.catalog import Reader
from ticdc_lakehouse.gold.eventual import arrived
from ticdc_lakehouse.gold.watermark import Completeness, completeness, is_waited_for
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.policy import Mode


def feed_completeness(lake: Reader, config: GoldConfig, before: Published, mode: Mode) -> Completeness:
    """Returns how far the feed is complete since the published state ``before``: up to its watermark, or in mode
    eventual up to what has arrived."""
    if mode is Mode.EVENTUAL:
        return arrived(lake, config.feed, before)
    return completeness(lake, config.feed, before, config.matches, config.retired)


def waits_for(config: GoldConfig, partition: TopicPartition) -> bool:
    """True if the feed's watermark waits for a partition. In mode eventual there is no watermark."""
    return config.mode is Mode.WATERMARKS and is_waited_for(partition, config.retired)
