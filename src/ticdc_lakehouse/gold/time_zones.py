"""Checks that Spark, too, knows the time zones of a feed and of an export, and that a feed's zone stays what it was."""

from __future__ import annotations

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Reader
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.sql.text import literal


def check_time_zones(lake: Reader, config: GoldConfig, of_export: str | None = None) -> None:
    """Raises ConfigError for a zone that Python knows and Spark does not, such as a new one where Java is old: every
    TIMESTAMP would be NULL."""
    feed = f"feed {config.feed}"
    given = (
        (f"{feed}: time_zone", config.time_zone),
        (f"{feed}: gold.ddl_time_zone", config.ddl_time_zone),
        ("time zone of the export", of_export),
    )
    for given_as, zone in ((name, zone) for name, zone in given if zone not in (None, "UTC")):
        time = literal(f"2000-01-01 00:00:00 {zone}")
        if lake.rows(f"SELECT try_cast({time} AS TIMESTAMP) AS time")[0]["time"] is None:
            raise ConfigError(
                f"{given_as}: Spark's Java does not know the time zone {zone}: set a known one with the same offsets"
            )


def check_zone(config: GoldConfig, former: str | None) -> None:
    """Raises ConfigError if silver or gold read the feed with another ``time_zone`` than it has now: TIMESTAMPs would
    be read in two ways, and one row get two keys. None: neither did, or the lake does not say."""
    if former not in (None, config.time_zone):
        raise ConfigError(
            f"feed {config.feed}: time_zone: the feed was read with {former}, in which its TIMESTAMPs and keys are: "
            f"put {former} back, or use a new feed name for {config.time_zone}"
        )
