"""What a feed's status says of a made-up lake, before the next run of gold; without Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from delta_lake import NOW, write

from ticdc_codec.tso import with_time
from ticdc_lakehouse.gold.feed_completeness import feed_completeness
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.ops.alarm import Thresholds, problems
from ticdc_lakehouse.ops.status import FeedStatus, Health, feed_status
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.policy import Mode
from ticdc_lakehouse.silver import quarantine
from ticdc_local.cli import main
from ticdc_local.cli.status import NO_FILE, feed_text
from ticdc_local.delta_reader import DeltaReader

W = 470_613_127_470_252_033
"""The published watermark."""
CHECK = "check that the changefeed is running"
RETIRE = "If it sends nothing there any more, name the partition or its topic in kafka.retired"
GARBAGE = {"kind": "error", "reason": "bad_json"}


def row(commit_ts: int) -> dict[str, object]:
    return {"kind": "row", "database": "crm", "table": "orders", "commit_ts": commit_ts}


def resolved(commit_ts: int) -> dict[str, object]:
    return {"kind": "resolved", "commit_ts": commit_ts}


@dataclass
class MadeUpLake:
    """A lake with one feed of a topic with some partitions; each message is one event."""

    root: Path
    partitions: int = 2
    ends: dict[int, int] = field(default_factory=dict)

    def batch(
        self, number: int, *messages: tuple[int, Mapping[str, object]], undecoded: Mapping[int, int] | None = None
    ) -> None:
        """Land a batch of messages, each with its partition, that silver decodes; and ``undecoded`` ones, a number by
        partition."""
        events: list[dict[str, object]] = []
        counts = dict(undecoded or {})
        for partition, event in messages:
            offset = self.ends[partition] = self.ends.get(partition, -1) + 1
            counts[partition] = counts.get(partition, 0) + 1
            events.append({"batch": number, "partition": partition, "offset": offset, **event})
        self.append(*events)
        offsets = [
            {"batch": number, "topic": "crm", "partition": each, "listing": number, "messages": counts.get(each, 0)}
            | {"ingest_time": NOW}
            for each in range(self.partitions)
        ]
        write(self.root / "bronze" / "crm_offsets", "offsets", offsets)

    def append(self, *events: Mapping[str, object]) -> None:
        """Append events to silver."""
        placed = [{"topic": "crm", "index": 0, "timestamp": NOW, **event} for event in events]
        write(self.root / "silver" / "crm_events", "events", placed)

    def publish(
        self, batch: int, number: int = 1, mode: Mode = Mode.WATERMARKS, replays_seen: datetime | None = None
    ) -> None:
        """Publish a window without tables, up to W."""
        window = {"feed": "crm", "number": number, "run": "r", "base": 1, "mode": mode.value, "batch": batch, "tso": W}
        times = {"from_tso": 0, "time": NOW, "published_at": NOW, "replays_seen": replays_seen}
        write(self.root / "ops" / "windows", "windows", [window | times])
        for name in ("table_states", "definitions", "topics"):
            write(self.root / "ops" / name, name, [])


@pytest.fixture
def lake(tmp_path: Path) -> MadeUpLake:
    """A lake whose feed is published at W, with all that landed."""
    lake = MadeUpLake(tmp_path)
    lake.batch(0, (0, row(W - 1)), (0, resolved(W)), (1, resolved(W)))
    lake.publish(0)
    return lake


def waiting_on(lake: MadeUpLake) -> str | None:
    """What a run of gold prints that the watermark is waiting on."""
    reader = DeltaReader(lake.root)
    config = GoldConfig(feed="crm", time_zone="UTC")
    return feed_completeness(reader, config, published(reader, "crm"), config.mode).waiting_on


def messages(*given: tuple[int, Mapping[str, object]]) -> tuple[tuple[int, Mapping[str, object]], ...]:
    return given


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        pytest.param((), None, id="nothing"),
        pytest.param(messages((0, resolved(W)), (0, row(W - 1))), None, id="nothing new"),
        pytest.param(
            messages((0, row(W + 1))),
            f"partition crm/0 has sent no watermark newer than the published {with_time(W)}; {CHECK}",
            id="a change",
        ),
        pytest.param(
            messages((0, resolved(W + 1))),
            f"partition crm/1 has sent no watermark newer than the published {with_time(W)}; {CHECK}. {RETIRE}",
            id="a watermark in another partition",
        ),
    ],
)
def test_a_feed_waits_on_a_partition_only_if_something_is_ahead_of_it(
    lake: MadeUpLake, arrived: Sequence[tuple[int, Mapping[str, object]]], said: str | None
) -> None:
    if arrived:
        lake.batch(1, *arrived)
    assert waiting_on(lake) == said


def test_a_change_that_gold_has_read_already_waits_on_its_watermark(tmp_path: Path) -> None:
    lake = MadeUpLake(tmp_path, partitions=1)
    lake.batch(0, (0, resolved(W)), (0, row(W + 1)))
    lake.publish(0)
    assert str(waiting_on(lake)).startswith("partition crm/0 has sent no watermark newer than")


@pytest.mark.parametrize(("arrived", "advice"), [(0, CHECK), (1, f"{CHECK}. {RETIRE}")])
def test_a_new_feed_waits_on_its_first_watermark(tmp_path: Path, arrived: int, advice: str) -> None:
    lake = MadeUpLake(tmp_path)
    lake.batch(0, (0, row(W + 1)), *messages((1, resolved(W)))[:arrived])
    assert waiting_on(lake) == f"partition crm/0 has sent no watermark yet; {advice}"


@pytest.mark.parametrize("partition", [0, 1])
def test_an_idle_feed_waits_on_a_message_in_quarantine_of_any_partition(lake: MadeUpLake, partition: int) -> None:
    lake.batch(1, (partition, GARBAGE))
    assert str(waiting_on(lake)).startswith(f"the message at crm/{partition}/{2 - partition} is in quarantine")


def status(lake: MadeUpLake) -> FeedStatus:
    return feed_status(DeltaReader(lake.root), "crm")


def next_step(lake: MadeUpLake) -> str:
    """What `status` prints as the feed's next step."""
    (line,) = (line for line in feed_text(status(lake)).splitlines() if line.startswith("  next "))
    return line.split(maxsplit=1)[1]


