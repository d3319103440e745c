"""Bronze: bytes as they came, once each, and every partition's offsets."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import ID, Changefeed, Source, at
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError, OffsetGapError
from ticdc_codec.event import Column, Resolved
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.bronze import landing, micro_batch, topic_ids
from ticdc_lakehouse.bronze.landing import KafkaSource, Landed, kafka_options
from ticdc_lakehouse.bronze.topic_ids import check_topic_ids
from ticdc_lakehouse.catalog import Layer
from ticdc_local.broker import KafkaMessage
from ticdc_local.cli.job_text import cause_line

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from ticdc_local.broker import Broker

TWO_TABLES = "".join(f"CREATE TABLE shop.{name} (id BIGINT PRIMARY KEY, v VARCHAR(9));" for name in "tu")


def lines(feed: Changefeed, table: str, order: str) -> list[Row]:
    name = feed.lake.table(Layer.BRONZE, f"{feed.name}_{table}")
    return feed.spark.sql(f"SELECT * FROM {name} ORDER BY {order}").collect()


def offsets(feed: Changefeed) -> list[tuple[int, ...]]:
    """(batch, partition, start_offset, end_offset, messages)."""
    found = lines(feed, "offsets", "batch, partition")
    return [(o["batch"], o["partition"], o["start_offset"], o["end_offset"], o["messages"]) for o in found]


def test_every_message_is_landed_once(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path, partitions=2)
    headers = (("a", b"\x00\xff"), ("a", b""), ("b", None))
    feed.produce(
        [
            KafkaMessage(partition=0, key=b"\xfe\x00", value=b"\x00\xff\r\n", timestamp=1_700_000_000_123),
            KafkaMessage(partition=0, key=None, value=None, headers=headers),
            KafkaMessage(partition=0, key=b"", value=b""),
        ]
    )
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=3)
    first, second, third = lines(feed, "messages", "partition, offset")
    assert (bytes(first["key"]), bytes(first["value"]), first["headers"]) == (b"\xfe\x00", b"\x00\xff\r\n", None)
    assert spark.sql("SELECT timestamp_millis(1700000000123)").first() == (first["timestamp"],)
    assert (second["key"], second["value"]) == (None, None)
    assert [(h["key"], h["value"]) for h in second["headers"]] == list(headers)
    assert (bytes(third["key"]), bytes(third["value"])) == (b"", b"")
    assert offsets(feed) == [(0, 0, 0, 3, 3), (0, 1, 0, 0, 0)], "a silent partition is named too"

    # Nothing new is no batch; a limit makes several.
    assert feed.run.bronze() == Landed(feed=feed.name, batches=0, messages=0)
    feed.send(0, *(b"%d" % number for number in range(6)))
    assert replace(feed.run, max_offsets_per_trigger=2).bronze() == Landed(feed=feed.name, batches=3, messages=6)
    assert offsets(feed)[2::2] == [(1, 0, 3, 5, 2), (2, 0, 5, 7, 2), (3, 0, 7, 9, 2)]

    # A lost checkpoint: the new query continues where bronze ends, with the next batch number.
    feed.send(1, b"after")
    shutil.rmtree(feed.lake.checkpoint(f"bronze_{feed.name}"))
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1)
    assert offsets(feed)[8:] == [(4, 0, 9, 9, 0), (4, 1, 0, 1, 1)]
    feed.run.silver()
    # A machine that lost its power may leave empty files.
    first_batch = Path(feed.lake.checkpoint(f"bronze_{feed.name}")) / "first_batch"
    first_batch.write_text("", encoding="utf-8")
    (Path(feed.lake.checkpoint(f"silver_{feed.name}")) / "messages_read").write_text("", encoding="utf-8")
    feed.run.silver()
    feed.check_nothing_lost_or_doubled()

    # Kafka's retention overtakes the reader.
    feed.send(0, b"deleted before it was read", b"still there")
    broker.delete_records(feed.topic, {0: 10})
    with pytest.raises(OffsetGapError, match=rf"feed {feed.name}: Kafka deleted messages before they were read"):
        feed.run.bronze()
    assert len(offsets(feed)) == 10
    assert first_batch.read_text(encoding="utf-8") == "4", "found again in bronze"


@pytest.mark.long
def test_an_older_copy_of_the_checkpoint_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It would plan batch 1 anew, with all that came since, and Delta would ignore it."""
    feed = Changefeed(spark, broker, tmp_path)
    checkpoint = feed.lake.checkpoint(f"bronze_{feed.name}")
    feed.send(0, b"one")
    feed.run.bronze()
    older = shutil.copytree(checkpoint, tmp_path / "older copy of the checkpoint")
    feed.send(0, b"two")
    feed.run.bronze()
    shutil.rmtree(checkpoint)
    shutil.copytree(older, checkpoint)
    feed.send(0, b"three")
    with pytest.raises(
        ConfigError, match=f"bronze has batch 1, its checkpoint {checkpoint} ends with batch 0: .*Delete"
    ):
        feed.run.bronze()
    shutil.rmtree(checkpoint)
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1)
    assert [start for _, _, start, _, _ in offsets(feed)] == [0, 1, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("restored", "batches", "refusal"),
    [
        ((Layer.BRONZE, Layer.SILVER), [0, 1, 2], "lacks batch 2, with which its checkpoint {} ends: "),
        ((Layer.BRONZE,), [0, 1, 3], "lacks batch 2, with which its checkpoint {} ends: "),
        (
            (Layer.BRONZE, "checkpoints/bronze_"),
            [0, 1, 3],
            "its checkpoint {} end with batch 1, silver or gold has .* 2",
        ),
    ],
)
def test_older_copies_of_the_tables_are_refused(
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restored: tuple[str, ...],
    batches: list[int],
    refusal: str,
) -> None:
    """The streams would continue after what the tables lack, and gold's watermark would pass it. Bronze continues with
    a batch of a number that silver does not have, though gold has seen no more than batch 1."""
    feed = Changefeed(spark, broker, tmp_path, schema=TWO_TABLES)
    checkpoint = feed.lake.checkpoint(f"bronze_{feed.name}")
    of_stream = [Path(checkpoint) if name.endswith("_") else tmp_path / name for name in restored]
    for second in (1, 2, 3):
        feed.send(0, Source(table="t").insert(at(second), second, "a"))
        feed.resolve(at(second))
        feed.load()
        if second == 2:
            assert feed.apply().tso == at(2)
            older = [shutil.copytree(folder, tmp_path / "older" / folder.name) for folder in of_stream]
    for copy, folder in zip(older, of_stream, strict=True):
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    feed.lake.refresh()
    monkeypatch.setattr(stream_checkpoint, "_ENDED_AT", {})  # of another process
    feed.send(0, Source(table="t").insert(at(4), 4, "a"))
    feed.resolve(at(4))
    for _ in range(2):
        with pytest.raises(ConfigError, match=f"{refusal.format(checkpoint)}.*Delete"):
            feed.run.bronze()
    for stream in ("bronze", "silver"):
        shutil.rmtree(feed.lake.checkpoint(f"{stream}_{feed.name}"))
    assert feed.go().tso == at(4)
    assert feed.rows("t") == {1: ("a",), 2: ("a",), 3: ("a",), 4: ("a",)}
    assert [batch for batch, *_ in offsets(feed)] == batches


