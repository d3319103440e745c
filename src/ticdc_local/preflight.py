"""Checks what a run needs before Spark starts, within seconds.

A lake that can be written, secrets, brokers; and where this machine's client can read them, topics, and first messages
of the protocol that the feed file names.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata, TopicMetadata  # type: ignore[attr-defined]

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_codec.protocols import Pair
from ticdc_lakehouse.bronze.landing import messages_table
from ticdc_lakehouse.bronze.topic_pattern import only_java_reads
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.config.feed import Feed
from ticdc_lakehouse.config.layer_settings import decoding_of
from ticdc_lakehouse.config.security import kafka_source_options
from ticdc_lakehouse.folder_lake import holds_table
from ticdc_lakehouse.silver.first_messages import MESSAGES, mistake
from ticdc_lakehouse.tidb.session import Secret, address_of
from ticdc_local.kafka import SILENT, check_brokers, client_options, unreachable

FREE_BYTES = 256 * 1024**2
"""Nothing that writes starts with less free space on the lake's disk."""
ONLY_JAVA = "kafka.security or kafka.topic_pattern has what only Java reads"
"""Why `read_sample` gives nothing, and `problems` does not look at a feed's topics."""
_ANSWER_SECONDS, _REFUSAL_SECONDS = 10.0, 3.0
"""For the list of topics, which is long on its way in a slow network; and for brokers that refuse the client."""
_CONNECT_SECONDS = 4.0
"""For a connection with its login: an address that drops packets is named before the time for an answer is over."""
_MESSAGE_SECONDS = 1.5
_NO_ANSWER = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
"""How the client calls it."""
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_NAMED_BY_BROKER = re.compile(r"(?:\w+://)?(\S+)/\d+: ")
"""How a text begins about a broker that another one named; about one of the feed's file it has no number."""
_UNTRUSTED = "certificate verify failed"
"""In the client's text of a certificate that it does not trust."""
Topics = Mapping[str, TopicMetadata]
"""A broker's topics by name."""
_JAAS = re.compile(r'\b(username|password)\s*=\s*"([^"\\]+)"')
"""In JAAS's plainest spelling; Java reads other quotes, and escapes, as well."""
_HOST_NAMES = "ssl.endpoint.identification.algorithm"
_SAME_IN_BOTH_CLIENTS = {"security.protocol", "sasl.mechanism", _HOST_NAMES}
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms that this machine's client has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample of what a feed's topics hold."""

    partitions: Mapping[str, int]
    """Number of partitions of each topic."""
    messages: list[Pair]
    """Up to 48 of the first ones that the feed reads."""


def check_lake(lake: Path) -> None:
    """Raises ConfigError if the folder cannot be made or written, or if its disk is full."""
    check_writable(lake)
    free = shutil.disk_usage(lake).free
    if free < FREE_BYTES:
        raise ConfigError(
            f"{lake}: the disk has {free / 1e6:.0f} MB left; make room for {FREE_BYTES / 1e6:.0f} MB at least, or give "
            "a folder on another disk: --lake FOLDER"
        )


def check_writable(lake: Path) -> None:
    """Raises ConfigError if the folder cannot be made or written."""
    try:
        lake.mkdir(parents=True, exist_ok=True)
        for folder in (lake, *(lake / layer for layer in Layer if (lake / layer).is_dir())):
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"0" * 4096)
    except OSError as error:
        raise ConfigError(
            f"{lake}: the lake cannot be written: {error.strerror}; give a folder that can be: --lake FOLDER"
        ) from None


def problems(feeds: Sequence[Feed], lake: Path, secret: Secret) -> dict[str, str]:
    """Returns why a feed cannot be landed now, by its name, for the feeds that cannot."""
    with ThreadPoolExecutor(max(1, len(feeds))) as pool:
        results = pool.map(lambda feed: _problem(feed, lake, secret), feeds)
        return {feed.name: problem for feed, problem in zip(feeds, results, strict=True) if problem is not None}


def only_spark_reads(feeds: Sequence[Feed], secret: Secret) -> list[str]:
    """Returns the names of feeds whose topics `problems` has not looked at, since only Spark can read them."""
    return [feed.name for feed in feeds if _client(feed, _security(feed, secret)) is None]


def _problem(feed: Feed, lake: Path, secret: Secret) -> str | None:
    try:
        options = _security(feed, secret)
        check_brokers(feed.bootstrap_servers, feed.servers_setting)
        client = _client(feed, options)
        if client is not None:
            _check_kafka(feed, client, lake)
    except ConfigError as error:
        return str(error)
    return None


def _security(feed: Feed, secret: Secret) -> dict[str, str]:
    """Returns the Kafka client's options. Raises ConfigError for a missing secret, also that of a TiDB which gold
    reads."""
    if feed.gold.reads_source and feed.source is not None:
        address_of(feed.source, secret)
    return kafka_source_options(feed.security, secret, on_databricks=False)


def _client(feed: Feed, security: Mapping[str, str]) -> dict[str, object] | None:
    """Returns the options of this machine's Kafka client for those of the Java client; None if one has no equivalent,
    such as a Java key store or a Kerberos login, or if only Java reads the pattern of topics: then only Spark can."""
    if feed.topic_pattern is not None and only_java_reads(feed.topic_pattern):
        return None
    options = {name.removeprefix("kafka."): value for name, value in security.items()}
    login = dict(_JAAS.findall(options.pop("sasl.jaas.config", "")))
    has_login = len(login) == 2 and options.get("sasl.mechanism") in _WITH_PASSWORD
    logs_in = options.get("security.protocol", "").upper().startswith("SASL_")
    if not options.keys() <= _SAME_IN_BOTH_CLIENTS or (logs_in and not has_login):
        return None
    if options.get(_HOST_NAMES) == "":  # Java's word for no check
        options[_HOST_NAMES] = "none"
    credentials = {f"sasl.{name}": value for name, value in login.items()}
    return {**client_options(",".join(feed.bootstrap_servers)), **options, **credentials}


def _check_kafka(feed: Feed, client: Mapping[str, object], lake: Path) -> None:
    """Raises ConfigError if a topic does not exist, or the first messages are of another protocol. Once bronze has a
    table they are not looked at: silver knows the protocol, or compares it itself."""
    with _consumer(feed, client) as (consumer, metadata):
        partitions = _partitions(feed, metadata.topics)
        if not holds_table(lake / Layer.BRONZE / messages_table(feed.name)):
            _check_protocol(feed, _first_read(feed, consumer, metadata, partitions))


def read_sample(feed: Feed, secret: Secret) -> Sample | None:
    """Returns the feed's partitions and first messages; None where its security or pattern is one that only Java reads.

    Raises ConfigError if its brokers cannot be read, or a topic does not exist.
    """
    options = _security(feed, secret)
    check_brokers(feed.bootstrap_servers, feed.servers_setting)
    client = _client(feed, options)
    if client is None:
        return None
    with _consumer(feed, client) as (consumer, metadata):
        partitions = _partitions(feed, metadata.topics)
        counts = Counter(partition.topic for partition in partitions)
        return Sample(partitions=counts, messages=_first_read(feed, consumer, metadata, partitions))


@contextmanager
def _consumer(feed: Feed, client: Mapping[str, object]) -> Iterator[tuple[Consumer, ClusterMetadata]]:
    """Opens a consumer and asks for the brokers' topics. Raises ConfigError where the broker does not let it read."""
    errors: list[KafkaError] = []
    own = {
        "group.id": "ticdc-lake-preflight",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "socket.connection.setup.timeout.ms": int(_CONNECT_SECONDS * 1000),
        "error_cb": errors.append,
    }
    try:
        with closing(Consumer({**client, **own}, logger=SILENT)) as consumer:
            yield consumer, _metadata(consumer, errors)
    except KafkaException as error:
        cause = _cause(error.args[0], errors)
        if error.args[0].code() not in _NO_ANSWER or _are_down(errors):
            problem = f"does not answer as a Kafka broker: {cause}; "
        elif errors:
            problem = f"did not answer in {_ANSWER_SECONDS:.0f} s: {cause}; "
        else:
            problem = f"did not answer in {_ANSWER_SECONDS:.0f} s; if that is not the network, "
        servers = ", ".join(feed.bootstrap_servers)
        raise ConfigError(f"{servers} {problem}check kafka.security in {feed.name}.yml") from None


