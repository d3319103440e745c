"""The loop's widgets, and how long it leaves a feed alone that fails; without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse import loop
from ticdc_lakehouse.gold.windows import Applied
from ticdc_lakehouse.loop import LONGEST_PAUSE, FailedMaintenance, FailedRound, Round, _Feed, loop_from_widgets
from ticdc_lakehouse.planning.published_state import Published

WIDGETS = {"feeds": "[]", "every_seconds": "10", "rounds": "", "maintain_every_hours": "24"}
PUBLISHED = Published(tso=0)


class FailingRun:
    """A run of a feed whose brokers are gone."""

    feed = SimpleNamespace(name="crm")
    lake = SimpleNamespace(on_databricks=True, exists=lambda *_: False)

    def bronze(self) -> None:
        raise ConfigError("brokers do not answer")

    def maintain(self) -> None:
        raise ConfigError("the disk is full")


@pytest.mark.parametrize(
    ("every", "first"), [(10.0, [20, 40, 80, 160]), (0.0, [2, 4, 8, 16, 32, 64, 128, 256]), (0.5, [2, 4, 8, 16])]
)
def test_pauses_grow_up_to_the_longest_however_often_a_feed_fails(every: float, first: list[float]) -> None:
    feed = _Feed(run=FailingRun())  # type: ignore[arg-type]
    done = [feed.attempt(every) for _ in range(1100)]
    pauses = [each.next_try_seconds for each in done if isinstance(each, FailedRound)]
    assert pauses[: len(first)] == first
    assert pauses[8:] == [LONGEST_PAUSE] * 1092


def test_only_a_failure_of_gold_makes_the_session_read_the_lake_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka may be away for hours."""
    failing: set[str] = set()
    calls: list[object] = []

    def layer(name: str, done: object = None) -> object:
        if name in failing:
            raise ConfigError(f"{name} failed")
        return done

    def gold(known: Published | None) -> Applied:
        calls.append(known)
        layer("gold")
        return Applied(
            feed="crm", from_tso=0, tso=0, row_changes=0, merged=0, blocked={}, waiting_on=None, state=PUBLISHED
        )

    run = SimpleNamespace(
        feed=FailingRun.feed,
        lake=FailingRun.lake,
        bronze=lambda: layer("bronze", SimpleNamespace(messages=1)),
        silver=lambda: layer("silver"),
        gold=gold,
    )
    monkeypatch.setattr(loop, "refresh_session", lambda *_: calls.append("refreshed"))
    feed = _Feed(run=run)  # type: ignore[arg-type]
    for failed in ("bronze", None, "bronze", "silver", None, "gold", "bronze", None, None):
        failing.clear()
        failing.update(() if failed is None else (failed,))
        assert isinstance(feed.attempt(0.0), Round if failed is None else FailedRound)
    assert calls == ["refreshed", None, PUBLISHED, PUBLISHED, "refreshed", None, PUBLISHED]


def test_what_another_process_landed_is_decoded_although_nothing_else_arrives() -> None:
    calls: list[str] = []

    def gold(_known: Published | None) -> Applied:
        none = {"from_tso": 0, "tso": 0, "row_changes": 0, "merged": 0, "blocked": {}, "waiting_on": None}
        return Applied(feed="crm", **none, state=PUBLISHED, is_undecoded=len(calls) == 1)  # type: ignore[arg-type]

    run = SimpleNamespace(
        feed=FailingRun.feed,
        bronze=lambda: SimpleNamespace(messages=0),
        silver=lambda: calls.append("silver"),
        gold=gold,
    )
    feed = _Feed(run=run)  # type: ignore[arg-type]
    for _ in range(4):
        assert isinstance(feed.attempt(0.0), Round)
    assert calls == ["silver", "silver"], "in the first round, and in the one after gold found a gap"


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Java"),
        (Py4JNetworkError("no answer"), "Java"),
        (PySparkException("[…] closed", errorClass="INVALID_HANDLE.SESSION_CLOSED"), "Spark's session"),
        (PySparkException("[…] not found", errorClass="INVALID_HANDLE.SESSION_NOT_FOUND"), "Spark's session"),
    ],
)
def test_the_loop_ends_when_java_or_the_session_has_ended(error: Exception, ended: str) -> None:
    def fail() -> None:
        raise error

    run = SimpleNamespace(feed=FailingRun.feed, lake=FailingRun.lake, bronze=fail, maintain=fail)
    feed = _Feed(run=run, maintain_every=timedelta(hours=1), maintenance_due=datetime.now(UTC))  # type: ignore[arg-type]
    for act in (lambda: feed.attempt(1.0), feed.maintain_if_due):
        with pytest.raises(ConfigError, match=f"^{ended} has ended, .*: run it again$"):
            act()
    with pytest.raises(ConfigError, match=f"^{ended} has ended"):
        list(loop.rounds([run], every_seconds=0, count=2))  # type: ignore[list-item]


