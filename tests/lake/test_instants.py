"""SQL takes the instant of a local time that TiDB takes, as the codecs do (`ticdc_codec.local_time`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from ticdc_codec.local_time import instant_of, is_own
from ticdc_lakehouse.sql.instant import instant_sql, is_ambiguous_sql, is_own_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONES = {
    "Europe/Berlin": ("2024-10-27", "2024-03-31"),
    "Europe/London": ("2024-10-27", "1971-10-31"),
    "Asia/Shanghai": ("1991-09-15", "2024-01-01"),
    "Australia/Lord_Howe": ("2024-04-07", "2024-10-06"),
    "Pacific/Apia": ("2013-04-07", "2011-04-02"),
    "Atlantic/Azores": ("2024-10-27", "1992-09-27"),
    "America/New_York": ("2024-11-03", "2024-03-10"),
    "UTC": ("2024-10-27", "2024-11-03"),
}
"""A zone, and days on which its clocks were set back or forward."""
HALF_HOURS = [timedelta(minutes=30 * at + 15) for at in range(-20, 48)]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("session", ["UTC", "Europe/Paris"])
def test_each_half_hour_of_a_day_of_change(spark: SparkSession, zone: str, session: str) -> None:
    key, usual = ZoneInfo(zone), str(spark.conf.get("spark.sql.session.timeZone"))
    instants = [datetime.fromisoformat(day).replace(tzinfo=UTC) + at for day in ZONES[zone] for at in HALF_HOURS]
    locals_ = [instant.astimezone(key) for instant in instants]
    shown = [f"{local:%Y-%m-%d %H:%M:%S}" for local in locals_]
    rows = ", ".join(
        f"('{text}', TIMESTAMP_NTZ'{utc:%Y-%m-%d %H:%M:%S}')" for text, utc in zip(shown, instants, strict=True)
    )
    spark.conf.set("spark.sql.session.timeZone", session)
    try:
        instant = instant_sql("text", zone)
        query = f"unix_seconds({instant}), {is_own_sql('utc', zone)}, {is_ambiguous_sql(instant, zone)}"
        found = [tuple(row) for row in spark.sql(f"SELECT {query} FROM VALUES {rows} AS t(text, utc)").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", usual)
    assert found == [
        (
            int(instant_of(local.replace(tzinfo=None, fold=0), key).timestamp()),
            is_own(instant, local),
            local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset(),
        )
        for instant, local in zip(instants, locals_, strict=True)
    ]
