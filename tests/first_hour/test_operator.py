"""An operator's night: what is printed when something is wrong, in how many lines, within how much time.

Interrupts are in ``tests/cli/test_interrupt.py``, a full disk and a lake that can only be read in ``tests/local`` and
``tests/lake/test_fresh_process.py``, kill -9 in ``tests/lake/kill.py``, poison in ``tests/lake/test_commands.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from terminal import clone, type_in

from ticdc_local.broker import free_ports

CPU_SECONDS = 5.0
"""Of CPU time; brokers are waited for at most as long."""
SECURE = "security: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.jaas.config: {secret: kafka/jaas}}"


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
        ("ticdc-lake feed check down", 2, "Connection refused); start them, or mend kafka.bootstrap_servers"),
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
def test_what_is_wrong_is_said_in_three_lines_before_anything_starts(
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