@pytest.mark.parametrize(("every_hours", "pause_minutes"), [(24, 60), (0.5, 30)])
def test_maintenance_that_fails_is_tried_again_an_hour_later_unless_it_is_due_before(
    every_hours: float, pause_minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = datetime.now(UTC)
    every = timedelta(hours=every_hours)
    feed = _Feed(run=FailingRun(), maintain_every=every, maintenance_due=began)  # type: ignore[arg-type]
    failed = feed.maintain_if_due()
    assert isinstance(failed, FailedMaintenance)
    pause = timedelta(minutes=pause_minutes)
    assert began + pause <= failed.next_try <= datetime.now(UTC) + pause
    assert feed.maintain_if_due() is None
    assert _Feed(run=FailingRun()).maintain_if_due() is None, "never"  # type: ignore[arg-type]

    def unreadable(*_: object) -> None:
        raise ConfigError("the lake cannot be read")

    monkeypatch.setattr(loop, "last_maintained", unreadable)
    asked = _Feed(run=FailingRun(), maintain_every=every)  # type: ignore[arg-type]
    assert isinstance(asked.maintain_if_due(), FailedMaintenance), "the loop continues"


def test_a_feed_whose_rounds_fail_is_maintained_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are read still, and Databricks reads no version that rested for too long."""
    monkeypatch.setattr(loop, "last_maintained", lambda *_: datetime.now(UTC) - timedelta(days=1))
    events = [*loop.rounds([FailingRun()], 0, 1, maintain_every=timedelta(hours=1))]  # type: ignore[list-item]
    assert [type(each) for each in events] == [FailedRound, FailedMaintenance]


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ("[]", "expected the name of a feed or more, found none"),
        ("crm", "expected a JSON list of names, found 'crm'"),
        ('["crm", "crm"]', "crm is listed 2 times; expected once"),
    ],
)
def test_a_loop_without_feeds_or_with_one_twice_does_not_begin(
    feeds: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "configure_unless_done", lambda _level: None)
    dbutils = SimpleNamespace(widgets=SimpleNamespace(getAll=lambda: WIDGETS | {"feeds": feeds}))
    with pytest.raises(ConfigError, match=f"^parameter feeds: {said}$"):
        loop_from_widgets(None, dbutils)  # type: ignore[arg-type]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The feeds that a loop carries, which fail; no other can be read."""
    feeds: list[str] = []

    def from_parameters(_spark: object, parameters: dict[str, str], _secret: object) -> FailingRun:
        if parameters["feed"] != "crm":
            raise ConfigError(f"{parameters['feed']}.yml: protocol: missing")
        feeds.append(parameters["feed"])
        return FailingRun()

    monkeypatch.setattr(loop, "configure_unless_done", lambda _level: None)
    monkeypatch.setattr(loop.Run, "from_parameters", from_parameters)
    return feeds


def loop_of(feeds: str) -> None:
    widgets = WIDGETS | {"feeds": feeds, "rounds": "1"}
    secrets = SimpleNamespace(get=None)
    dbutils = SimpleNamespace(widgets=SimpleNamespace(getAll=lambda: widgets), secrets=secrets)
    loop_from_widgets(None, dbutils)  # type: ignore[arg-type]


def test_a_feed_whose_file_is_wrong_keeps_no_other_from_the_loop(
    begun: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "hr: FAILED, not begun: hr.yml: protocol: missing"
    with pytest.raises(ConfigError) as error:
        loop_of('["hr", "crm"]')
    assert begun == ["crm"]
    lines = [wrong, "crm round 1: FAILED, next try in 20 s: brokers do not answer"]
    assert capsys.readouterr().out.splitlines() == lines
    assert str(error.value).splitlines() == lines, "the end of the job says it again"


def test_a_loop_of_feeds_whose_files_are_all_wrong_does_not_begin(begun: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^hr: FAILED, not begun: .*\nit: FAILED, not begun: it\.yml"):
        loop_of('["hr", "it"]')
    assert begun == []