def test_a_feed_has_run_once_a_batch_is_noted_and_not_when_its_tables_are_made(tmp_path: Path) -> None:
    """Bronze makes them before it asks Kafka, which may not answer; a load makes them, too."""
    lake = MadeUpLake(tmp_path)
    for kind in ("messages", "offsets"):
        write(tmp_path / "bronze" / f"crm_{kind}", kind, [])
    assert status(lake).concerns() == ["bronze has not run for this feed"]
    assert status(lake).waiting_on == "bronze: it has not run for this feed"
    lake.batch(0)
    assert (status(lake).health(), status(lake).landed) == (Health.FINE, 0), "an empty topic"


@pytest.mark.parametrize("tolerated", [0, 5])
def test_a_message_that_stops_all_tables_needs_attention_however_many_are_tolerated(
    lake: MadeUpLake, tolerated: int
) -> None:
    def alarms() -> list[str]:
        return problems(DeltaReader(lake.root), "crm", Thresholds(quarantine=tolerated))

    lake.batch(1, (0, {**GARBAGE, "database": "crm", "table": "orders"}))
    assert alarms() == [], "one table stops"
    lake.batch(2, (1, GARBAGE), (1, GARBAGE))
    assert alarms() == ["waiting on the quarantined message crm/1/1"]
    assert status(lake).concerns(Thresholds(quarantine=tolerated)) == alarms()
    lake.publish(2, number=2, mode=Mode.EVENTUAL)
    assert alarms() == [], "there is no watermark that it stops"


@pytest.mark.parametrize("retired", ["crm", "crm/1"])
def test_a_message_of_a_retired_partition_stops_no_table(lake: MadeUpLake, retired: str) -> None:
    lake.batch(1, (1, GARBAGE))
    config = GoldConfig(feed="crm", time_zone="UTC", retired=frozenset({retired}))
    tolerated = Thresholds(quarantine=5)
    assert problems(DeltaReader(lake.root), "crm", tolerated, {"crm/0"}) == [
        "waiting on the quarantined message crm/1/1"
    ]
    assert problems(DeltaReader(lake.root), "crm", tolerated, config.retired) == []
    assert feed_status(DeltaReader(lake.root), "crm", config).concerns(tolerated) == []


def test_a_message_that_stops_all_tables_is_said_once(lake: MadeUpLake) -> None:
    lake.batch(1, (0, GARBAGE))
    said = problems(DeltaReader(lake.root), "crm", Thresholds())
    assert said == ["1 message is in quarantine: 1 bad_json"]


CAUGHT_UP, RUN = "nothing: caught up", "nothing is blocking gold: run the job"


def test_a_feed_has_caught_up_once_gold_has_seen_what_silver_has(lake: MadeUpLake) -> None:
    """Below the watermark a row is late, or a duplicate: the next run finds out which."""
    assert (next_step(lake), status(lake).caught_up) == (CAUGHT_UP, True)
    lake.batch(1, (0, row(W - 1)), (0, resolved(W)))
    assert (next_step(lake), status(lake).caught_up) == (RUN, False)
    lake.publish(1, number=2)
    assert next_step(lake) == CAUGHT_UP


