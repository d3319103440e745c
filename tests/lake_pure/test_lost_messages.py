"""What Spark says about messages that Kafka no longer has: each way out is the one for its reason."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.bronze.lost_messages import loss_of

LOST = """Some data may have been lost because they are not available in Kafka any more;
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason: {}
\tat org.apache.spark.sql.kafka010.KafkaMicroBatchStream.reportDataLoss"""


@pytest.mark.parametrize(
    ("reason", "begins", "way_out"),
    [
        ("Partitions Set(t-0) have been deleted.", "partitions that bronze reads", "delete the folder /c/bronze_f: "),
        (
            "Cannot find initial offsets for partitions Set(t-0). They may have been deleted.",
            "partitions that bronze reads",
            "delete the folder /c/bronze_f: ",
        ),
        (
            "Added partition t-0 starts from 7 instead of 0.",
            "Kafka deleted the first messages of a new topic",
            "delete the folder /c/bronze_f: .*`load` an export",
        ),
        (
            "Could not read records in offset [3, 5) for topic partition t-0",
            "Kafka deleted messages before they were read",
            "A new feed starts with empty tables",
        ),
    ],
)
def test_reason_and_way_out(reason: str, begins: str, way_out: str) -> None:
    text = loss_of(LOST.format(reason), "/c/bronze_f")
    assert text is not None
    assert text.startswith(begins)
    assert f": {reason.removesuffix('.')}. " in text
    assert way_out.split(".*") == [part for part in way_out.split(".*") if part in text]


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("PARTITIONS_DELETED", "partitions that bronze reads"),
        ("INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", "partitions that bronze reads"),
        ("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", "Kafka deleted the first messages of a new topic"),
        ("START_OFFSET_RESET", "Kafka deleted messages before they were read"),
    ],
)
def test_error_class_without_its_text(name: str, begins: str) -> None:
    text = loss_of(f"[KAFKA_DATA_LOSS.{name}] some other words", "/c/bronze_f")
    assert text is not None
    assert text.startswith(begins)


def test_other_errors_lose_nothing() -> None:
    assert loss_of("[STREAM_FAILED] Timed out waiting for a node assignment", "/c/bronze_f") is None


@pytest.mark.parametrize(("pattern", "refused"), [("crm_[a-z]+", True), ("crm_[a-z&&[^x]].*", False)])
def test_patterns_that_java_reads_otherwise_are_left_to_spark(pattern: str, refused: bool) -> None:
    source = landing.KafkaSource(feed="f", kafka_options={"subscribePattern": pattern})
    if not refused:
        landing.refuse_removed(source, {"crm_a1"})
        return
    with pytest.raises(ConfigError, match=r"kafka\.topic_pattern no longer matches what bronze has read: crm_a1"):
        landing.refuse_removed(source, {"crm_a1"})


STOPPED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "


@pytest.mark.parametrize(
    ("why", "is_of_kafka"),
    [
        ("Failed to load SSL keystore /etc/client.jks (Permission denied)", True),
        ("No space left on device", False),
        ("/v: Read-only file system", False),
        ("/c/bronze_f/offsets/.7.tmp (Permission denied)", False),
    ],
)
def test_a_checkpoint_that_cannot_be_written_is_no_mistake_of_the_feed_file(why: str, is_of_kafka: bool) -> None:
    source = landing.KafkaSource(feed="f", kafka_options={"kafka.bootstrap.servers": "h:1", "subscribe": "t"})
    error = StreamingQueryException(STOPPED + why)
    if not is_of_kafka:
        landing._explain(source, "/c/bronze_f", error)
        return
    with pytest.raises(ConfigError, match=r"feed f: reading topics t from h:1 stopped; check .*/etc/client\.jks"):
        landing._explain(source, "/c/bronze_f", error)
