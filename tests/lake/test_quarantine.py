"""Messages that do not decode: who is blocked, what is said, and that a replay puts every row in its place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from changefeed import ID, Changefeed, Source, V, at, ddl

from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer, Reader
from ticdc_lakehouse.gold import staging, window_input, windows
from ticdc_lakehouse.gold.window_input import plan_window
from ticdc_lakehouse.gold.window_reader import read_window
from ticdc_lakehouse.silver import decode_stream, quarantine

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ticdc_codec.event import Event, RowChange
    from ticdc_lakehouse.catalog import Lake
    from ticdc_lakehouse.planning.planning_input import PlanningInput
    from ticdc_lakehouse.planning.window import Window
    from ticdc_lakehouse.planning.window_plan import WindowPlan
    from ticdc_local.broker import Broker

CLAIMS = {"large-message-handle-option": "claim-check", "claim-check-raw-value": True}
REPAIRED, DISMISSED, FINE = (Source(table=name) for name in ("repaired", "dismissed", "fine"))
FINE_SCHEMA = "CREATE TABLE shop.fine (id BIGINT PRIMARY KEY, v VARCHAR(9));"


class Claims:
    """A changefeed whose large rows lie in a folder that may not be there yet."""

    def __init__(self, feed: Changefeed, folder: Path) -> None:
        self.feed = feed
        self.folder = folder
        self.kept: list[tuple[str, bytes]] = []

    def message(self, row: RowChange) -> bytes:
        """The message that names the row's object, which is kept back."""
        whole = self.feed.encoded([row])[0]
        name = f"{len(self.kept)}.json"
        self.kept.append((name, whole))
        members: dict[str, Any] = orjson.loads(whole)
        members["_tidb"]["claimCheckLocation"] = f"file://{self.folder}/{name}"
        return orjson.dumps(members)

    def deliver(self, *numbers: int) -> None:
        """Put objects into the folder."""
        self.folder.mkdir(exist_ok=True)
        for number in numbers:
            name, content = self.kept[number]
            (self.folder / name).write_bytes(content)


@pytest.fixture
def claims(spark: SparkSession, broker: Broker, tmp_path: Path) -> Claims:
    """A changefeed applied up to 5: the objects of one message of `repaired` and three of `dismissed` are missing."""
    folder = tmp_path / "claims"
    options = {**CLAIMS, "claim-check-storage-uri": f"file://{folder}"}
    feed = Changefeed(spark, broker, tmp_path / "lake", options=options)
    claims = Claims(feed, folder)
    feed.send(0, REPAIRED.insert(at(1), 1, "a"), DISMISSED.insert(at(1), 1, "a"), DISMISSED.insert(at(1), 2, "a"))
    feed.resolve(at(2))
    feed.send(0, claims.message(REPAIRED.update(at(3), (1, "a"), (1, "b"))))
    feed.send(0, *(claims.message(DISMISSED.update(at(3), (key, "a"), (key, "b"))) for key in (1, 2)))
    feed.send(0, claims.message(DISMISSED.insert(at(3), 3, "b")))
    feed.send(0, REPAIRED.insert(at(4), 2, "c"), FINE.insert(at(4), 1, "a"))
    feed.send(0, DISMISSED.update(at(4), (1, "b"), (1, "c")), DISMISSED.delete(at(4), 2, "b"))
    feed.resolve(at(5))
    assert feed.go().tso == at(5)
    return claims


