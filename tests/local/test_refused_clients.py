"""What a broker refuses a client, or lets it wait for, is no empty topic: the address by which it names itself, a
login, a topic of other users, silence."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
import yaml
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ticdc_codec.event import Resolved
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.config.feed import Feed, load_feed
from ticdc_local import broker as brokers
from ticdc_local import preflight
from ticdc_local.broker import Broker, KafkaMessage, free_ports
from ticdc_local.preflight import problems

OPTIONS = {"enable-tidb-extension": True}
LISTENERS = """\
listeners=PLAINTEXT://127.0.0.1:{port},CLOSED://127.0.0.1:{closed},SILENT://127.0.0.1:{silent},\
LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CLOSED://127.0.0.1:{nobody},SILENT://127.0.0.1:{mute},\
LOGIN://127.0.0.1:{login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CLOSED:PLAINTEXT,SILENT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,\
CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_lake="right";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""Of several lines with one key Java reads the last."""
READABLE, DESCRIBED, HIDDEN = TOPICS = ("readable", "described", "hidden")
"""What the user lake may do with a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Addresses of a broker with ACLs."""

    closed: str
    """It names itself by an address where nobody listens."""
    silent: str
    """It names itself by an address that takes connections and never answers."""
    nobody: str
    """The address where nobody listens."""
    login: str
    """For the user lake."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    closed, silent, login = free_ports(3)
    with socket.socket() as nobody, socket.create_server(("127.0.0.1", 0)) as mute:
        nobody.bind(("127.0.0.1", 0))
        ports = {"closed": closed, "silent": silent, "login": login, "nobody": port(nobody), "mute": port(mute)}
        listeners = LISTENERS.replace("{port}", "{{port}}").replace("{controller}", "{{controller}}").format(**ports)
        running = Broker(tmp_path_factory.mktemp("guarded"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(brokers, "PROPERTIES", brokers.PROPERTIES + listeners)
            running.start()
        with ExitStack() as stack:
            stack.callback(running.stop)
            allow(running)
            for topic in TOPICS:
                write(running, topic)
            yield Guarded(**{name: f"127.0.0.1:{ports[name]}" for name in ("closed", "silent", "nobody", "login")})


def port(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def allow(broker: Broker) -> None:
    """Lets the user lake read one topic, and know of another one; and nothing of a consumer's group."""
    allowed = [(READABLE, AclOperation.READ), (READABLE, AclOperation.DESCRIBE), (DESCRIBED, AclOperation.DESCRIBE)]
    bindings = [
        AclBinding(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:lake", "*", operation, AclPermissionType.ALLOW
        )
        for topic, operation in allowed
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_acls(bindings).values():
        future.result(30)


def write(broker: Broker, topic: str, protocol: str = "craft") -> None:
    """A topic with watermarks in another protocol than the feeds'."""
    broker.create_topic(topic, 1)
    events = [Resolved(commit_ts=(470_000_000_000 + number) << 18) for number in range(3)]
    messages = PROTOCOLS[protocol].encode(events, sink_options(protocol, {}))
    broker.produce(topic, (KafkaMessage(partition=0, key=each.key, value=each.value) for each in messages))


def described(folder: Path, servers: str, topic: str, security: dict[str, object] | None = None) -> Feed:
    """The feed of a Canal-JSON file."""
    kafka = {"bootstrap_servers": servers, "topics": [topic], "security": security or {}}
    values = {"protocol": "canal-json", "time_zone": "UTC", "options": OPTIONS, "kafka": kafka}
    (folder / "f.yml").write_text(yaml.safe_dump(values))
    return load_feed(folder / "f.yml")


def problem(feed: Feed, lake: Path, password: str = "right") -> str:
    """Why the feed cannot be landed; empty if it can."""
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="lake" password="{password}";'
    return problems([feed], lake, lambda *_: login).get(feed.name, "")


def with_login(folder: Path, servers: str, topic: str) -> Feed:
    """The feed of the user lake."""
    jaas = {"secret": "kafka/jaas"}
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    return described(folder, servers, topic, security)


def test_a_broker_that_names_itself_by_an_address_of_another_network(guarded: Guarded, tmp_path: Path) -> None:
    said = problem(described(tmp_path, guarded.closed, READABLE), tmp_path)
    assert said.startswith(f"{guarded.closed}")
    assert f"the broker names itself {guarded.nobody}" in said
    assert "Connection refused" in said
    assert "correct advertised.listeners" in said


def test_a_broker_that_does_not_answer_at_the_address_that_it_names(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topics are known or not, as the client's threads have it."""
    monkeypatch.setattr(preflight, "_CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(preflight, "_ANSWER_SECONDS", 4.0)
    said = problem(described(tmp_path, guarded.silent, READABLE), tmp_path).removeprefix(guarded.silent)
    assert said.startswith((f" sent no message of {READABLE}/0, nor its end, in 4 s", " did not answer", " does not"))


@pytest.mark.parametrize("way", ["", "sasl_ssl://"])
def test_an_address_that_a_broker_names_is_known_by_its_number(way: str) -> None:
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    named = KafkaError(KafkaError._TRANSPORT, f"{way}10.0.0.5:9092/1: Connection setup timed out")
    given = KafkaError(KafkaError._TRANSPORT, f"{way}a.example:9092/bootstrap: Connection setup timed out")
    none = KafkaError(KafkaError._TRANSPORT)
    assert "; the broker names itself 10.0.0.5:9092: correct adv" in preflight._cause(none, [down, named, given])
    assert preflight._cause(none, [down, given]) == given.str()
    assert preflight._cause(none, []) == none.str()


def test_a_topic_that_sends_nothing_is_not_empty(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("refused-nothing", 1)
    monkeypatch.setattr(preflight, "_MESSAGE_SECONDS", 0.001)
    monkeypatch.setattr(preflight, "_ANSWER_SECONDS", 0.002)
    assert problem(described(tmp_path, broker.bootstrap_servers, "refused-nothing"), tmp_path) == (
        f"{broker.bootstrap_servers} sent no message of refused-nothing/0, nor its end, in 0 s; if that is not the "
        "network, look at the log of the partition's broker"
    )


def test_a_topic_that_the_user_may_not_read_is_not_empty(guarded: Guarded, tmp_path: Path) -> None:
    said = problem(with_login(tmp_path, guarded.login, DESCRIBED), tmp_path)
    assert said.startswith(f"topic {DESCRIBED} at {guarded.login} cannot be read: ")
    assert "Topic authorization failed" in said
    assert said.endswith("; let the user of kafka.security in f.yml read it (ACL READ)")


def test_a_topic_is_read_by_a_user_who_may_do_nothing_with_groups(guarded: Guarded, tmp_path: Path) -> None:
    said = problem(with_login(tmp_path, guarded.login, READABLE), tmp_path)
    assert said.startswith("f.yml: protocol: the first messages do not decode as canal-json")


def test_a_topic_that_the_user_may_not_see_may_be_there(guarded: Guarded, tmp_path: Path) -> None:
    said = problem(with_login(tmp_path, guarded.login, HIDDEN), tmp_path)
    assert said.startswith(f"topic {HIDDEN} does not exist at {guarded.login}: ")
    assert said.endswith(
        "create the changefeed first, let the user of kafka.security see it (ACLs DESCRIBE and READ), or correct "
        "kafka.topics in f.yml"
    )


def test_a_wrong_password_is_named(guarded: Guarded, tmp_path: Path) -> None:
    said = problem(with_login(tmp_path, guarded.login, READABLE), tmp_path, password="wrong")
    assert said.startswith(f"{guarded.login} does not answer as a Kafka broker: ")
    assert "Authentication failed" in said
    assert said.endswith("; check kafka.security in f.yml")


def test_messages_that_take_longer_than_a_moment_are_read(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(broker, "refused-late")
    monkeypatch.setattr(preflight, "_MESSAGE_SECONDS", 0.001)
    said = problem(described(tmp_path, broker.bootstrap_servers, "refused-late"), tmp_path)
    assert said.startswith("f.yml: protocol: the first messages do not decode as canal-json")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_certificate_that_only_java_trusts_is_to_be_named(tmp_path: Path) -> None:
    with untrusted_server(tmp_path) as address:
        said = problem(described(tmp_path, address, "t", {"security.protocol": "SSL"}), tmp_path)
    assert said.startswith(f"{address} does not answer as a Kafka broker: ")
    assert "certificate verify failed" in said
    assert "ssl.ca.location" not in said, "an option of another client"
    assert said.endswith("name that one: ssl.truststore.location; check kafka.security in f.yml")


@contextmanager
def untrusted_server(folder: Path) -> Iterator[str]:
    """The address of a server whose certificate nobody else has signed."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-days", "1")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subprocess.run([*command, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, suppress(OSError):
                context.wrap_socket(client, server_side=True).close()

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        Thread(target=serve, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{port(server)}"
