"""An operator's night: what is printed when something is wrong, in how many lines, within how much time.

Interrupts of the other commands are in ``tests/cli/test_interrupt.py``, kills at random moments in
``tests/lake/kill.py``, what to do about a poison message in ``tests/lake/test_commands.py``.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from terminal import COMMAND, OWN_MOUNTS, clone, kept_up, type_in

from ticdc_local.broker import free_ports
from ticdc_local.kafka import KafkaMessage, produce

CPU_SECONDS = 5.0
"""Of CPU time; brokers are waited for at most as long."""
AT_MOST_TO_END = 5.0
BUSY_MACHINE = 3.0
"""So many times longer it may take here, where other tests keep the cores busy."""
SECURE = "security: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.jaas.config: {secret: kafka/jaas}}"
READ_ONLY = "mkdir -p lake/bronze && mount --bind lake lake && mount -o remount,bind,ro lake"
FULL = "mkdir -p small && mount -t tmpfs -o size=1m tmpfs small"
FILLED = (
    "mkdir -p large && mount -t tmpfs -o size=1g tmpfs large && "
    "{ (until [ -d large/silver/crm_events ]; do sleep 0.1; done; cat /dev/zero > large/filler) 2>/dev/null & }"
)
"""A disk that is full once silver has begun."""

needs_mounts = pytest.mark.skipif(
    subprocess.run([*OWN_MOUNTS, "true"], check=False, capture_output=True).returncode != 0,
    reason="needs unshare and user namespaces, of Linux",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a feed whose brokers are down, and one whose secret is not set."""
    made = clone(tmp_path_factory.mktemp("night"))
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    for name, more in (("down", ""), ("secret", f", {SECURE}")):
        kafka = f"kafka: {{bootstrap_servers: '{servers}', topics: [t]{more}}}"
        (made / "resources" / "feeds" / f"{name}.yml").write_text(f"protocol: craft\ntime_zone: UTC\n{kafka}\n")
    return made


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("ticdc-lake run --feed down", 2, "brokers do not answer (127.0.0.1:"),
        ("ticdc-lake feed check down", 2, "Connection refused); start them, or correct kafka.bootstrap_servers"),
        ("ticdc-lake run --feed secret", 2, "LAKEHOUSE_SECRET_KAFKA_JAAS"),
        ("ticdc-lake run --feed dowm", 2, "did you mean down?"),
        ("ticdc-lake status --feed nope", 2, "expected a lake, found none"),
        ("ticdc-lake quarantine replay --feed dowm", 2, "did you mean down?"),
        ("ticdc-lake table resume shop.t --feed dowm --reason x", 2, "did you mean down?"),
        ("ticdc-lake maintain --feed dowm", 2, "did you mean down?"),
        ("ticdc-lake load export --feed dowm", 2, "did you mean down?"),
        ("ticdc-lake run --feed down --lake /proc/lake", 2, "the lake cannot be written"),
    ],
)
def test_a_mistake_is_reported_in_three_lines_before_anything_starts(
    folder: Path, line: str, code: int, said: str
) -> None:
    ended = type_in(folder, line)
    assert ended.code == code
    assert said in ended.err
    assert ended.err.count("\n") <= 3
    assert ended.out.count("\n") == (1 if "feed check" in line else 0)
    assert "Traceback" not in ended.err
    assert ended.cpu_seconds < CPU_SECONDS
    assert not (folder / ".lake" / "bronze").exists()


@needs_mounts
def test_a_read_only_lake_is_reported_before_anything_starts_and_can_be_read(folder: Path) -> None:
    ended = type_in(folder, "ticdc-lake run --feed down --lake lake", mount=READ_ONLY)
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"ticdc-lake run: .*/lake: the lake cannot be written.*Read-only file system.*\n", ended.err)
    assert ended.cpu_seconds < CPU_SECONDS
    looked = type_in(folder, "ticdc-lake status --check --lake lake --feed down", mount=READ_ONLY)
    assert (looked.code, looked.err) == (1, "")
    assert looked.out.startswith("down: attention: ")
    for line in ("quarantine replay", "maintain"):
        ended = type_in(folder, f"ticdc-lake {line} --lake lake --feed down", mount=READ_ONLY)
        assert (ended.code, ended.out) == (2, "")
        assert re.fullmatch(
            r"ticdc-lake \w+: .*/lake: the lake cannot be written.*Read-only file system.*\n", ended.err
        )


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A checkout with a feed whose topic has a small shop in it, and the broker's address."""
    made, port = clone(tmp_path_factory.mktemp("long_night")), free_ports(1)[0]
    servers = f"localhost:{port}"
    with kept_up(made, f"ticdc-lake kafka --port {port}"):
        source = f"--protocol canal-json --topic crm --bootstrap-servers {servers}"
        assert type_in(made, f"ticdc-lake generate --workload shop --rows 500 {source}").code == 0
        assert type_in(made, f"ticdc-lake feed new crm {source}").code == 0
        yield made, servers


