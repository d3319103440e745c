"""What keeps a feed from being landed is known within seconds, before Spark starts, and says what to do."""

from __future__ import annotations

import shutil
import socket
import time
from collections import namedtuple
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from confluent_kafka.admin import TopicMetadata  # type: ignore[attr-defined]

from ticdc_codec.errors import ConfigError
from ticdc_codec.event import Resolved
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.feed import Feed, load_feed
from ticdc_local import preflight
from ticdc_local.broker import KafkaMessage, free_ports
from ticdc_local.cli import main, run
from ticdc_local.kafka import check_brokers
from ticdc_local.preflight import check_lake, problems, read_sample
from ticdc_local.runner.dbutils import Secrets

if TYPE_CHECKING:
    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
OPTIONS = {"enable-tidb-extension": True}


def described(folder: Path, name: str, servers: str, topic: str, security: Mapping[str, Any] | None = None) -> Feed:
    """The feed of a Canal-JSON file."""
    kafka = {"bootstrap_servers": servers, "topics": [topic], "security": dict(security or {})}
    values = {"protocol": "canal-json", "time_zone": "UTC", "options": OPTIONS, "kafka": kafka}
    (folder / f"{name}.yml").write_text(yaml.safe_dump(values))
    return load_feed(folder / f"{name}.yml")


def problem(feed: Feed, lake: Path) -> str | None:
    return problems([feed], lake, Secrets().get).get(feed.name)


def write(broker: Broker, topic: str, protocol: str = "canal_json", count: int = 3) -> None:
    """A topic with watermarks in a protocol."""
    broker.create_topic(topic, 1)
    options = sink_options(protocol, OPTIONS if protocol == "canal_json" else {})
    events = [Resolved(commit_ts=(470_000_000_000 + number) << 18) for number in range(count)]
    messages = PROTOCOLS[protocol].encode(events, options)
    broker.produce(topic, (KafkaMessage(partition=0, key=each.key, value=each.value) for each in messages))


def test_a_feed_that_is_right_has_no_problem(broker: Broker, tmp_path: Path) -> None:
    write(broker, "preflight-good")
    assert problem(described(tmp_path, "good", broker.bootstrap_servers, "preflight-good"), tmp_path) is None