@pytest.mark.long
def test_a_message_in_quarantine_stops_its_table_at_the_watermark_before_it(
    spark: SparkSession, claims: Claims
) -> None:
    feed = claims.feed
    assert feed.rows("fine") == {1: ("a",)}
    assert feed.rows("repaired") == {1: ("a",)}
    assert feed.rows("dismissed") == {1: ("a",), 2: ("a",)}
    feed.check_nothing_lost_or_doubled()
    status = feed.status
    assert (status.quarantined, status.waiting, status.tso) == (4, 0, at(5))
    stopped = status.tables["shop", "repaired"]
    assert stopped.applied_tso == at(2)
    assert stopped.stop is not None
    assert f"{feed.topic}/0/4 is in quarantine (claim_check_missing)" in str(stopped.stop)
    assert status.tables["shop", "fine"].stop is None
    held = spark.table(feed.lake.table(Layer.SILVER, f"{feed.name}_quarantine")).orderBy("offset").collect()
    assert [(q["offset"], q["reason"], q["table"]) for q in held] == [
        (4, "claim_check_missing", "repaired"),
        *((offset, "claim_check_missing", "dismissed") for offset in (5, 6, 7)),
    ]

    # The objects are still missing: a replay and a run change nothing.
    assert quarantine.replay(feed.lake, feed.run.decoding) == quarantine.Replayed(decoded=0, still_open=4)
    assert feed.apply().merged == 0


@pytest.mark.long
def test_replayed_rows_of_a_known_table_are_applied_by_commit_ts(spark: SparkSession, claims: Claims) -> None:
    feed = claims.feed

    # The object arrives for one table; the other's messages are given up for the time being.
    claims.deliver(0)
    assert quarantine.replay(feed.lake, feed.run.decoding) == quarantine.Replayed(decoded=1, still_open=3)
    places = [(feed.topic, 0, offset) for offset in (5, 6, 7)]
    assert quarantine.dismiss(feed.lake, feed.name, places, "the bucket is lost") == 3
    assert feed.apply().blocked == {}
    assert feed.rows("repaired") == {1: ("b",), 2: ("c",)}
    assert feed.rows("dismissed") == {1: ("c",)}
    actions = spark.table(feed.lake.table(Layer.OPS, quarantine.ACTIONS)).collect()
    assert {a["note"] for a in actions if a["action"] == "dismissed"} == {"the bucket is lost"}
    assert feed.status.quarantined == 0

    # The other objects are found after all. An older row neither overwrites a newer one nor brings a deleted one back.
    claims.deliver(1, 2, 3)
    assert quarantine.replay(feed.lake, feed.run.decoding).decoded == 0, "without a position only open ones are tried"
    assert quarantine.replay(feed.lake, feed.run.decoding, places).decoded == 3
    assert quarantine.replay(feed.lake, feed.run.decoding, places).decoded == 0, "once is enough"
    feed.apply()
    assert feed.rows("dismissed") == {1: ("c",), 3: ("b",)}
    status = feed.status
    assert (status.decoded, status.quarantined, status.dismissed) == (len(feed.sent), 0, 0)
    assert feed.accounted_messages == len(feed.sent)
    versions = feed.data_versions()
    feed.apply()
    assert feed.data_versions() == versions


@pytest.mark.long
def test_a_dismissed_ddl_is_followed_when_it_is_replayed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=FINE_SCHEMA, described={"max_message_bytes": 1000})
    wide = Source(table="fine", columns=(*FINE.columns, Column(name="w", type="int")))
    feed.send(0, FINE.insert(at(1), 1, "a"), FINE.insert(at(1), 2, "b"), FINE.insert(at(1), 3, "c"))
    query = f"ALTER TABLE `shop`.`fine` ADD COLUMN `w` INT DEFAULT 7 COMMENT '{'x' * 2000}'"
    feed.send(0, ddl(at(2), query, "shop", "fine", "ALTER"), FINE.delete(at(3), 2, "b"), wide.insert(at(4), 4, "d", 8))
    feed.resolve(at(5))
    feed.load()
    quarantine.dismiss(feed.lake, feed.name, [(feed.topic, 0, 3)], "looked like a comment")
    assert set(feed.apply().blocked) == {("shop", "fine")}
    assert feed.rows("fine") == {1: ("a",), 3: ("c",)}

    feed.described = {}
    quarantine.replay(feed.lake, feed.run.decoding, [(feed.topic, 0, 3)])
    assert feed.apply().blocked == {}
    assert feed.rows("fine") == {1: ("a", 7), 3: ("c", 7), 4: ("d", 8)}


