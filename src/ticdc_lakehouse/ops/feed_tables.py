"""A feed's tables that do not depend on its data."""

from __future__ import annotations

from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.silver import events_table, quarantine


def create_feed_tables(lake: Lake, feed: str) -> None:
    """Creates a feed's tables of bronze and silver where they are missing, for commands that are used before the first
    run."""
    landing.create_tables(lake, feed)
    events_table.create_tables(lake, feed)
    quarantine.create_tables(lake)
