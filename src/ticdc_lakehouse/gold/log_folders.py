"""On a laptop the log folders of a feed's tables are trimmed after each window (`log_folder`): the next window must not
take longer for those before it."""

from __future__ import annotations

from collections.abc import Iterable

from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.gold import state_tables
from ticdc_lakehouse.silver import decode_stream, events_table, quarantine


def trim_logs(lake: Lake, feed: str, changed: Iterable[str]) -> None:
    """Trims the logs of bronze's, silver's and ops' tables and of the live tables ``changed``.

    Live tables and silver's events keep all versions: `as_of` reads the former, and streams of users the latter. Of
    bronze's messages those are kept that silver's stream may still read.
    """
    read_from = stream_checkpoint.version_needed(decode_stream.stream(lake, feed))
    lake.trim_log(Layer.BRONZE, landing.messages_table(feed), keeps_versions=read_from is None, read_from=read_from)
    lake.trim_log(Layer.BRONZE, landing.offsets_table(feed))
    lake.trim_log(Layer.SILVER, events_table.table_name(feed), keeps_versions=True)
    for name in (*state_tables.NAMES, quarantine.ACTIONS):
        lake.trim_log(Layer.OPS, name)
    for name in changed:
        lake.trim_log(Layer.LIVE, name, keeps_versions=True)
