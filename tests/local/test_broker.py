"""A real broker: what is produced is there, also after it was killed."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from concurrent.futures import Future
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, TopicPartition
from confluent_kafka import Message as Consumed

from ticdc_codec.errors import ConfigError
from ticdc_local.broker import Broker
from ticdc_local.kafka import KafkaMessage, ensure_topic, recorded_messages


def consumed(bootstrap_servers: str, topic: str, partition: int, count: int) -> list[Consumed]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "test", "fetch.message.max.bytes": 50_000_000}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages: list[Consumed] = []
    while len(messages) < count and (message := consumer.poll(20)) is not None:
        assert message.error() is None
        messages.append(message)
    consumer.close()
    return messages


def new_topic(broker: Broker, partitions: int = 1) -> str:
    name = f"test-{uuid.uuid4().hex}"
    broker.create_topic(name, partitions)
    return name


def test_messages_arrive_as_they_were_given(broker: Broker) -> None:
    topic = new_topic(broker, 2)
    given = [
        KafkaMessage(partition=1, key=None, value=b"a", timestamp=1_600_000_000_123),
        KafkaMessage(
            partition=1, key=b"\0k", value=None, timestamp=1_600_000_000_000, headers=(("h", None), ("h", b"1"))
        ),
        KafkaMessage(partition=1, key=b"", value=b"x" * 17_000_000, timestamp=4_000_000_000_000),
    ]
    assert broker.produce(topic, given) == 3
    found = consumed(broker.bootstrap_servers, topic, 1, 3)
    assert [(each.key(), each.value()) for each in found] == [(each.key, each.value) for each in given]
    assert [each.timestamp() for each in found] == [(TIMESTAMP_CREATE_TIME, each.timestamp) for each in given]
    assert found[1].headers() == [("h", None), ("h", b"1")]


def test_a_missing_topic_is_created(broker: Broker) -> None:
    topic = f"test-{uuid.uuid4().hex}"
    for _ in range(2):
        ensure_topic(broker.bootstrap_servers, topic, 2)
    assert broker.produce(topic, [KafkaMessage(partition=1, key=None, value=b"a")]) == 1
    with pytest.raises(ConfigError, match="expected 3 partitions, it has 2"):
        ensure_topic(broker.bootstrap_servers, topic, 3)


def test_a_topic_that_kafka_does_not_create_in_time_is_named_with_its_broker(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ticdc_local.kafka.REQUEST_SECONDS", 2)
    monkeypatch.setattr("ticdc_local.kafka.AdminClient.create_topics", lambda *_: {"new": Future()})
    with pytest.raises(ConfigError, match=f"Kafka at {broker.bootstrap_servers}: no answer in 2 s"):
        ensure_topic(broker.bootstrap_servers, "new", 1)


def test_a_second_broker_in_a_folder_is_refused_and_the_first_goes_on(broker: Broker) -> None:
    written = (broker.folder / "server.properties").read_bytes()
    with pytest.raises(ConfigError, match="a Kafka broker runs in it; end that one, or take another folder"):
        Broker(broker.folder, port=1).start()
    assert (broker.folder / "server.properties").read_bytes() == written
    assert broker.produce(new_topic(broker), [KafkaMessage(partition=0, key=None, value=b"a")]) == 1


def test_order_within_a_partition_is_kept(broker: Broker) -> None:
    topic = new_topic(broker)
    broker.produce(topic, (KafkaMessage(partition=0, key=None, value=b"%d" % i) for i in range(20_000)))
    found = consumed(broker.bootstrap_servers, topic, 0, 20_000)
    assert [int(each.value() or b"") for each in found] == list(range(20_000))


@pytest.mark.parametrize("partitions_known", [False, True])
def test_a_message_that_is_not_taken_raises(broker: Broker, partitions_known: bool) -> None:
    """By the client at once where it knows the topic's partitions, else when Kafka has told it of them."""
    topic = new_topic(broker)
    if partitions_known:
        broker.produce(topic, [KafkaMessage(partition=0, key=None, value=b"a")])
    with pytest.raises(ConfigError, match="2 of 2 messages were not accepted"):
        broker.produce(topic, [KafkaMessage(partition=9, key=None, value=b"")] * 2)


def test_a_topic_cannot_be_created_twice(broker: Broker) -> None:
    topic = new_topic(broker)
    with pytest.raises(ConfigError, match="already exists"):
        broker.create_topic(topic, 1)


@pytest.mark.long
def test_a_killed_broker_comes_back_with_its_data_and_address(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "a Brøker, 中")
    with broker:
        address = broker.bootstrap_servers
        topic = new_topic(broker)
        broker.produce(topic, [KafkaMessage(partition=0, key=b"k", value=b"v")])
        broker.kill()
        assert broker.pid is None
        broker.start()
        assert broker.bootstrap_servers == address
        assert consumed(address, topic, 0, 1)[0].value() == b"v"


@pytest.mark.long
def test_a_broker_starts_in_a_folder_whose_set_up_was_cut_off(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        ensure_topic(broker.bootstrap_servers, "t", 1)
    shutil.rmtree(tmp_path / "data")
    with Broker(tmp_path) as broker:
        broker.create_topic("t", 1)


def test_the_broker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from ticdc_local.broker import Broker; "
        "broker = Broker(pathlib.Path(sys.argv[1])); broker.start(); "
        "print(broker.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, tmp_path / "kafka"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -9
    pid = int(ended.stdout)
    deadline = time.monotonic() + 20
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def test_recorded_messages_are_read_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl.gz"
    value = base64.b64encode(b"\0\xff").decode()
    records = [
        {"partition": 1, "offset": 7, "timestamp": 1_700_000_000_000, "key": None, "value": value},
        {"partition": 0, "offset": 0, "timestamp": 1_700_000_000_001, "key": "", "value": None},
    ]
    path.write_bytes(gzip.compress("".join(f"{json.dumps(each)}{os.linesep}" for each in records).encode()))
    assert list(recorded_messages(path)) == [
        KafkaMessage(partition=1, offset=7, timestamp=1_700_000_000_000, key=None, value=b"\0\xff"),
        KafkaMessage(partition=0, offset=0, timestamp=1_700_000_000_001, key=b"", value=None),
    ]
