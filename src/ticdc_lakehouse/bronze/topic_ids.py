"""Checks that a topic is still the one that bronze read: Kafka assigns an id to each topic when it is created.

Where a topic was deleted and created again under its name, a stream continues at the offset that it had reached in the
old one. Once the new topic is longer than that, nothing but the id shows that its first messages were not read.

The ids are kept beside the checkpoint of bronze's stream. Nothing is checked where they are not known: before Kafka
2.8, where Spark's JVM is out of reach (Spark Connect, so serverless compute and the standard access mode), and with a
service credential of Unity Catalog, which stands for the client's options in Spark's source only. Where Kafka's client
does not take the feed's options, as it may be with a truststore in a volume, a warning says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ticdc_codec.errors import OffsetGapError, listed
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.error_text import first_line, last_named
from ticdc_lakehouse.log import warn

_FILE = "topic_ids.json"
_PREFIX = "kafka."
"""Prefix of the options of Spark's source that are the Kafka client's."""
_ON_DATABRICKS = "databricks."
"""Prefix of the options of its source by which Databricks logs in."""
_ANSWER_MS = "10000"
"""Time for Kafka's answer. The stream, which comes next, waits longer, and says what is wrong."""
_NO_ID = "A" * 22
"""What Kafka's client returns for a topic of a broker that knows no ids."""


def check_topic_ids(spark: SparkSession, feed: str, kafka_options: Mapping[str, str], checkpoint: str) -> None:
    """Notes the ids of the topics that the stream has read. Raises OffsetGapError if one has another id than before."""
    noted = _noted(checkpoint)
    # A batch that was planned without a topic, which did not exist for a while, does not name it any more.
    read = stream_checkpoint.planned_topics(checkpoint) | noted.keys()
    found = dict(_topic_ids(spark, feed, kafka_options, read))
    if recreated := sorted(topic for topic in noted.keys() & found.keys() if noted[topic] != found[topic]):
        raise OffsetGapError(
            f"feed {feed}: topics that were deleted and created again since bronze read them: {listed(recreated)}. "
            "Reading on at the old offsets would miss what is before them. Begin a new feed, and load an export where "
            "the new messages do not go back far enough. If the offsets stayed, as in a mirrored cluster, delete "
            f"{Path(checkpoint) / _FILE}"
        )
    if found.keys() - noted.keys():
        stream_checkpoint.write_beside(checkpoint, _FILE, json.dumps({**found, **noted}, sort_keys=True))


def _noted(checkpoint: str) -> dict[str, str]:
    """Returns the ids that were noted; none if the file is missing, or cut off by a loss of power."""
    try:
        return msgspec.json.decode(stream_checkpoint.read_beside(checkpoint, _FILE) or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def _topic_ids(
    spark: SparkSession, feed: str, kafka_options: Mapping[str, str], topics: set[str]
) -> Iterator[tuple[str, str]]:
    """Yields the topics that Kafka has an id for, each with its id. What keeps Kafka from answering is reported by the
    stream, which reads from it next."""
    if any(name.startswith(_ON_DATABRICKS) for name in kafka_options):
        return
    jvm: Any = getattr(spark, "_jvm", None)
    client = None if jvm is None else _admin_client(jvm)
    if not topics or client is None:
        return
    try:
        admin = client.create(_properties(jvm, kafka_options))
    except Py4JError as error:
        warn("bronze", "topic ids not checked", feed=feed, reason=last_named(error) or first_line(error))
        return
    try:
        names = jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        answers = admin.describeTopics(names).topicNameValues()
        for topic in topics:
            with suppress(Py4JError):
                topic_id = answers.get(topic).get().topicId().toString()
                if topic_id != _NO_ID:
                    yield topic, topic_id
    finally:
        admin.close()


def _admin_client(jvm: Any) -> JavaClass | None:
    """Returns the class of Kafka's admin client, which Databricks has under a name of its own."""
    classes = (
        jvm.org.apache.kafka.clients.admin.AdminClient,
        jvm.kafkashaded.org.apache.kafka.clients.admin.AdminClient,
    )
    return next((found for found in classes if isinstance(found, JavaClass)), None)


def _properties(jvm: Any, kafka_options: Mapping[str, str]) -> Any:
    properties = jvm.java.util.Properties()
    for name, value in kafka_options.items():
        if name.startswith(_PREFIX):
            properties.setProperty(name.removeprefix(_PREFIX), value)
    properties.setProperty("request.timeout.ms", _ANSWER_MS)
    properties.setProperty("default.api.timeout.ms", _ANSWER_MS)
    return properties
