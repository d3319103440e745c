"""The order of changes: by commit_ts, delete before upsert, never by arrival. One pipeline run, one table a rule."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from changefeed import Changefeed, Source, at

from ticdc_codec.event import Column
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.gold import staging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from ticdc_lakehouse.gold.windows import Applied
    from ticdc_lakehouse.planning.published_state import Published
    from ticdc_local.broker import Broker

UNKEYED = (Column(name="u", type="varchar"), Column(name="n", type="int"))
SCHEMA = "CREATE TABLE shop.uniq (u varchar(10) NOT NULL, n int, UNIQUE KEY u (u));"
SWAP, REBORN, REPLAYED, BLOCKS, LATE, MOVED, CHAIN, DEAD, EDGE = (
    Source(table=name) for name in ("swap", "reborn", "replayed", "blocks", "late", "moved", "chain", "dead", "edge")
)
UNIQ = Source(table="uniq", columns=UNKEYED)
LEFT_OUT = Source(table="left_out")
W = at(10)


def write_all(feed: Changefeed) -> None:
    """Two bronze batches' worth; partition 0 is what TiCDC sent first, as far as it matters."""
    # D1 D2 I2 I1 at one commit_ts, spread over partitions so that an insert is read before its key's delete.
    feed.send(0, SWAP.insert(at(1), 1, "a"), SWAP.insert(at(1), 2, "b"))
    feed.send(0, SWAP.insert(at(5), 1, "b"), SWAP.delete(at(5), 2, "b"))
    feed.send(1, SWAP.insert(at(5), 2, "a"), SWAP.delete(at(5), 1, "a"))
    feed.send(0, REBORN.insert(at(1), 1, "old"), REBORN.insert(at(5), 1, "new"), REBORN.delete(at(5), 1, "old"))
    m1 = (REPLAYED.insert(at(1), 1, "a"), REPLAYED.insert(at(1), 2, "a"))
    m2 = (REPLAYED.update(at(2), (1, "a"), (1, "b")), REPLAYED.delete(at(2), 2, "a"))
    m3 = (REPLAYED.update(at(3), (1, "b"), (1, "c")), REPLAYED.insert(at(3), 2, "c"), REPLAYED.insert(at(3), 3, "c"))
    feed.send(0, *m1, *m2, *m3, *m2, *m3)
    older = (BLOCKS.update(at(2), (1, "0"), (1, "a")), BLOCKS.insert(at(2), 2, "a"))
    newer = (BLOCKS.update(at(3), (1, "a"), (1, "b")), BLOCKS.delete(at(3), 2, "a"))
    feed.send(1, BLOCKS.insert(at(1), 1, "0"), *newer, *older, *newer, *older)
    feed.send(0, LATE.insert(at(1), 1, "1"), LATE.update(at(6), (1, "4"), (1, "6")))
    feed.send(0, LATE.update(at(4), (1, "1"), (1, "4")))
    # An update that changes the key and is not split (output-raw-change-event).
    feed.send(0, MOVED.insert(at(1), 1, "x"), MOVED.update(at(2), (1, "x"), (2, "x")))
    feed.send(0, CHAIN.insert(at(1), 5, "five"), CHAIN.insert(at(1), 6, "six"))
    feed.send(1, CHAIN.update(at(2), (5, "five"), (6, "five")), CHAIN.update(at(2), (6, "six"), (7, "six")))
    feed.send(0, DEAD.insert(at(1), 1, "a"), DEAD.delete(at(3), 1, "b"))
    feed.send(1, DEAD.insert(at(1), 1, "a"), DEAD.update(at(2), (1, "a"), (1, "b")))
    feed.send(0, EDGE.insert(W, 1, "in"), EDGE.insert(W + 1, 2, "out"))
    feed.send(0, UNIQ.insert(at(1), "a", 1), UNIQ.insert(at(1), "c", 2), UNIQ.insert(at(1), "d", 4))
    feed.send(1, UNIQ.update(at(2), ("a", 1), ("b", 1)), UNIQ.update(at(2), ("c", 2), ("c", 3)))
    feed.send(1, UNIQ.delete(at(3), "d", 4), LEFT_OUT.insert(at(3), 1, "a"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What was seen after one run."""

    applied: Applied
    state: Published
    versions: dict[str, int]
    rows: dict[str, dict[Any, tuple[Any, ...]]]
    fates: dict[str, int] = field(default_factory=dict)
    """Counted after the last run alone."""


def seen(feed: Changefeed, applied: Applied, *tables: str) -> Stage:
    rows = {table: feed.rows(table) for table in tables}
    return Stage(applied=applied, state=feed.state, versions=feed.data_versions(), rows=rows)


def counted_fates(feed: Changefeed) -> dict[str, int]:
    """How many events of the whole feed have which fate."""
    lines = feed.spark.table(feed.lake.table(Layer.OPS, f"{feed.name}_accounting"))
    [totals] = lines.drop("batch", "topic", "partition", "messages", "events").groupBy().sum().collect()
    return {name.removeprefix("sum(").removesuffix(")"): count for name, count in totals.asDict().items()}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(1, id="one pass staged by table"),
        pytest.param(1000, id="each MERGE reads the window", marks=pytest.mark.long),
    ],
)
def stages(
    request: pytest.FixtureRequest, spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Stage]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "FEWEST", request.param)
        yield run_stages(spark, broker, tmp_path_factory)


def run_stages(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    feed = Changefeed(
        spark,
        broker,
        tmp_path_factory.mktemp("order"),
        partitions=2,
        schema=SCHEMA,
        options={"only-output-updated-columns": True},
        described={"tables": {"exclude": ["shop.left_out"]}},
    )
    found: dict[str, Stage] = {}
    write_all(feed)
    feed.resolve(W, 0)
    feed.resolve(at(12), 1)
    feed.load(max_offsets_per_trigger=30)
    found["first"] = seen(feed, feed.apply(), *(table for table, _ in RULES.values()))

    feed.resolve(at(3), 0)
    feed.resolve(W, 0, 1)
    found["regressed"] = seen(feed, feed.go())

    feed.resolve(at(13), 0)
    found["second"] = seen(feed, feed.go(), "edge")

    feed.produce(list(feed.sent))
    feed.resolve(at(20))
    feed.send(0, b"{", LATE.update(at(21), (1, "6"), (1, "21")))
    found["replayed"] = replace(seen(feed, feed.go()), fates=counted_fates(feed))
    feed.check_nothing_lost_or_doubled()
    assert [*(feed.folder / "checkpoints" / f"gold_{feed.name}").glob("stage/*")] == []
    return found


RULES = {
    "keys swapped in one transaction, over partitions": ("swap", {1: ("b",), 2: ("a",)}),
    "insert read before the delete of its commit_ts": ("reborn", {1: ("new",)}),
    "m1 m2 m3 m2 m3": ("replayed", {1: ("c",), 2: ("c",), 3: ("c",)}),
    "an older block between and after newer ones": ("blocks", {1: ("b",)}),
    "larger offset, smaller commit_ts": ("late", {1: ("6",)}),
    "an update moves the key": ("moved", {2: ("x",)}),
    "updates move keys onto each other": ("chain", {6: ("five",), 7: ("six",)}),
    "older changes after the delete": ("dead", {}),
    "commit_ts equal to the watermark is in, one more is not": ("edge", {1: ("in",)}),
    "no key on the wire, UNIQUE NOT NULL in schema_file": ("uniq", {"b": (1,), "c": (3,)}),
}


@pytest.mark.parametrize(("table", "expected"), RULES.values(), ids=RULES)
def test_order_of_changes_decides_the_row(
    stages: dict[str, Stage], table: str, expected: dict[Any, tuple[Any, ...]]
) -> None:
    assert stages["first"].applied.tso == W
    assert stages["first"].applied.blocked == {}
    assert stages["first"].rows[table] == expected


def test_watermarks_that_fall_back_or_repeat_change_nothing(stages: dict[str, Stage]) -> None:
    assert stages["regressed"].applied.tso == W
    assert stages["regressed"].state.tables == stages["first"].state.tables
    assert stages["regressed"].versions == stages["first"].versions


def test_next_window_has_what_the_last_one_left(stages: dict[str, Stage]) -> None:
    assert stages["second"].applied.tso == at(12)
    assert (stages["second"].applied.row_changes, stages["second"].applied.merged) == (1, 1)
    assert stages["second"].rows["edge"] == {1: ("in",), 2: ("out",)}


def test_everything_again_from_the_beginning_commits_nothing(stages: dict[str, Stage]) -> None:
    """The views stay pinned to the same versions, and no data table has a newer one."""
    replayed = stages["replayed"]
    assert replayed.applied.tso == at(20)
    assert (replayed.applied.row_changes, replayed.applied.merged) == (0, 0)
    assert replayed.applied.blocked == {}
    assert replayed.versions == stages["second"].versions
    assert {t.lake_name: t.version for t in replayed.state.tables.values()} == {
        t.lake_name: t.version for t in stages["second"].state.tables.values()
    }


def test_every_event_has_its_fate(stages: dict[str, Stage]) -> None:
    assert stages["replayed"].fates == {
        "applied": 22,  # also what was under a key that an update moved, or that the schema file alone names
        "superseded": 19,
        "duplicates": 10 + 52,  # in `write_all`, and all of it again
        "filtered": 1,
        "waiting": 1,
        "quarantined": 1,
        "control": 14,  # watermarks: six, again, and the last of each partition
    }
