"""What each layer is given of a feed: silver its `Decoding`, gold its `GoldConfig`, the alarm its `Thresholds`."""

from __future__ import annotations

from collections.abc import Mapping

from ticdc_codec.batch import SchemaName
from ticdc_codec.event import Column
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.config.feed import Feed
from ticdc_lakehouse.ops.alarm import Thresholds
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.silver.decode_stream import Decoding


def gold_config_of(feed: Feed) -> GoldConfig:
    """Returns how a feed's changes become tables."""
    return GoldConfig(
        feed=feed.name,
        time_zone=feed.sink_options.time_zone.key,
        tables=feed.schema_tables,
        matches=feed.tables.matches,
        retired=frozenset(feed.retired),
        options=feed.sink_options,
        traits=protocol_named(feed.protocol).traits,
        mode=feed.gold.mode,
        tombstone_days=feed.gold.tombstone_days,
        retention_days=feed.gold.retention_days,
        name_template=feed.gold.name,
        schema_template=feed.gold.schema,
        views=feed.gold.views,
        ddl_time_zone=None if feed.gold.ddl_time_zone is None else feed.gold.ddl_time_zone.key,
        policy=feed.gold.policy,
        table_properties=feed.live.properties,
    )


def thresholds_of(feed: Feed) -> Thresholds:
    """Returns what a feed's section ``alarm`` tolerates."""
    given = feed.alarm
    return Thresholds(behind_seconds=given.behind, blocked=given.blocked, quarantine=given.quarantine)


def decoding_of(feed: Feed, schemas: Mapping[SchemaName, tuple[Column, ...]]) -> Decoding:
    """Returns how a feed's messages are decoded; ``schemas`` are those that were learned of tables whose rows name
    none."""
    return Decoding(
        feed=feed.name,
        protocol=feed.protocol,
        options=feed.sink_options,
        schemas=schemas,
        max_message_bytes=feed.max_message_bytes,
    )
