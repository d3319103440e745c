"""A feed of one's own without a Kafka of one's own: ``kafka``, ``feed new``, ``feed check``."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ticdc_lakehouse.config.feed import load_feed
from ticdc_lakehouse.policy import Mode
from ticdc_local.broker import KafkaMessage, free_ports
from ticdc_local.cli import main

if TYPE_CHECKING:
    from ticdc_local.broker import Broker

PROJECT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-u", "-c", "import sys; from ticdc_local.cli import main; sys.exit(main())")
GENERATE = ("generate", "--workload", "shop", "--protocol", "open-protocol", "--rows", "50")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without feeds."""
    shutil.copy(PROJECT / "databricks.yml", tmp_path)
    (tmp_path / "resources" / "feeds").mkdir(parents=True)
    return tmp_path


def feed(project: Path, *arguments: str) -> int:
    return main(["feed", *arguments, "--project", str(project)])


def test_a_new_feed_has_what_the_flags_say_and_the_next_command(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--protocol", "canal-json", "--topic", "a", "--topic", "b", "--time-zone", "Asia/Shanghai")
    more = ("--bootstrap-servers", "kafka:1", "--include", "crm.*", "--option", "content-compatible=true")
    assert feed(project, "new", "crm", *flags, *more) == 0
    path = project / "resources" / "feeds" / "crm.yml"
    assert capsys.readouterr() == (f"wrote {path}\n", f"Next: ticdc-lake feed check crm --project {project}\n")
    made = load_feed(path)
    assert (made.protocol, made.topics, made.bootstrap_servers) == ("canal_json", ("a", "b"), ("kafka:1",))
    assert made.sink_options.enable_tidb_extension
    assert made.sink_options.content_compatible
    assert made.sink_options.time_zone.key == "Asia/Shanghai"
    assert path.read_text().count("\n# ") > 3


def test_a_new_feed_without_watermarks_has_the_mode_that_needs_none(project: Path) -> None:
    for protocol in ("canal-json", "debezium"):
        flags = ("--protocol", protocol, "--option", "enable-tidb-extension=false")
        assert feed(project, "new", protocol[:5], *flags) == 0
        made = load_feed(project / "resources" / "feeds" / f"{protocol[:5]}.yml")
        assert (made.gold.mode, made.sink_options.enable_tidb_extension) == (Mode.EVENTUAL, False)


def test_a_check_names_a_file_with_another_ending(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds = project / "resources" / "feeds"
    (feeds / "crm.yml").write_text("")
    (feeds / "crm2.yaml").write_text("")
    assert feed(project, "check", "crm2") == 2
    output = capsys.readouterr().err
    assert output == f"ticdc-lake feed: {feeds}/crm2.yaml: expected the ending .yml; rename it to crm2.yml\n"


def test_a_feed_file_is_not_written_over_without_force(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert feed(project, "new", "crm", "--protocol", "craft") == 0
    assert feed(project, "new", "crm", "--protocol", "simple") == 2
    assert "crm.yml: exists already; --force overwrites it" in capsys.readouterr().err
    assert feed(project, "new", "crm", "--protocol", "simple", "--force") == 0
    assert load_feed(project / "resources" / "feeds" / "crm.yml").protocol == "simple"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("crm", "--protocol", "craftt"), "craft"),
        (("Crm-1", "--protocol", "craft"), "NAME: expected at most 40 letters"),
        (
            ("../crm", "--protocol", "craft"),
            "NAME: expected at most 40 letters a-z, digits and _, beginning with a letter, found '../crm'",
        ),
        (("crm", "--protocol", "craft", "--option", "no-option=1"), "no-option"),
        (
            ("crm", "--protocol", "craft", "--option", f"max-batch-size={'9' * 5000}"),
            "options.max-batch-size: expected a positive whole number",
        ),
        (("crm",), "--protocol: expected a value, and there is no terminal to ask for it"),
        (("crm", "--protocol", ""), "protocol: expected one of craft"),
        (("crm", "--protocol", "craft", "--time-zone", ""), "time_zone: expected an IANA time zone such as"),
        (("crm", "--protocol", "craft", "--bootstrap-servers", ""), "kafka.bootstrap_servers: expected host:port"),
    ],
)
def test_what_no_feed_may_be_is_not_left_behind(
    project: Path, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert feed(project, "new", *arguments) == 2
    assert said in capsys.readouterr().err
    assert [*(project / "resources" / "feeds").iterdir()] == []


def test_a_check_shows_what_the_first_messages_are(
    project: Path, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    made = subprocess.run(
        [*COMMAND, *GENERATE, "--bootstrap-servers", broker.bootstrap_servers, "--topic", "check"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == ""
    servers = ("--bootstrap-servers", broker.bootstrap_servers)
    of_topic = ("--protocol", "open-protocol", "--topic", "check", *servers)
    assert feed(project, "new", "shop", *of_topic) == 0
    capsys.readouterr()
    assert feed(project, "check", "shop") == 0
    out, notes = capsys.readouterr()
    lines = out.splitlines()
    assert lines[:2] == [
        "shop: the file is right: open-protocol, mode watermarks",
        f"shop: brokers answer at {broker.bootstrap_servers}; topic check has 1 partition",
    ]
    assert re.fullmatch(r"shop: first \d+ messages: \d+ rows of shop\.\w+, .*\d+ DDLs.*", lines[2])
    assert "protocol open-protocol as given" in "\n".join(lines)
    assert notes == f"Next: ticdc-lake run --feed shop --project {project}\n"

    assert feed(project, "new", "typo", *of_topic, "--include", "shopp.*", "--include", "shop.stock") == 0
    capsys.readouterr()
    assert feed(project, "check", "typo") == 0
    left_out = "the key tables of the feed file leaves out shop.customers, shop.order_items, shop.orders"
    assert capsys.readouterr().out.splitlines()[3] == f"typo: of these, {left_out}"

    broker.create_topic("check-other", 1)
    broker.produce("check-other", [KafkaMessage(partition=0, key=None, value=b"{poison")])
    assert feed(project, "new", "bad", "--protocol", "canal-json", "--topic", "check-other", *servers) == 0
    assert feed(project, "check", "bad") == 1
    assert "first 1 message: 1 does not decode (" in capsys.readouterr().out
    broker.produce("check", [KafkaMessage(partition=0, key=None, value=b"{poison")])
    assert feed(project, "check", "shop") == 1
    shown = capsys.readouterr().out
    assert re.search(r"first \d+ messages: \d+ rows of .*1 does not decode \(", shown)
    assert "message key null, value 7 bytes" in shown, "the one that does not decode"
    assert feed(project, "check", "shob") == 2
    assert "shob.yml: no such feed; did you mean shop?" in capsys.readouterr().err


def test_a_check_shows_no_message_that_the_feed_does_not_read(
    project: Path, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("check-latest", 1)
    broker.produce("check-latest", [KafkaMessage(partition=0, key=None, value=b"{poison")])
    servers = ("--bootstrap-servers", broker.bootstrap_servers)
    assert feed(project, "new", "late", "--protocol", "canal-json", "--topic", "check-latest", *servers) == 0
    with (project / "resources" / "feeds" / "late.yml").open("a") as file:
        file.write("\nstarting_offsets: latest\n")
    capsys.readouterr()
    assert feed(project, "check", "late") == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "late: nothing is read yet: with starting_offsets: latest a run reads what comes after the feed's first one"
    ]


def test_kafka_is_up_until_a_signal_and_keeps_its_topics(tmp_path: Path) -> None:
    port = str(free_ports(1)[0])
    command = [*COMMAND, "kafka", "--port", port, "--folder", str(tmp_path / "kafka")]
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"Kafka runs at localhost:{port}; its topics stay in ")
            taken = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
            assert f"--port: {port}: Address already in use" in taken.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
