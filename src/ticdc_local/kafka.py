"""Writes messages into a Kafka without security: recorded ones, and those of tests."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from ticdc_codec.errors import ConfigError
from ticdc_testkit.recorded_streams import gzipped_lines

REQUEST_SECONDS = 30
_CONNECT_SECONDS = 2.0
LARGEST_MESSAGE = 64 * 1024 * 1024
PRODUCER = {
    # One attempt's order is the order in the log, also after a retry.
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.num.messages": 10_000,
    "batch.size": 4 * 1024 * 1024,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "message.max.bytes": LARGEST_MESSAGE,
    "message.timeout.ms": REQUEST_SECONDS * 1000,
    "delivery.report.only.error": True,
    # An unknown topic fails after this long, not after the whole time-out.
    "topic.metadata.propagation.max.ms": 5000,
}
SILENT = logging.getLogger("ticdc_local.librdkafka")
SILENT.disabled = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaMessage:
    """A message to produce, or one that was recorded."""

    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    key: bytes | None
    value: bytes | None
    timestamp: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    """Milliseconds since 1970; None lets Kafka take the present."""
    offset: int | None = None
    """Where it lay when it was recorded; producing does not look at it."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


def recorded_messages(path: Path) -> Iterator[KafkaMessage]:
    """Yields the messages of a recorded stream in order.

    The file is gzipped JSON lines with partition, offset, timestamp (ms), key and value (base64 or null).
    Raises ConfigError, which names file and line, for a missing or damaged file.
    """
    for number, line in enumerate(gzipped_lines(path), start=1):
        try:
            yield msgspec.json.decode(line, type=KafkaMessage)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: line {number}: expected a message: {error}") from None


def check_brokers(servers: Iterable[str], where: str) -> None:
    """Raises ConfigError if no broker takes a connection; ``where`` says where their addresses stand."""
    reasons = []
    for server in servers:
        why = unreachable(server)
        if why is None:
            return
        reasons.append(f"{server}: {why}")
    raise ConfigError(f"brokers do not answer ({'; '.join(reasons)}); start them, or correct {where}")


def unreachable(server: str) -> str | None:
    """Returns why ``host:port`` takes no connection; None if it takes one."""
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        return str(error.strerror or error)
    except UnicodeError as error:  # no host can have that name
        return str(error)
    return None


def ensure_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Creates the topic if it does not exist.

    Raises ConfigError if it has another number of partitions, or if Kafka does not answer.
    """
    admin = AdminClient(client_options(bootstrap_servers) | {"error_cb": lambda _: None}, logger=SILENT)
    try:
        existing = admin.list_topics(timeout=REQUEST_SECONDS).topics.get(topic)
        if existing is None:
            admin.create_topics([NewTopic(topic, partitions)])[topic].result(REQUEST_SECONDS)
        elif len(existing.partitions) != partitions:
            raise ConfigError(f"topic {topic}: expected {partitions} partitions, it has {len(existing.partitions)}")
    except (KafkaException, TimeoutError) as error:
        raise ConfigError(f"Kafka at {bootstrap_servers}: {reason(error)}") from error


def reason(error: KafkaException | TimeoutError) -> str:
    """Returns why Kafka did not do what it was asked for."""
    return str(error.args[0].str()) if isinstance(error, KafkaException) else f"no answer in {REQUEST_SECONDS} s"


def produce(bootstrap_servers: str, topic: str, messages: Iterable[KafkaMessage]) -> int:
    """Writes the messages to a topic, in their order within each partition.

    Returns their number once all are acknowledged. Raises ConfigError when one was not taken.
    """
    return write(open_producer(bootstrap_servers), topic, messages)


def open_producer(bootstrap_servers: str) -> Producer:
    """Returns a producer for `write`. A new one waits up to a second before its first message: Kafka assigns its id."""
    return Producer(client_options(bootstrap_servers) | PRODUCER | {"error_cb": lambda _: None}, logger=SILENT)


def write(producer: Producer, topic: str, messages: Iterable[KafkaMessage]) -> int:
    """Writes as `produce` does, through a producer that may have written before. Raises ConfigError as it does."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    count = 0
    for message in messages:
        _enqueue(producer, topic, message, delivered)
        count += 1
    unsent = producer.flush(REQUEST_SECONDS)
    if failed or unsent:
        why = failed[0].str() if failed else reason(TimeoutError())
        raise ConfigError(f"topic {topic}: {len(failed) + unsent} of {count} messages were not accepted: {why}")
    return count


def _enqueue(
    producer: Producer, topic: str, message: KafkaMessage, delivered: Callable[[KafkaError | None, object], None]
) -> None:
    """Hands one message over, waiting while the producer's queue is full.

    One that the client itself refuses (too large, a partition that it knows not to exist) is a failed delivery.
    """
    while True:
        try:
            producer.produce(
                topic,
                partition=message.partition,
                key=message.key,
                value=message.value,
                timestamp=message.timestamp or 0,
                headers=list(message.headers) or None,
                on_delivery=delivered,
            )
        except BufferError:
            producer.poll(1)
        except KafkaException as error:
            delivered(error.args[0], None)
            return
        else:
            return


def client_options(bootstrap_servers: str) -> dict[str, Any]:
    """Returns options of any client of this broker: quiet, and quick to come back to a broker that was restarted."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "log_level": 0,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