def test_an_empty_topic_is_no_problem(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("preflight-empty", 2)
    assert problem(described(tmp_path, "empty", broker.bootstrap_servers, "preflight-empty"), tmp_path) is None


def test_brokers_that_do_not_answer(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    began = time.monotonic()
    said = problem(described(tmp_path, "f", address, "t"), tmp_path)
    assert said == (
        f"brokers do not answer ({address}: Connection refused); start them, or correct "
        "kafka.bootstrap_servers in f.yml"
    )
    assert time.monotonic() - began < 5


def test_a_host_with_two_dots_in_its_name_is_no_traceback() -> None:
    with pytest.raises(ConfigError, match=r"brokers do not answer \(kafka\.\.example:9092: .*label.*\); start them"):
        check_brokers(["kafka..example:9092"], "the file")


def test_brokers_that_a_parameter_names_do_not_answer(tmp_path: Path) -> None:
    described(tmp_path, "f", "a.example:9092", "t")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    said = problem(load_feed(tmp_path / "f.yml", bootstrap_servers=address), tmp_path)
    assert (said or "").endswith("start them, or correct parameter bootstrap_servers")


def test_an_unknown_topic_is_named_with_the_most_similar_one(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("preflight-orders", 1)
    said = problem(described(tmp_path, "f", broker.bootstrap_servers, "preflight-order"), tmp_path)
    assert said == (
        f"topic preflight-order does not exist at {broker.bootstrap_servers}: did you mean preflight-orders?; "
        "create the changefeed first, or correct kafka.topics in f.yml"
    )


def test_a_pattern_that_no_topic_matches_is_to_be_corrected_by_its_own_key(tmp_path: Path) -> None:
    described(tmp_path, "f", "a.example:9092", "t")
    file = tmp_path / "f.yml"
    file.write_text(file.read_text().replace("topics:\n  - t\n", "topic_pattern: shop_.*\n"))
    with pytest.raises(
        ConfigError, match=r"no topic matches shop_\.\* at a\.example:9092: .*kafka\.topic_pattern in f\.yml"
    ):
        preflight._partitions(load_feed(file), {"crm": TopicMetadata()})


def test_topics_of_a_pattern_that_only_java_reads_are_left_to_spark(broker: Broker, tmp_path: Path) -> None:
    write(broker, "java_b", "craft")
    described(tmp_path, "f", broker.bootstrap_servers, "t")
    file = tmp_path / "f.yml"
    # In Python it would match no topic; in Java java_b, whose messages are of another protocol.
    file.write_text(file.read_text().replace("topics:\n  - t\n", "topic_pattern: 'java_[a-z&&[^t]]'\n"))
    feed = load_feed(file)
    assert problem(feed, tmp_path) is None
    assert read_sample(feed, Secrets().get) is None


def test_first_messages_of_another_protocol_are_refused(broker: Broker, tmp_path: Path) -> None:
    write(broker, "preflight-craft", "craft")
    feed = described(tmp_path, "f", broker.bootstrap_servers, "preflight-craft")
    said = problem(feed, tmp_path)
    assert said is not None
    assert said.startswith("f.yml: protocol: the first messages do not decode as canal-json")
    log = tmp_path / "bronze" / "f_messages" / "_delta_log"
    log.mkdir(parents=True)
    assert problem(feed, tmp_path) == said, "of a run that was killed while it created the table"
    (log / f"{0:020}.json").touch()
    assert problem(feed, tmp_path) is None, "what bronze has landed silver looks at"


def test_messages_that_the_feed_does_not_read_may_be_of_another_protocol(broker: Broker, tmp_path: Path) -> None:
    write(broker, "preflight-reused", "craft")
    described(tmp_path, "f", broker.bootstrap_servers, "preflight-reused")
    with (tmp_path / "f.yml").open("a") as file:
        file.write("starting_offsets: latest\n")
    feed = load_feed(tmp_path / "f.yml")
    assert problem(feed, tmp_path) is None
    sample = read_sample(feed, Secrets().get)
    assert sample is not None
    assert (sample.partitions, sample.messages) == ({"preflight-reused": 1}, [])


def test_a_secret_that_is_not_set(tmp_path: Path) -> None:
    security = {"security.protocol": "SASL_SSL", "sasl.jaas.config": {"secret": "kafka/login"}}
    feed = described(tmp_path, "f", "127.0.0.1:1", "t", security)
    said = problem(feed, tmp_path)
    assert said == "secret kafka/login: environment variable LAKEHOUSE_SECRET_KAFKA_LOGIN is not set"


def test_a_secret_of_the_tidb_that_gold_asks_is_not_set(tmp_path: Path) -> None:
    described(tmp_path, "f", "127.0.0.1:1", "t")
    with (tmp_path / "f.yml").open("a") as file:
        file.write("source: mysql://r@db/?secret=lake/db\n")
    assert "brokers do not answer" in (problem(load_feed(tmp_path / "f.yml"), tmp_path) or ""), "verify-source's alone"
    with (tmp_path / "f.yml").open("a") as file:
        file.write("gold: {on_handle_key_only: source}\n")
    said = problem(load_feed(tmp_path / "f.yml"), tmp_path)
    assert said == "secret lake/db: environment variable LAKEHOUSE_SECRET_LAKE_DB is not set"


def test_brokers_that_speak_without_encryption_where_the_feed_asks_for_it(broker: Broker, tmp_path: Path) -> None:
    feed = described(tmp_path, "f", broker.bootstrap_servers, "t", {"security.protocol": "SSL"})
    began = time.monotonic()
    said = problem(feed, tmp_path)
    assert said is not None
    assert f"{broker.bootstrap_servers} does not answer as a Kafka broker" in said
    assert "SSL_HANDSHAKE" in said
    assert said.endswith("check kafka.security in f.yml")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("mechanism", "login"),
    [
        ("GSSAPI", 'Krb5LoginModule required useKeyTab=true principal="lake";'),
        ("OAUTHBEARER", "OAuthBearerLoginModule required;"),
        ("PLAIN", "PlainLoginModule required username='lake' password='secret';"),
        ("PLAIN", "PlainLoginModule required username=lake password=secret;"),
        ("SCRAM-SHA-512", 'ScramLoginModule required username="lake" password="a\\\\b";'),
        ("PLAIN", "no login at all"),
    ],
)
def test_a_login_that_only_java_can_do_is_left_to_spark(tmp_path: Path, mechanism: str, login: str) -> None:
    security = {"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism, "sasl.jaas.config": {"secret": "a/b"}}
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        feed = described(tmp_path, "f", f"127.0.0.1:{server.getsockname()[1]}", "t", security)
        assert problems([feed], tmp_path, lambda _scope, _key: login) == {}


def test_brokers_that_are_slow_to_answer_are_waited_for(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(broker, "preflight-slow")
    log = tmp_path / "bronze" / "f_messages" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").touch()  # so that first messages are not looked at
    with slow_way(broker.bootstrap_servers, seconds=2.0) as address:
        feed = described(tmp_path, "f", address, "preflight-slow")
        monkeypatch.setattr(preflight, "_REFUSAL_SECONDS", 1.0)
        assert problem(feed, tmp_path) is None
        monkeypatch.setattr(preflight, "_ANSWER_SECONDS", 1.5)
        said = problem(feed, tmp_path)
    assert said == f"{address} did not answer in 2 s; if that is not the network, check kafka.security in f.yml"


@contextmanager
def slow_way(servers: str, seconds: float) -> Iterator[str]:
    """An address from which each connection goes to the broker, whose first answer comes so late."""
    host, _, port = servers.rpartition(":")

    def copy(source: socket.socket, target: socket.socket, wait: float) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                time.sleep(wait)
                wait = 0.0
                target.sendall(data)

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                upstream = socket.create_connection((host, int(port)))
                Thread(target=copy, args=(client, upstream, 0.0), daemon=True).start()
                Thread(target=copy, args=(upstream, client, seconds), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        Thread(target=serve, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("algorithm", ["", "no such"])
def test_the_check_of_host_names_is_no_traceback(tmp_path: Path, algorithm: str) -> None:
    security = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": algorithm}
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        said = problem(described(tmp_path, "f", f"127.0.0.1:{server.getsockname()[1]}", "t", security), tmp_path)
    assert said is not None
    assert said.endswith("check kafka.security in f.yml")
    assert ("no such" in said) == bool(algorithm)


def test_a_lake_in_a_place_that_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match=r"/proc/lake: the lake cannot be written: .*; give a folder that can be"):
        check_lake(Path("/proc/lake"))


def test_full_disk_is_refused_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 0))
    with pytest.raises(ConfigError, match="the disk has 0 MB left; make room for 268 MB at least"):
        check_lake(tmp_path)


def test_a_run_without_a_feed_that_can_start_fails_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        described(tmp_path, name, f"127.0.0.1:{free_ports(1)[0]}", "t")
    given = ["--feed", "one", "--feed", "two", "--param", f"feeds_root={tmp_path}", "--lake", str(tmp_path / "lake")]
    began = time.monotonic()
    assert main(["run", "--project", str(PROJECT), *given]) == 2
    assert time.monotonic() - began < 5
    output = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in output] == [
        "ticdc-lake run: one: not begun: brokers do not answer",
        "two: not begun: brokers do not answer",
    ]


TRUST_STORE = {"security.protocol": "SSL", "ssl.truststore.location": "/etc/ca.jks"}


def test_a_run_names_the_feeds_whose_topics_only_spark_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        up, down = f"127.0.0.1:{server.getsockname()[1]}", f"127.0.0.1:{free_ports(1)[0]}"
        feeds = [
            described(tmp_path, name, servers, "no_such_topic", TRUST_STORE)
            for name, servers in {"one": up, "off": down, "two": up}.items()
        ]
        assert list(run._refused(feeds, tmp_path / "lake")) == ["off"]
    said = f"one, two: brokers answer; topics are not looked at before Spark starts: {preflight.ONLY_JAVA}\n"
    assert capsys.readouterr().err == said


def test_topics_that_the_own_client_reads_are_looked_at(tmp_path: Path) -> None:
    feeds = [described(tmp_path, "f", "127.0.0.1:1", "t"), described(tmp_path, "g", "127.0.0.1:1", "t", TRUST_STORE)]
    assert preflight.only_spark_reads(feeds, Secrets().get) == ["g"]