def test_a_topic_that_the_file_no_longer_names_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Spark would plan a batch without it, and refuse that batch for ever."""
    feed = Changefeed(spark, broker, tmp_path)
    other = with_a_second_topic(feed)
    feed.send(0, b"one")
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=b"two")])
    feed.run.bronze()
    for fewer, way_out in (
        ({"topics": [feed.topic]}, "kafka.topics no longer names"),
        ({"topic_pattern": feed.topic}, "kafka.topic_pattern no longer matches"),
    ):
        feed.described = {"kafka": {"bootstrap_servers": broker.bootstrap_servers, **fewer}}
        with pytest.raises(ConfigError, match=rf"^feed {feed.name}: {way_out} what bronze has read: {other}\. Keep it"):
            feed.run.bronze()
    feed.described = {"kafka": {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": f"{feed.topic}.*"}}
    feed.send(0, b"three")
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=b"four")])
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=2)


@pytest.mark.long
def test_a_batch_that_was_planned_without_a_topic_does_not_end_the_feed(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version left it. Without its checkpoint bronze continues; nothing is lost or comes twice."""
    feed = Changefeed(spark, broker, tmp_path, schema=TWO_TABLES)
    other, checkpoint = with_a_second_topic(feed), feed.lake.checkpoint(f"bronze_{feed.name}")
    send_to_both(feed, other, 1)
    assert feed.go().tso == at(1)
    both, feed.described = feed.described, {}
    with monkeypatch.context() as patch:
        patch.setattr(landing, "refuse_removed", lambda *_: None)
        with pytest.raises(OffsetGapError, match=rf"Partitions Set\({other}-0\) have been deleted"):
            feed.run.bronze()
    feed.described = both
    send_to_both(feed, other, 2)
    way_out = rf"Partitions Set\({other}-0\) have been deleted\. .*delete the folder {checkpoint}: "
    with pytest.raises(OffsetGapError, match=way_out):
        feed.run.bronze()
    shutil.rmtree(checkpoint)
    feed.described = {}
    with pytest.raises(ConfigError, match=rf"kafka.topics no longer names what bronze has read: {other}\. "):
        feed.run.bronze()
    feed.described = both
    assert feed.go().tso == at(2)
    assert feed.rows("t") == feed.rows("u") == {1: ("a",), 2: ("a",)}
    assert (len(lines(feed, "messages", "offset")), feed.accounted_messages) == (8, 8)

    # Named as retired it is kept, and not waited for.
    feed.described = {"kafka": {**both["kafka"], "retired": [other]}}  # type: ignore[dict-item]
    feed.resolve(at(3))
    assert feed.go().tso == at(3)

    # A topic of the name that somebody created meanwhile is another one, also to a batch that does not name it.
    with monkeypatch.context() as patch:
        patch.setattr(landing, "refuse_removed", lambda *_: None)
        feed.described = {}
        with pytest.raises(OffsetGapError, match="have been deleted"):
            feed.run.bronze()
    feed.described = both
    broker.delete_topic(other)
    broker.create_topic(other, 1)
    with pytest.raises(OffsetGapError, match=f"created again since bronze read them: {other}. "):
        feed.run.bronze()