@pytest.mark.long
def test_a_ddl_that_is_replayed_while_gold_begins(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(spark, broker, tmp_path, schema=FINE_SCHEMA, described={"max_message_bytes": 1000})
    feed.send(0, FINE.insert(at(1), 1, "a"))
    feed.send(0, ddl(at(2), f"TRUNCATE TABLE `shop`.`fine` /* {'x' * 2000} */", "shop", "fine", "TRUNCATE"))
    feed.send(0, FINE.insert(at(3), 2, "b"))
    feed.resolve(at(4))
    feed.load()
    feed.described = {}
    blocking_messages = quarantine.blocking_messages

    def replay_first(lake: Reader, name: str) -> list[quarantine.BlockingMessage]:
        quarantine.replay(feed.lake, feed.run.decoding)
        return blocking_messages(lake, name)

    monkeypatch.setattr(quarantine, "blocking_messages", replay_first)
    assert feed.apply().tso == at(4)
    assert feed.rows("fine") == {2: ("b",)}


@pytest.mark.long
def test_replays_at_once_and_while_gold_reads_lose_nothing(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "CREATE TABLE shop.fine (id BIGINT PRIMARY KEY, v TEXT);"
    feed = Changefeed(spark, broker, tmp_path, schema=schema, described={"max_message_bytes": 1000})
    large = "x" * 2000
    feed.send(0, FINE.insert(at(1), 1, "a"), *(FINE.insert(at(number), number, large) for number in (2, 3, 4)))
    feed.resolve(at(5))
    feed.load()
    first, second, third = ((feed.topic, 0, offset) for offset in (1, 2, 3))
    quarantine.dismiss(feed.lake, feed.name, [first, second, third], "too large")
    feed.apply()
    feed.described = {}

    # One that began earlier is appended after gold took in the other.
    decoded = decode_stream.decoded

    def another_meanwhile(raw: DataFrame, decoding: decode_stream.Decoding) -> DataFrame:
        monkeypatch.setattr(decode_stream, "decoded", decoded)
        quarantine.replay(feed.lake, decoding, [second])
        feed.apply()
        return decoded(raw, decoding)

    monkeypatch.setattr(decode_stream, "decoded", another_meanwhile)
    assert quarantine.replay(feed.lake, feed.run.decoding, [first]).decoded == 1
    feed.apply()
    assert sorted(feed.rows("fine")) == [1, 2, 3]

    # Gold has asked how far it is complete, and finds one row of the replay in its window, the other below it.
    feed.described = {"max_message_bytes": 1000}
    feed.send(0, FINE.insert(at(6), 6, large))
    feed.resolve(at(7))
    feed.load()
    fourth = (feed.topic, 0, 5)
    quarantine.dismiss(feed.lake, feed.name, [fourth], "too large")
    feed.described = {}

    def replay_first(*given: Any, **more: Any) -> Window:
        quarantine.replay(feed.lake, feed.run.decoding, [third, fourth])
        return read_window(*given, **more)

    monkeypatch.setattr(window_input, "read_window", replay_first)
    feed.apply()
    monkeypatch.setattr(window_input, "read_window", read_window)
    feed.apply()
    assert sorted(feed.rows("fine")) == [1, 2, 3, 4, 6]


def dismissed(feed: Changefeed, watermark: int, *events: Event) -> list[quarantine.Position]:
    """The positions of events that are sent, go to quarantine and are dismissed, with a watermark after them."""
    first = len(feed.sent)
    feed.send(0, *events)
    feed.resolve(watermark)
    feed.load()
    positions = [(feed.topic, 0, first + number) for number in range(len(events))]
    quarantine.dismiss(feed.lake, feed.name, positions, "a test")
    return positions


@pytest.mark.long
def test_rows_that_are_replayed_while_gold_applies_a_window_are_left_to_the_next_one(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gold has read what the window holds: what they are like decides how a table is merged. `fine` has another replay
    in its window and reads again what is below it; `other` is read by the one pass over many tables."""
    schema = FINE_SCHEMA.replace("VARCHAR(9)", "TEXT")
    small = {"max_message_bytes": 1000}
    feed = Changefeed(spark, broker, tmp_path, schema=schema + schema.replace("fine", "other"), described=small)
    other, large = Source(table="other"), "x" * 2000
    feed.send(0, FINE.insert(at(1), 1, "a"), other.insert(at(1), 1, "a"))
    below = dismissed(feed, at(4), FINE.insert(at(2), 2, large), FINE.insert(at(3), 3, large))
    feed.apply()
    feed.send(0, FINE.insert(at(5), 5, "e"), other.insert(at(5), 5, "e"))
    within = dismissed(feed, at(7), FINE.insert(at(6), 6, large), other.insert(at(6), 6, large))
    feed.described = {}
    quarantine.replay(feed.lake, feed.run.decoding, below[:1])

    def replay_first(lake: Lake, inputs: PlanningInput) -> WindowPlan:
        quarantine.replay(feed.lake, feed.run.decoding, [*below[1:], *within])
        return plan_window(lake, inputs)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(staging, "FEWEST", 1)
        meanwhile.setattr(windows, "plan_window", replay_first)
        feed.apply()
    assert (sorted(feed.rows("fine")), sorted(feed.rows("other"))) == ([1, 2, 5], [1, 5])
    feed.apply()
    assert (sorted(feed.rows("fine")), sorted(feed.rows("other"))) == ([1, 2, 3, 5, 6], [1, 5, 6])


def test_what_was_replayed_and_refused_is_not_merged_by_a_later_replay(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A later replay reads again only the keys that it brings."""
    schema, large = FINE_SCHEMA.replace("VARCHAR(9)", "TEXT"), "x" * 2000
    feed = Changefeed(spark, broker, tmp_path, schema=schema, described={"max_message_bytes": 1000})
    feed.send(0, FINE.insert(at(1), 1, "a"))
    other = Source(table="fine", columns=(ID, V, Column(name="w", type="int"))).insert(at(2), 2, large, 2)
    refused, taken = dismissed(feed, at(4), other, FINE.insert(at(3), 3, large))
    feed.apply()
    feed.described = {}
    quarantine.replay(feed.lake, feed.run.decoding, [refused])
    assert [*feed.apply().blocked] == [("shop", "fine")]
    feed.run.override("shop.fine", "resume", "without the row")
    assert feed.apply().blocked == {}
    quarantine.replay(feed.lake, feed.run.decoding, [taken])
    assert feed.apply().blocked == {}
    assert sorted(feed.rows("fine")) == [1, 3]


@pytest.mark.long
def test_a_ddl_that_comes_twice_and_once_from_quarantine_is_followed_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Also if something else was replayed before."""
    feed = Changefeed(spark, broker, tmp_path, schema=FINE_SCHEMA)
    truncate = ddl(at(3), f"TRUNCATE TABLE `shop`.`fine` /* {'x' * 2000} */", "shop", "fine", "TRUNCATE")
    feed.send(0, FINE.insert(at(1), 1, "a"), FINE.insert(at(2), 2, "b"), truncate, FINE.insert(at(4), 3, "c"))
    feed.resolve(at(5))
    feed.go()
    feed.described = {"max_message_bytes": 1000}
    for number in range(2):
        again = dismissed(feed, at(6 + number), truncate)
        feed.apply()
        quarantine.replay(feed.lake, replace(feed.run.decoding, max_message_bytes=9999), again)
        assert feed.apply().blocked == {}
        assert feed.rows("fine") == {3: ("c",)}


@pytest.mark.long
def test_rows_cut_to_their_handle_key_block_their_table_or_come_with_null(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    options = {"large-message-handle-option": "handle-key-only"}
    feed = Changefeed(spark, broker, tmp_path, schema=FINE_SCHEMA, options=options)
    cut = Source(table="fine", columns=(ID,))
    feed.send(0, FINE.insert(at(1), 1, "a"), FINE.insert(at(1), 2, "b"), FINE.insert(at(1), 3, "c"))
    feed.send(0, replace(cut.update(at(2), (1,), (1,)), handle_only=True))
    feed.send(0, replace(cut.delete(at(2), 2), handle_only=True), replace(cut.insert(at(2), 4), handle_only=True))
    # Sent again by a changefeed that was restarted with larger messages, or with smaller ones.
    feed.send(0, replace(cut.insert(at(2), 5), handle_only=True), FINE.insert(at(2), 5, "e"))
    feed.send(0, FINE.insert(at(2), 6, "f"), replace(cut.insert(at(2), 6), handle_only=True))
    feed.resolve(at(3))
    assert set(feed.go().blocked) == {("shop", "fine")}
    assert feed.rows("fine") == {1: ("a",), 2: ("b",), 3: ("c",)}
    feed.described = {"gold": {"on_handle_key_only": "null"}}
    assert feed.apply().blocked == {}
    assert feed.rows("fine") == {1: (None,), 3: ("c",), 4: (None,), 5: ("e",), 6: ("f",)}


@pytest.mark.long
def test_what_may_have_been_anything_holds_the_feed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    feed = Changefeed(spark, broker, tmp_path, partitions=2, described={"max_message_bytes": 1000})
    feed.send(0, FINE.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.send(0, FINE.update(at(3), (1, "a"), (1, "b" * 2000)))
    feed.send(0, FINE.update(at(4), (1, "not in full"), (1, "c")))
    feed.resolve(at(5))
    feed.send(1, b"\xff not JSON")
    feed.resolve(at(6))

    applied = feed.go()
    assert applied.tso == at(2)
    assert feed.rows("fine") == {1: ("a",)}
    feed.check_nothing_lost_or_doubled()

    # A partition without a message in quarantine does not wait for itself.
    applied = feed.apply()
    assert applied.tso == at(2)
    assert applied.waiting_on is not None
    assert f"{feed.topic}/0/2 is in quarantine (message_too_large)" in applied.waiting_on

    # Too large: raised and replayed, the row takes its place before the newer one.
    feed.described = {}
    assert quarantine.replay(feed.lake, feed.run.decoding) == quarantine.Replayed(decoded=1, still_open=1)
    assert feed.apply().tso == at(5)
    assert feed.rows("fine") == {1: ("c",)}
    assert feed.status.waiting_on is not None
    assert f"{feed.topic}/1/2 is in quarantine (bad_json)" in feed.status.waiting_on

    # Garbage: dismissed with a reason, the feed continues.
    assert quarantine.dismiss(feed.lake, feed.name, [(feed.topic, 1, 2)], "written by hand") == 1
    applied = feed.apply()
    assert (applied.tso, applied.waiting_on) == (at(6), None)


@pytest.mark.long
def test_a_message_is_in_quarantine_once_after_silver_lost_its_checkpoint(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Silver decodes anew what bronze has, and appends what it appended before."""
    feed = Changefeed(spark, broker, tmp_path, schema=FINE_SCHEMA, described={"max_message_bytes": 1000})
    large = "x" * 2000
    feed.send(0, FINE.insert(at(1), 1, "a"), FINE.insert(at(2), 2, large), FINE.insert(at(3), 3, large))
    feed.resolve(at(4))
    feed.load()
    shutil.rmtree(feed.lake.checkpoint(f"silver_{feed.name}"))
    feed.load()
    feed.apply()
    assert len(feed.events(where="kind = 'error'")) == 4
    assert sorted(row["offset"] for row in quarantine.open_messages(feed.lake, feed.name).collect()) == [1, 2]
    shown = spark.table(feed.lake.table(Layer.OPS, "quarantine"))
    assert sorted(row["offset"] for row in shown.collect()) == [1, 2]
    assert all("comment" in field.metadata for field in shown.schema.fields)
    assert (feed.status.decoded, feed.status.reasons) == (2, {"message_too_large": 2})

    assert quarantine.dismiss(feed.lake, feed.name, [(feed.topic, 0, 1)], "not needed") == 1
    feed.described = {}
    assert quarantine.replay(feed.lake, feed.run.decoding) == quarantine.Replayed(decoded=1, still_open=0)
    assert len(feed.events(where="replayed_at IS NOT NULL")) == 1
    assert (feed.status.decoded, feed.status.quarantined, feed.status.dismissed) == (3, 0, 1)