def _metadata(consumer: Consumer, errors: Sequence[KafkaError]) -> ClusterMetadata:
    """Returns the brokers and their topics. Raises KafkaException, at once where every broker refuses the client."""
    metadata: ClusterMetadata
    try:
        metadata = consumer.list_topics(timeout=_REFUSAL_SECONDS)
    except KafkaException:
        consumer.poll(0)  # reports errors
        if _are_down(errors):
            raise
        try:
            metadata = consumer.list_topics(timeout=_ANSWER_SECONDS - _REFUSAL_SECONDS)
        finally:
            consumer.poll(0)
    return metadata


def _are_down(errors: Sequence[KafkaError]) -> bool:
    """True if the client has been refused by all brokers, or lost them."""
    return any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in errors)


def _cause(error: KafkaError, errors: Sequence[KafkaError]) -> str:
    """Returns why the brokers do not answer: a refused login or certificate before all else that went wrong."""
    named = [each for each in errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
    if error.code() not in _NO_ANSWER or not named:
        return error.str()
    refusal = next((each for each in named if each.code() in _REFUSED), None)
    if refusal is None:
        return _with_listeners(named[0].str())
    text, _, _ = refusal.str().partition(", verify that ")  # its advice names an option of this client
    store = "; if it is in a trust store of Java's, name that one: ssl.truststore.location"
    return text + (store if _UNTRUSTED in text else "")


def _with_listeners(text: str) -> str:
    """Returns the text, for a broker that was named by another one with what to correct."""
    named = _NAMED_BY_BROKER.match(text)
    if named is None:
        return text
    return f"{text}; the broker names itself {named[1]}: correct advertised.listeners, or make that address known here"


def _partitions(feed: Feed, topics: Topics) -> list[TopicPartition]:
    """Returns the beginnings of all partitions of the feed's topics. Raises ConfigError for an unknown topic."""
    known = sorted(name for name in topics if not name.startswith("__"))
    names = feed.topics or [name for name in known if re.fullmatch(feed.topic_pattern or "", name)]
    absent = [name for name in names if name not in topics]
    if absent or not names:
        problem = f"topic {absent[0]} does not exist" if absent else f"no topic matches {feed.topic_pattern}"
        hint = suggestion(absent[0] if absent else "", known)
        # A broker names no topic that the user may not describe.
        allow = ", let the user of kafka.security see it (ACLs DESCRIBE and READ)" if feed.security else ""
        key = "topics" if feed.topic_pattern is None else "topic_pattern"
        raise ConfigError(
            f"{problem} at {', '.join(feed.bootstrap_servers)}: {hint}; "
            f"create the changefeed first{allow}, or correct kafka.{key} in {feed.name}.yml"
        )
    return [
        TopicPartition(name, partition, OFFSET_BEGINNING) for name in names for partition in topics[name].partitions
    ]


def _first_read(
    feed: Feed, consumer: Consumer, metadata: ClusterMetadata, partitions: list[TopicPartition]
) -> list[Pair]:
    """Returns the first messages of the topics; none where the feed begins at their end: what they hold by now may be
    of another changefeed. That they can be read is seen there, too. Raises ConfigError as `_messages`."""
    messages = _messages(feed, consumer, metadata, partitions)
    return [] if feed.begins_at_end else messages


def _messages(
    feed: Feed, consumer: Consumer, metadata: ClusterMetadata, partitions: list[TopicPartition]
) -> list[Pair]:
    """Returns first messages, of some or all of the partitions; none if all are empty.

    Raises ConfigError where neither a message nor the end of a partition comes, and where the user may not read.
    """
    servers = ", ".join(feed.bootstrap_servers)
    consumer.assign(partitions)
    messages: list[Pair] = []
    unread = {(each.topic, each.partition) for each in partitions}
    for seconds in (_MESSAGE_SECONDS, _ANSWER_SECONDS - _MESSAGE_SECONDS):
        refused = _read(consumer, messages, unread, seconds)
        if messages or not unread:
            return messages
        if refused:
            topic, why = refused[0]
            raise ConfigError(
                f"topic {topic} at {servers} cannot be read: {why}; let the user of kafka.security in {feed.name}.yml "
                "read it (ACL READ)"
            )
        _check_leaders(feed, metadata, unread)
    topic, partition = min(unread)
    raise ConfigError(
        f"{servers} sent no message of {topic}/{partition}, nor its end, in {_ANSWER_SECONDS:.0f} s; if that is not "
        "the network, look at the log of the partition's broker"
    )


def _read(
    consumer: Consumer, messages: list[Pair], unread: set[tuple[str, int]], seconds: float
) -> list[tuple[str, str]]:
    """Adds to ``messages`` until there are enough or no more come, and removes from ``unread`` the partitions that have
    been read to their end. Returns the topics that were refused, each with the reason."""
    deadline = time.monotonic() + seconds
    refused: list[tuple[str, str]] = []
    while unread and len(messages) < MESSAGES and (left := deadline - time.monotonic()) > 0:
        consumed = consumer.consume(MESSAGES - len(messages), timeout=min(left, 0.5))
        for each in consumed:
            error, topic, partition = each.error(), each.topic(), each.partition()
            if error is None:
                messages.append((each.key(), each.value()))
            elif topic is None or partition is None:  # about the consumer's group, which nothing here needs
                continue
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard((topic, partition))
            else:
                refused.append((topic, error.str()))
        if messages and not consumed:  # what is there has been read
            break
    return refused


def _check_leaders(feed: Feed, metadata: ClusterMetadata, partitions: set[tuple[str, int]]) -> None:
    """Raises ConfigError if a broker that has one of these partitions is known by an address which this machine does
    not reach: it may reach the first brokers by another one."""
    leaders = {
        each.leader
        for name, topic in metadata.topics.items()
        for each in topic.partitions.values()
        if (name, each.id) in partitions
    }
    for broker in (metadata.brokers[leader] for leader in sorted(leaders & metadata.brokers.keys())):
        address = f"{broker.host}:{broker.port}"
        if (why := unreachable(address)) is not None:
            raise ConfigError(
                f"{', '.join(feed.bootstrap_servers)}: the broker names itself {address}, which this machine does not "
                f"reach ({why}); correct advertised.listeners of the broker, or make that address known here"
            )


def _check_protocol(feed: Feed, messages: list[Pair]) -> None:
    fault = mistake(decoding_of(feed, {}), messages) if messages else None
    if fault is not None:
        raise ConfigError(fault.removeprefix(f"feed {feed.name}: "))
