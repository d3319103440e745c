"""A real Kafka broker for demo and tests: KRaft, one Java process, its own folder and ports.

It lives no longer than the Python process that started it, however that one ends.
"""

from __future__ import annotations

import base64
import fcntl
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import IO, Any, Self

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from ticdc_codec.errors import ConfigError
from ticdc_local.jars import Group, class_path
from ticdc_local.java import find_java, serial_collector
from ticdc_local.kafka import (
    LARGEST_MESSAGE,
    REQUEST_SECONDS,
    SILENT,
    KafkaMessage,
    client_options,
    open_producer,
    reason,
    recorded_messages,
    write,
)

__all__ = ["Broker", "KafkaMessage", "free_ports", "recorded_messages"]

START_SECONDS = 60
STOP_SECONDS = 20
JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
# Paths are relative to the broker's folder, which is Java's working directory: Kafka reads this file as Latin-1, so an
# umlaut in an absolute path would be lost, and a comma in it would begin another folder.
# A short session lets a restart after kill -9 take one second instead of eleven. Messages keep the times they were
# recorded with, and none is ever deleted for its age.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs=data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.message.timestamp.after.max.ms=9223372036854775807
message.max.bytes={largest}
replica.fetch.max.bytes={largest}
socket.request.max.bytes={request}
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""


class Broker:
    """``with Broker(folder) as broker``: a broker that keeps its data, and its ports, in ``folder``.

    The folder is created if it does not exist; a broker started on it again has the same topics and the same address,
    but for a ``port`` that is given.

    ``kill``, ``add_partitions``, ``delete_topic`` and ``delete_records`` are for tests: no command uses them.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._producer: Producer | None = None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, known as soon as the broker was started once."""
        line = next(line for line in self._properties.read_text().splitlines() if line.startswith("advertised"))
        return line.partition("://")[2]

    @property
    def pid(self) -> int | None:
        """The Java process, while it runs."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and waits until it answers (3 s, the first time 4).

        Raises ConfigError if another broker runs in its folder, or with the end of its log if it ends or stays silent,
        or if its port is taken.
        """
        java = [str(find_java().executable), *JVM_OPTIONS, *serial_collector(), "-cp", class_path(Group.BROKER)]
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._lock(log)
            if not (self._properties.exists() and self._meta.exists()):  # a first start may have been cut off
                self._format(java)
            elif self._port is not None:
                self._write(self._properties, self._port)
            self._process = _detached([*java, "kafka.Kafka", self._properties.name], self.folder, log)
        self._watcher = _watch(self._process.pid)
        with ExitStack() as unless_ready:
            unless_ready.callback(self.stop)
            self._wait_until_ready(self._process)
            unless_ready.pop_all()

    def wait(self) -> None:
        """Waits until it ends on its own. Raises ConfigError with the end of its log."""
        if self._process is not None:
            self._process.wait()
            raise ConfigError(f"Kafka broker in {self.folder} ended:\n{self._log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        """Ends it in order; harmless when it does not run."""
        self._end(Signals.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(Signals.SIGKILL)

    def create_topic(self, name: str, partitions: int) -> None:
        """Creates a topic; raises ConfigError when it cannot be."""
        self._ask(lambda admin: admin.create_topics([NewTopic(name, partitions, 1)]))

    def add_partitions(self, name: str, partitions: int) -> None:
        """Extends the topic to this many partitions in total."""
        self._ask(lambda admin: admin.create_partitions([NewPartitions(name, partitions)]))
        self._producer = None  # a producer keeps for minutes the partitions that it knows

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its messages; raises ConfigError when it cannot be."""
        self._ask(lambda admin: admin.delete_topics([name]))
        self._producer = None  # it numbers what it writes by the topic that it knew

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Deletes what lies before an offset, per partition, as Kafka's retention does."""
        ends = [TopicPartition(name, partition, offset) for partition, offset in before.items()]
        self._ask(lambda admin: admin.delete_records(ends))

    def produce(self, topic: str, messages: Iterable[KafkaMessage]) -> int:
        """Writes the messages, in their order within each partition; returns their number once all are acknowledged.

        Raises ConfigError when one was not taken.
        """
        if self._producer is None:
            self._producer = open_producer(self.bootstrap_servers)
        return write(self._producer, topic, messages)

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _meta(self) -> Path:
        """Kafka's own mark of a folder that is set up."""
        return self.folder / "data" / "meta.properties"

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _admin(self) -> AdminClient:
        return AdminClient(client_options(self.bootstrap_servers), logger=SILENT)

    def _ask(self, request: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> None:
        # The client must outlive its answers.
        admin = self._admin()
        try:
            for future in request(admin).values():
                future.result(REQUEST_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise ConfigError(f"broker {self.bootstrap_servers}: {reason(error)}") from error

    def _lock(self, log: IO[bytes]) -> None:
        """Locks the folder through the log, which Java has open as long as it runs: two brokers would write into one
        log of metadata. Raises ConfigError."""
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{self.folder}: a Kafka broker runs in it; end that one, or take another folder"
            ) from None

    def _format(self, java: list[str]) -> None:
        """Writes the properties, with ports chosen once, and an empty log of metadata."""
        draft = self._properties.with_suffix(".draft")
        self._write(draft, self._port)
        # Without -: an argument that begins with one is taken for an option.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
        command = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c", draft.name]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            raise ConfigError(f"Kafka could not set up {self.folder}:\n{done.stdout}{done.stderr}")
        draft.replace(self._properties)

    def _write(self, path: Path, port: int | None) -> None:
        """Writes the properties; ports that are not given are free ones."""
        free, controller = free_ports(2)
        sizes = {"largest": LARGEST_MESSAGE, "request": 2 * LARGEST_MESSAGE}
        path.write_text(PROPERTIES.format(port=port or free, controller=controller, **sizes))

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        admin = self._admin()
        while process.poll() is None and time.monotonic() < deadline:
            try:
                metadata = admin.list_topics(timeout=0.5)
            except KafkaException:
                continue
            # Another broker may sit on the port; then this one is about to end. A broker that the controller still
            # fences answers, names no broker and takes no topic.
            if metadata.cluster_id == self._cluster_id() and metadata.brokers:
                return
            time.sleep(0.1)
        tail = self._log.read_text(errors="replace")[-3000:]
        raise ConfigError(f"Kafka broker in {self.folder} at {self.bootstrap_servers} did not start:\n{tail}")

    def _cluster_id(self) -> str:
        lines = self._meta.read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def _end(self, signal: Signals) -> None:
        process, self._process = self._process, None
        watcher, self._watcher = self._watcher, None
        self._producer = None  # the id that it has from this process may mean nothing to the next one
        if watcher is not None:
            # First, while the broker's pid is certainly still the broker's.
            watcher.kill()
            watcher.communicate()
        if process is None:
            return
        process.send_signal(signal)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_ports(count: int) -> list[int]:
    """Returns free TCP ports of this machine, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _detached(command: list[str], folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a process apart from the terminal, so that Ctrl-C lets the caller end it in order."""
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )


def _watch(pid: int) -> subprocess.Popen[bytes]:
    """Starts a process that ends ``pid`` when this one is gone: its pipe closes then, also after kill -9."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -9 "$0"', str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