@contextmanager
def run_in_gold(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has come to gold, as a process group of its own."""
    command = [*COMMAND, *shlex.split("run --feed crm --log-level error")]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith("gold[crm]: started"))
        yield process


def is_gone(group: int) -> bool:
    """Whether no process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.long
def test_a_run_that_is_killed_leaves_nothing_behind_and_the_next_one_goes_on(night: tuple[Path, str]) -> None:
    folder, _ = night
    with run_in_gold(folder) as process:
        process.kill()
        killed = time.monotonic()
    while not is_gone(process.pid):  # Java, which nobody ends but itself
        assert time.monotonic() - killed < AT_MOST_TO_END * BUSY_MACHINE
        time.sleep(0.1)
    looked = type_in(folder, "ticdc-lake status --check --feed crm")
    assert (looked.code, looked.err) == (1, "")
    assert re.fullmatch(r"crm: attention: nothing was ever published, though \d+ messages have landed\n", looked.out)
    ended = type_in(folder, "ticdc-lake run --feed crm --quiet")
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(r"job ticdc_lake: success in .* s\n", ended.out)
    assert type_in(folder, "ticdc-lake status --check --feed crm").out == "crm: fine: nothing: caught up\n"


@pytest.mark.long
def test_a_run_that_is_interrupted_ends_with_one_line(night: tuple[Path, str]) -> None:
    folder, _ = night
    with run_in_gold(folder) as process:
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.stderr is not None
        output = process.stderr.read().splitlines()
        assert process.wait() == 130
        assert time.monotonic() - began < AT_MOST_TO_END * BUSY_MACHINE
    assert output[-1] == "ticdc-lake run: interrupted; run it again"
    assert len(output) <= 3


@needs_mounts
def test_a_full_disk_is_reported_before_anything_starts(folder: Path) -> None:
    ended = type_in(folder, "ticdc-lake run --feed down --lake small", mount=FULL)
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"ticdc-lake run: .*/small: .*\n", ended.err)
    assert ended.cpu_seconds < CPU_SECONDS


@pytest.mark.long
@needs_mounts
def test_a_disk_that_becomes_full_is_reported_in_three_lines(night: tuple[Path, str]) -> None:
    ended = type_in(night[0], "ticdc-lake run --feed crm --lake large --quiet --retry-wait 0", mount=FILLED)
    assert ended.code == 1
    first, *_, last = ended.out.splitlines()
    assert re.fullmatch(r"crm: \w+ FAILED: .*No space left on device; make room there and run it again", first)
    assert re.fullmatch(r"job ticdc_lake: failed in .* s", last)
    assert len(ended.out.splitlines()) <= 3
    assert "Traceback" not in ended.err


@pytest.mark.long
def test_a_poison_message_ends_with_code_3_and_what_to_look_at(night: tuple[Path, str]) -> None:
    folder, servers = night
    produce(servers, "crm", [KafkaMessage(partition=0, key=None, value=b"{no json")])
    ended = type_in(folder, "ticdc-lake run --feed crm --quiet")
    assert (ended.code, ended.err) == (3, "")
    first, last = ended.out.splitlines()
    assert first == "feed crm needs attention: 1 message is in quarantine: 1 bad_json"
    assert re.fullmatch(r"job ticdc_lake: ran, but a feed needs attention, in .* s", last)
    looked = type_in(folder, "ticdc-lake status --check --feed crm")
    assert looked.code in (1, 2)
    assert "1 message is in quarantine: 1 bad_json" in looked.out
    assert len(looked.out.splitlines()) == 1