def test_a_feed_has_not_caught_up_with_a_replay(lake: MadeUpLake) -> None:
    lake.append({"batch": 0, "partition": 0, "offset": 0, "replayed_at": NOW, **row(W - 2)})
    assert (next_step(lake), status(lake).caught_up) == (RUN, False)
    lake.publish(0, number=2, replays_seen=NOW)
    assert next_step(lake) == CAUGHT_UP


def test_an_eventual_feed_has_not_caught_up_with_an_older_commit(tmp_path: Path) -> None:
    lake = MadeUpLake(tmp_path)
    lake.batch(0, (0, row(W)))
    lake.publish(0, mode=Mode.EVENTUAL)
    assert next_step(lake) == CAUGHT_UP
    lake.batch(1, (0, row(W - 1)))
    assert next_step(lake) == RUN


def test_messages_in_quarantine_of_a_batch_that_silver_has_not_finished_count_once(lake: MadeUpLake) -> None:
    lake.batch(1, (0, resolved(W + 1)), (0, GARBAGE))
    assert (status(lake).decoded, status(lake).quarantined, status(lake).waiting) == (4, 1, 0)
    lake.batch(2, (0, GARBAGE), (0, GARBAGE), undecoded={0: 1, 1: 1})
    assert (status(lake).decoded, status(lake).quarantined, status(lake).waiting) == (4, 3, 4)
    lake.append({"batch": 3, "partition": 0, "offset": 99, **GARBAGE})  # bronze notes a batch after its messages
    assert (status(lake).decoded, status(lake).quarantined, status(lake).waiting) == (4, 4, 4)


def test_a_message_that_silver_decoded_anew_is_in_quarantine_once(lake: MadeUpLake) -> None:
    """After a checkpoint was lost. The newest batch counts, and of one batch the row that may be of any table."""
    lake.batch(1, (0, GARBAGE), (1, GARBAGE))
    lake.publish(1, number=2)
    garbage = {"batch": 1, "partition": 0, "offset": 2, **GARBAGE}
    lake.append(garbage, {**garbage, "reason": "bad_value", "database": "crm", "table": "orders"})
    assert (status(lake).decoded, status(lake).reasons) == (3, {"bad_json": 2})
    lake.append({**garbage, "batch": 2, "partition": 1, "offset": 1, "reason": "schema_missing"})
    reader = DeltaReader(lake.root)
    assert quarantine.reasons(reader, "crm") == {"bad_json": 1, "schema_missing": 1}
    first = quarantine.first_open(reader, "crm", [])
    assert [(row["partition"], row["batch"], row["table"]) for row in first] == [(0, 1, None), (1, 2, None)]
    assert [message.table for message in quarantine.blocking_messages(reader, "crm")] == [None, None]


PROJECT = Path(__file__).parents[2]
FEED_FILE = "protocol: craft\ntime_zone: UTC\nkafka: {bootstrap_servers: 'h:1', topics: [crm]}\n"


@pytest.fixture
def place(lake: MadeUpLake, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments of a command for the lake, and a project whose only feed never ran."""
    project = tmp_path_factory.mktemp("project")
    shutil.copy(PROJECT / "databricks.yml", project)
    feeds = project / "resources" / "feeds"
    feeds.mkdir(parents=True)
    (feeds / "idle.yml").write_text(FEED_FILE)
    return ["--project", str(project), "--lake", str(lake.root)]


@pytest.mark.parametrize("more", [[], ["--max-age", "999999d"]])
def test_a_published_feed_without_a_file_needs_attention(
    place: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--check", "--feed", "crm", *place, *more]) == 1
    assert capsys.readouterr().out == f"crm: attention: {NO_FILE}\n"
    assert main(["status", "--json", "--feed", "crm", *place, *more]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["health"], found["check"]) == ("attention", f"attention: {NO_FILE}")
    assert main(["status", "--feed", "crm", *place]) == 0
    assert f"\n  feed file    {NO_FILE}\n" in capsys.readouterr().out


def test_a_feed_without_a_file_that_a_message_stops_is_broken(
    lake: MadeUpLake, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lake.batch(1, (0, GARBAGE))
    assert main(["status", "--check", "--feed", "crm", *place]) == 2
    said = f"crm: broken: {NO_FILE}; waiting on the quarantined message crm/0/2; 1 message is in quarantine: 1 bad_json"
    assert capsys.readouterr().out == f"{said}\n"


def test_a_feed_that_was_removed_as_documented_needs_no_file(
    lake: MadeUpLake, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows in ``ops`` stay (docs/databricks.md, Remove a feed)."""
    shutil.rmtree(lake.root / "bronze" / "crm_offsets")
    shutil.rmtree(lake.root / "silver" / "crm_events")
    assert main(["status", "--check", *place]) == 1
    assert capsys.readouterr().out == "idle: attention: bronze has not run for this feed\n"
