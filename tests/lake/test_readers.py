"""What somebody sees who reads in a loop while windows are applied."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.config.table_filter import TableFilter
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.gold.state import published
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_local.verify_stream import load_stream
from ticdc_testkit.recorded_streams import Answer, answers, recorded_stream

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from ticdc_local.broker import Broker

pytestmark = pytest.mark.long

STREAM = Path(__file__).parents[1] / "data" / "streams" / "ticdc-bank"
SUMS = """
    SELECT (SELECT struct(count(*), sum(balance), sum(version)) FROM {accounts}) AS accounts,
           (SELECT struct(count(*), sum(amount)) FROM {ledger}) AS ledger"""
"""Every transfer changes two accounts in one transaction, and writes two lines of the ledger in it."""
WINDOWS = 4


@contextmanager
def in_a_loop(read: Callable[[], object]) -> Iterator[None]:
    """Reads over and over beside what is done meanwhile, and raises what went wrong."""
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            read()

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(loop)
        try:
            yield
        finally:
            done.set()
        reading.result()


@pytest.fixture(scope="module")
def bank(spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    stream, folder = recorded_stream(STREAM, "canal_json.jsonl.gz", {}), tmp_path_factory.mktemp("readers")
    run = load_stream(spark, broker, stream, folder, name="read_bank")
    return replace(run, feed=replace(run.feed, tables=TableFilter(include=("bank.accounts", "bank.ledger"))))


def windows() -> list[Answer]:
    known = list(answers(STREAM))
    step = len(known) // WINDOWS
    return known[step::step]


def through(run: Run, layer: Layer) -> Row:
    """What a query over two tables shows: in gold views at the published version, in live each table's newest one."""
    tables = published(run.lake, run.feed.name).tables
    names = {table: run.lake.table(layer, tables["bank", table].lake_name) for table in ("accounts", "ledger")}
    (line,) = run.lake.spark.sql(SUMS.format(**names)).collect()
    return line


def at_watermark(run: Run, tso: int) -> Row:
    """What the query over two tables shows as of a TSO."""
    tables = as_of(run.lake.spark, run.feed.name, tso, lake=run.lake)
    accounts, ledger = tables["bank.accounts"], tables["bank.ledger"]
    (line,) = run.lake.spark.sql(
        SUMS.format(accounts="{accounts}", ledger="{ledger}"), accounts=accounts, ledger=ledger
    ).collect()
    return line


def test_readers_never_see_a_torn_transaction(bank: Run) -> None:
    known = windows()
    replace(bank, until_tso=known[0].watermark).gold()
    seen: list[Row] = []
    live: list[Row] = []
    exact: list[tuple[int, Row]] = []

    def read() -> None:
        seen.append(through(bank, Layer.GOLD))
        live.append(through(bank, Layer.LIVE))
        tso = published(bank.lake, bank.feed.name).tso
        exact.append((tso, at_watermark(bank, tso)))

    with in_a_loop(read):
        for answer in known[1:]:
            replace(bank, until_tso=answer.watermark).gold()
    states = {answer.watermark: at_watermark(bank, answer.watermark) for answer in known}
    assert len(set(states.values())) == len(states), "else nothing could be told"
    assert [(tso, line) for tso, line in exact if line != states[tso]] == []
    singles = {name: [state[name] for state in states.values()] for name in ("accounts", "ledger")}
    places = [(singles["accounts"].index(line["accounts"]), singles["ledger"].index(line["ledger"])) for line in seen]
    assert len(set(places)) > 1, "else nothing was read meanwhile"
    # A query over two views may read one that is renewed already and one that is not yet: of neighbouring watermarks.
    assert all(abs(one - other) <= 1 for one, other in places)
    assert all(before <= after for before, after in pairwise(min(place) for place in places))
    # Of a live table a reader sees whole windows only, each a state that TiDB had.
    for table, states_of_table in singles.items():
        assert [line[table] for line in live if line[table] not in states_of_table] == []
    assert len({line["accounts"] for line in live}) > 1, "else nothing was read meanwhile"
    print(f"{len(places)} reads over two views, {sum(one != other for one, other in places)} of two watermarks")