@pytest.mark.long
def test_a_new_topic_whose_first_messages_are_gone(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Without its checkpoint bronze continues with those that are left."""
    feed = Changefeed(spark, broker, tmp_path, schema=TWO_TABLES)
    feed.resolve(at(1))
    assert feed.go().tso == at(1)
    other, checkpoint = with_a_second_topic(feed), feed.lake.checkpoint(f"bronze_{feed.name}")
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=b"deleted before it was read")])
    broker.delete_records(other, {0: 1})
    send_to_both(feed, other, 2)
    for _ in range(2):
        with pytest.raises(OffsetGapError, match=rf"{other}-0 starts from 1 instead of 0\. .* {checkpoint}: .*`load`"):
            feed.run.bronze()
    shutil.rmtree(checkpoint)
    assert feed.go().tso == at(2)
    assert feed.rows("t") == feed.rows("u") == {2: ("a",)}
    assert (len(lines(feed, "messages", "offset")), feed.accounted_messages) == (5, 5)


def with_a_second_topic(feed: Changefeed) -> str:
    """Creates a topic that the feed reads beside its own."""
    topic = f"{feed.topic}-2"
    feed.broker.create_topic(topic, 1)
    kafka = {"bootstrap_servers": feed.broker.bootstrap_servers, "topics": [feed.topic, topic]}
    feed.described = {"kafka": kafka}
    return topic


def send_to_both(feed: Changefeed, other: str, second: int) -> None:
    """Sends a row and a watermark, of one table to the feed's own topic, of another to ``other``."""
    for topic, table in ((feed.topic, "t"), (other, "u")):
        events = [Source(table=table).insert(at(second), second, "a"), Resolved(commit_ts=at(second))]
        messages = feed.messages(events)
        feed.broker.produce(topic, [KafkaMessage(partition=0, key=m.key, value=m.value) for m in messages])


@pytest.mark.long
def test_a_lost_checkpoint_and_other_partitions(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one", b"two")
    feed.run.bronze()
    shutil.rmtree(feed.lake.checkpoint(f"bronze_{feed.name}"))
    broker.add_partitions(feed.topic, 2)
    feed.send(0, b"three")
    feed.send(1, b"four")
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=2)
    assert offsets(feed) == [(0, 0, 0, 2, 2), (1, 0, 2, 3, 1), (1, 1, 0, 1, 1)]

    shutil.rmtree(feed.lake.checkpoint(f"bronze_{feed.name}"))
    table = feed.lake.table(Layer.BRONZE, f"{feed.name}_offsets")
    gone = spark.table(table).where("batch = 0").withColumn("partition", F.lit(2))
    gone.write.format("delta").mode("append").saveAsTable(table)
    with pytest.raises(OffsetGapError, match=f"has no more what it was reading: {feed.topic}/2 at offset 2. "):
        feed.run.bronze()


def test_topic_that_was_created_again_is_not_read_on(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Its messages before the offset where bronze was would be missing, and nothing else would tell."""
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one", b"two")
    feed.run.bronze()
    broker.delete_topic(feed.topic)
    broker.create_topic(feed.topic, 1)
    feed.send(0, b"other", b"messages", b"and more of them")
    for _ in range(2):
        with pytest.raises(OffsetGapError, match=f"created again since bronze read them: {feed.topic}. ") as caught:
            feed.run.bronze()
    assert offsets(feed) == [(0, 0, 0, 2, 2)]

    # A mirrored cluster: other ids, the same offsets.
    Path(str(caught.value).rpartition("delete ")[2]).unlink()
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1)
    feed.send(0, b"next")
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1), "the new id is the topic's from now on"
    broker.delete_topic(feed.topic)
    broker.create_topic(feed.topic, 1)
    feed.send(0, *[b"third"] * 9)
    with pytest.raises(OffsetGapError, match="created again"):
        feed.run.bronze()


def test_a_topic_that_came_later_is_known_from_the_run_that_reads_it(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one")
    feed.run.bronze()
    other = with_a_second_topic(feed)
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=b"two")])
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1)
    broker.delete_topic(other)
    broker.create_topic(other, 1)
    broker.produce(other, [KafkaMessage(partition=0, key=None, value=b"of the new topic")] * 3)
    with pytest.raises(OffsetGapError, match=f"created again since bronze read them: {other}. "):
        feed.run.bronze()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kafka.bootstrap.servers": "no.host.of.that.name:1"}, "No resolvable bootstrap urls"),
        ({"kafka.security.protocol": "NONE"}, "NONE"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/Volumes/no/t.jks"}, "/Volumes/no/t.jks"),
    ],
)
def test_topics_that_cannot_be_asked_for_are_not_checked(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream says what is wrong; a warning does where the stream can read all the same."""
    warned: list[tuple[Any, ...]] = []
    monkeypatch.setattr(topic_ids, "warn", lambda *event, **fields: warned.append((*event, fields)))
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"t":{"0":5}}', encoding="utf-8")
    (tmp_path / "topic_ids.json").write_text('{"t": "known"}', encoding="utf-8")
    check_topic_ids(spark, "f", {"kafka.bootstrap.servers": "127.0.0.1:1", **options}, str(tmp_path))
    ((part, event, fields),) = warned
    assert (part, event, fields["feed"]) == ("bronze", "topic ids not checked", "f")
    assert reason in fields["reason"]


def test_failure_of_an_append_is_reported_as_such(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And tried again, as it is no mistake of the feed's file."""
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one")

    def append(*_: object) -> None:
        raise OSError(28, "No space left on device", "/lake/part-0")

    with monkeypatch.context() as patch:
        patch.setattr(micro_batch, "_append", append)
        with pytest.raises(StreamingQueryException) as caught:
            feed.run.bronze()
    assert cause_line(caught.value) == "OSError: [Errno 28] No space left on device: '/lake/part-0'"
    assert feed.run.bronze() == Landed(feed=feed.name, batches=1, messages=1)


def test_the_first_cause_of_what_keeps_kafka_from_being_read_is_named(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    security = {"security.protocol": "SSL", "ssl.truststore.location": "/no/such/truststore.jks"}
    feed = Changefeed(spark, broker, tmp_path)
    kafka = {"bootstrap_servers": broker.bootstrap_servers, "topics": [feed.topic], "security": security}
    feed.described = {"kafka": kafka}
    with pytest.raises(ConfigError, match=r"stopped; check kafka.bootstrap_servers .*kafka.security: ") as caught:
        feed.run.bronze()
    assert str(caught.value).endswith(", because of NoSuchFileException: /no/such/truststore.jks")
    assert "\n" not in str(caught.value)


def test_a_second_run_is_reported_as_such(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Databricks, where no lock keeps it out: Spark finds a batch in the checkpoint that this run did not plan."""
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one", b"two")
    appended = micro_batch._append

    def append(*arguments: object) -> None:
        appended(*arguments)  # type: ignore[arg-type]
        offsets = Path(feed.lake.checkpoint(f"bronze_{feed.name}")) / "offsets"
        shutil.copy(offsets / "0", offsets / "1")

    monkeypatch.setattr(micro_batch, "_append", append)
    with pytest.raises(StreamingQueryException) as caught:
        feed.load(max_offsets_per_trigger=1)
    assert "Multiple streaming jobs detected" in cause_line(caught.value)


def test_a_task_does_not_wait_for_messages_at_the_end_of_a_partition(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """With Kafka's own settings each read takes half a second more, however little there is to read."""
    feed = Changefeed(spark, broker, tmp_path)
    feed.send(0, b"one")
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": feed.topic}
    ours = kafka_options(KafkaSource(feed=feed.name, kafka_options=servers), {}, None)
    kafkas = {**ours, "kafka.fetch.max.wait.ms": "500"}
    seconds: dict[str, list[float]] = {"ours": [], "kafkas": []}
    for _ in range(5):
        for name, options in (("ours", ours), ("kafkas", kafkas)):
            start = time.monotonic()
            assert spark.read.format("kafka").options(**options).load().count() == 1
            seconds[name].append(time.monotonic() - start)
    assert min(seconds["ours"]) < min(seconds["kafkas"]) - 0.25, seconds


@pytest.mark.long
def test_a_session_whose_timestamps_have_no_zone(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    schema = "CREATE TABLE shop.t (id BIGINT PRIMARY KEY, at TIMESTAMP NULL);"
    feed = Changefeed(spark, broker, tmp_path, schema=schema)
    at_column = Column(name="at", type="timestamp")
    feed.send(0, Source(table="t", columns=(ID, at_column)).insert(at(1), 1, "2024-02-03 04:05:06"))
    feed.resolve(at(2))
    assert feed.go().tso == at(2)
    gold = feed.lake.table(Layer.GOLD, f"{feed.name}_shop_t")
    assert spark.sql(f"SELECT unix_seconds(at), typeof(at) FROM {gold}").first() == (1706933106, "timestamp")
