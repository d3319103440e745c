"""A feed file that names another protocol than its messages are of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from changefeed import Changefeed, Source, at

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.silver.decode_stream import stream
from ticdc_lakehouse.silver.first_messages import check_protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

T = Source(table="t")


@pytest.mark.long
def test_silver_stops_until_the_file_is_right(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path / "lake")
    feed.send(0, b"poison", *(T.insert(at(1, n), n, "a") for n in range(20)))
    feed.resolve(at(2))
    feed.run.bronze()
    feed.protocol, feed.options = "simple", {"encoding-format": "avro"}
    with pytest.raises(ConfigError) as stop:
        feed.run.silver()
    assert str(stop.value).startswith(f"feed {feed.name}: {feed.name}.yml: protocol: the first messages do not decode")
    assert "found 21 of canal-json" in str(stop.value)
    assert str(stop.value).endswith("expected protocol: canal-json and under options enable-tidb-extension: true")

    feed.protocol, feed.options = "canal-json", {"enable-tidb-extension": True}
    done = feed.run.silver()
    assert (done.events, done.quarantined) == (22, 1)

    # It has decoded: whatever comes now goes to quarantine.
    feed.protocol, feed.options = "craft", {}
    feed.send(0, *(T.insert(at(3, n), n, "a") for n in range(2)))
    feed.protocol, feed.options = "canal-json", {"enable-tidb-extension": True}
    feed.run.bronze()
    assert feed.run.silver().quarantined == 2

    # Its keys may have other texts in another protocol.
    feed.protocol, feed.options = "craft", {}
    for decode_again in (feed.run.silver, lambda: feed.run.replay(["all"])):
        with pytest.raises(ConfigError, match=r"protocol: the feed was read as canal-json, .* Put canal-json back"):
            decode_again()
    feed.protocol, feed.options = "canal-json", {"enable-tidb-extension": True}

    # A new stream wants an empty folder: before it begins, nothing is noted there.
    checkpoint = Path(stream(feed.lake, feed.name))
    shutil.rmtree(checkpoint)
    check_protocol(feed.lake, feed.run.decoding)
    assert not checkpoint.exists()
