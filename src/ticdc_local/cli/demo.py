"""``ticdc-lake demo``: a real Kafka broker, a recorded changefeed in each protocol, the bundle's job, and gold compared
with TiDB."""

from __future__ import annotations

import argparse
import fcntl
import io
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_codec.protocols import spelling
from ticdc_codec.tso import time_text
from ticdc_lakehouse.bronze.landing import messages_table
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.config.feed import Feed, load_feed
from ticdc_lakehouse.counted import counted
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.gold.time_travel import as_of
from ticdc_lakehouse.ops import status
from ticdc_lakehouse.ops.status import FeedStatus
from ticdc_lakehouse.silver import events_table
from ticdc_local.broker import Broker, recorded_messages
from ticdc_local.cli.arguments import LAKE, in_same_place, lake_root, place_arguments, positive, project_root, writing
from ticdc_local.cli.job_text import progress_text, result_text
from ticdc_local.cli.notice import note
from ticdc_local.cli.open_lake import silence_query_log
from ticdc_local.cli.run import JOB
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.runner.bundle import Bundle, load_bundle
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.display import table, text_of
from ticdc_local.runner.job import feed_parameters, local_parameters, run_job
from ticdc_local.runner.outcome import JobState, Progress, TaskEvent
from ticdc_local.session import CORES, local_session
from ticdc_local.verify_stream import Verdict, verdict
from ticdc_testkit.comparison import Cell
from ticdc_testkit.recorded_streams import Answer, RecordedStream, answers, recorded_stream

STREAM = Path("tests", "data", "streams", "tiflow-basic")
FEEDS = {
    "shop_craft": "craft.jsonl.gz",
    "shop_canal": "canal_json.jsonl.gz",
    "shop_open": "open_protocol.jsonl.gz",
    "shop_simple": "simple-avro.jsonl.gz",
    "shop_debezium": "debezium.jsonl.gz",
}
STEP_BY_STEP = "shop_craft"
"""The feed that is applied in steps, and compared after each; the others go to the end at once, to save time."""
STEPS = 2
NEXT = ("ticdc-lake sql", "ticdc-lake report", f"ticdc-lake run notebooks/tour.ipynb --feed {STEP_BY_STEP}")
"""What to type on the lake that stays."""
_SHOWN = 20
MARK = "made-by-demo"
_MARK_TEXT = "The demo deletes this folder when it starts, unless another feed has tables in it.\n"
_LEFT_BY_PROMPT = {"scratch", "warehouse"}

_COLUMNS = "order_id, customer_id, qty, status, placed, note"
_OF_ALL = " UNION ALL ".join(f"SELECT {_COLUMNS} FROM gold.{feed}_shop_orders" for feed in FEEDS)
_ORDERS = f"""
    SELECT status, count(*) AS orders, count(DISTINCT customer_id) AS customers, sum(qty) AS pieces,
           min(feeds) AS feeds_alike
    FROM (SELECT {_COLUMNS}, count(*) AS feeds FROM ({_OF_ALL}) GROUP BY {_COLUMNS})
    GROUP BY status ORDER BY status"""
_CHANGES = """
    SELECT date_format(commit_time, 'yyyy-MM-dd HH:mm:ss.SSS') AS committed, op, name,
           _before.balance AS balance_before, balance
    FROM silver.shop_canal_shop_customers
    WHERE id = (SELECT max_by(id, changes) FROM (
        SELECT id, count(*) AS changes FROM silver.shop_canal_shop_customers GROUP BY id))
    ORDER BY commit_ts LIMIT 6"""
_THEN_AND_NOW = """
    SELECT coalesce(n.status, t.status) AS status, t.orders AS orders_then, n.orders AS orders_now,
           t.pieces AS pieces_then, n.pieces AS pieces_now
    FROM (SELECT status, count(*) AS orders, sum(qty) AS pieces FROM orders_then GROUP BY status) t
    FULL JOIN (SELECT status, count(*) AS orders, sum(qty) AS pieces FROM gold.shop_craft_shop_orders GROUP BY status) n
    ON n.status <=> t.status ORDER BY status"""

EXAMPLES = """examples:
  ticdc-lake demo                        what `make demo` runs
  ticdc-lake demo --steps 8 --lake /tmp/lake"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demo:
    """One demonstration."""

    project: Path
    lake: Path
    open_session: Callable[[Path], SparkSession]
    bundle: Bundle
    feeds: Mapping[str, Feed]
    streams: Mapping[str, RecordedStream]
    started: float = field(default_factory=time.monotonic)
    terminal: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, text: str) -> None:
        """Notes a line with the seconds since the start, also while notebooks' output is held back."""
        note(f"[{time.monotonic() - self.started:5.1f} s] {text}", self.terminal)

    def session(self) -> SparkSession:
        """Returns the process's session."""
        return self.open_session(self.lake)

    def parameters(self, broker: Broker, feeds: Iterable[str]) -> dict[str, str]:
        """Returns the job's parameters for these feeds, except until_tso."""
        own = {"bootstrap_servers": broker.bootstrap_servers}
        return {**local_parameters(self.project, self.lake), **feed_parameters(*feeds), **own}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    parser.add_argument(
        "--steps",
        type=positive,
        default=STEPS,
        metavar="N",
        help=f"compare {STEP_BY_STEP} at N watermarks (default: {STEPS}), the others at the last",
    )


def _session(lake: Path) -> SparkSession:
    """Returns the process's session, opened silently: the demo prints its own progress."""
    silence_query_log()
    return local_session(lake)


def run(options: argparse.Namespace, open_session: Callable[[Path], SparkSession] = _session) -> int:
    """Creates the lake again and shows it; returns 1 if gold differs from TiDB anywhere.

    ``open_session`` opens the session of the lake's folder.
    """
    demo = _prepared(options, open_session)
    verdicts: dict[str, list[Verdict]] = {name: [] for name in FEEDS}
    with Broker(demo.lake / "kafka") as broker, ThreadPoolExecutor(1) as pool:
        demo.say(f"Kafka runs at {broker.bootstrap_servers}")
        session = pool.submit(demo.session)  # Spark starts while the changefeeds are written
        for name in FEEDS:
            _publish(demo, broker, name)
        session.result()
        runs = _apply(demo, broker, chosen(list(answers(demo.project / STREAM)), options.steps), verdicts)
        _show_state(demo, runs)
    _show_queries(demo, runs[STEP_BY_STEP].lake, verdicts[STEP_BY_STEP][0].watermark)
    equal = _show_verdicts(verdicts)
    demo.say(f"Kafka is stopped. The lake stays in {options.lake or LAKE}")
    for command in NEXT:
        note(f"Next: {in_same_place(options, command)}")
    return 0 if equal else 1


def _prepared(options: argparse.Namespace, open_session: Callable[[Path], SparkSession]) -> _Demo:
    project, lake = project_root(options), lake_root(options)
    feeds = {name: load_feed(project / "resources" / "feeds" / f"{name}.yml") for name in FEEDS}
    streams = {name: recorded_stream(project / STREAM, file, {}) for name, file in FEEDS.items()}
    bundle = load_bundle(project)
    clean(lake)
    return _Demo(project=project, lake=lake, open_session=open_session, bundle=bundle, feeds=feeds, streams=streams)


def clean(lake: Path) -> None:
    """Empties the lake's folder. Raises ConfigError, and deletes nothing, if the demo did not make what is in it,
    another feed has tables in it, or another process is at work there."""
    names = {path.name for path in lake.iterdir()} if lake.is_dir() else set()
    if MARK not in names and not names <= _LEFT_BY_PROMPT:
        raise ConfigError(f"{lake}: holds something that the demo did not make; move it away, or give --lake FOLDER")
    if others := _feeds_of_others(lake):
        found = f"{counted(len(others), 'feed')} that the demo did not make ({', '.join(others)})"
        raise ConfigError(f"{lake}: holds {found}; move the folder away, or give --lake FOLDER")
    for lock in (lake / "kafka" / "broker.log", *(lake / "locks").glob("*.*")):
        if _is_held(lock):
            raise ConfigError(
                f"{lake}: another process is at work in it ({lock.name}); end that one, or give --lake FOLDER"
            )
    if lake.is_dir():
        for path in lake.iterdir():
            if path.name != MARK:  # last, so that the next demo continues after a Ctrl-C
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(lake)
    with writing("--lake", lake):
        lake.mkdir(parents=True)
    (lake / MARK).write_text(_MARK_TEXT, encoding="utf-8")


def _feeds_of_others(lake: Path) -> list[str]:
    """Returns the feeds with messages in the lake that are none of `FEEDS`: a feed of one's own goes into the same
    folder."""
    suffix = messages_table("")
    return sorted({path.name.removesuffix(suffix) for path in (lake / Layer.BRONZE).glob(f"*{suffix}")} - {*FEEDS})


def _is_held(lock: Path) -> bool:
    """True if a broker (`Broker`) or a layer (`exclusive_run`) of another process holds the lock."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def chosen(known: list[Answer], steps: int) -> list[Answer]:
    """Returns ``steps`` of the answers, evenly apart, the last one among them."""
    last = len(known) - 1
    places = {round(last * step / steps) for step in range(1, steps + 1)}
    return [known[place] for place in sorted(places)]


def _publish(demo: _Demo, broker: Broker, name: str) -> None:
    """Writes a recorded stream into the topic that the feed's file names."""
    stream, topic = demo.streams[name], demo.feeds[name].topics[0]
    broker.create_topic(topic, stream.partitions)
    count = broker.produce(topic, recorded_messages(stream.messages))
    demo.say(f"Changefeed {name}: {count} {spelling(stream.protocol)} messages in topic {topic}")


def _apply(demo: _Demo, broker: Broker, known: list[Answer], verdicts: dict[str, list[Verdict]]) -> dict[str, Run]:
    """Runs the bundle's job up to each answer's watermark (the last time as far as it goes), and compares each time."""
    runs: dict[str, Run] = {}
    seen: dict[str, dict[tuple[str, int], list[tuple[Cell, ...]]]] = {name: {} for name in FEEDS}
    demo.say(f"Job {JOB} of databricks.yml, on Spark and Delta in this process")
    for number, answer in enumerate(known, start=1):
        last = number == len(known)
        feeds = tuple(FEEDS) if last else (STEP_BY_STEP,)
        limit = "" if last else str(answer.watermark)
        _run_job(demo, {**demo.parameters(broker, feeds), "until_tso": limit})
        runs = {name: _run_of(demo, broker, name) for name in feeds}
        with ThreadPoolExecutor(CORES) as pool:
            zones = (demo.streams[name].time_zone for name in runs)
            compared = pool.map(verdict, runs.values(), repeat(answer), zones, (seen[name] for name in runs))
            for name, each in zip(runs, compared, strict=True):
                verdicts[name].append(each)
        equal = all(not verdicts[name][-1].differences for name in feeds)
        state = "gold equals TiDB" if equal else "gold DIFFERS from TiDB"
        where = counted(len(feeds), "feed")
        demo.say(f"Watermark {number} of {len(known)}, TSO {answer.watermark}: {state} in {where}")
    return runs


def _run_job(demo: _Demo, parameters: Mapping[str, str]) -> None:
    """Runs the job; what its notebooks print is not shown.

    Raises ConfigError with the traceback if it fails.
    """

    def progress(event: Progress) -> None:
        if event.event in (TaskEvent.FINISHED, TaskEvent.FAILED, TaskEvent.RETRYING):
            demo.say(f"  {progress_text(event)}")

    with redirect_stdout(io.StringIO()):
        result = run_job(demo.bundle, JOB, parameters, demo.session, progress, retry_wait_seconds=1.0)
    if result.state is not JobState.SUCCESS:
        raise ConfigError(result_text(result, demo.lake))


def _run_of(demo: _Demo, broker: Broker, name: str) -> Run:
    return Run.from_parameters(demo.session(), {**demo.parameters(broker, [name]), "feed": name}, Secrets().get)


def _show_state(demo: _Demo, runs: Mapping[str, Run]) -> None:
    """Prints what each layer holds of each feed, and how far the feed is."""
    print("\nWhat the lake holds (`ticdc-lake status` shows more):")
    heads = (
        "feed",
        "protocol",
        "bronze messages",
        "quarantined",
        "silver events",
        "gold tables",
        "gold rows",
        "watermark",
    )
    reader = DeltaReader(demo.lake)
    feeds = {name: status.feed_status(reader, name) for name in runs}
    rows = _gold_rows(runs[STEP_BY_STEP].lake, feeds)
    lines = [
        (name, spelling(demo.feeds[name].protocol), *_layers(reader, feed_status), rows[name], feed_status.tso)
        for name, feed_status in feeds.items()
    ]
    print(f"{table(heads, lines)}\n")


def _layers(reader: DeltaReader, feed_status: FeedStatus) -> tuple[int, ...]:
    """Counts messages in bronze and in quarantine, events in silver, tables in gold."""
    (events,) = reader.rows(f"SELECT count(*) AS number FROM {events_table.full_name(reader, feed_status.feed)}")
    return feed_status.landed, feed_status.quarantined, events["number"], len(feed_status.tables)


def _gold_rows(lake: Lake, feeds: Mapping[str, FeedStatus]) -> dict[str, int]:
    """Counts the rows of each feed's gold views."""
    views = [
        f"SELECT '{name}' AS feed FROM {lake.table(Layer.GOLD, state.lake_name)}"
        for name, feed_status in feeds.items()
        for state in feed_status.tables.values()
    ]
    rows = lake.rows(f"SELECT feed, count(*) AS number FROM ({' UNION ALL '.join(views)}) GROUP BY feed")
    return {row["feed"]: row["number"] for row in rows}


def _show_queries(demo: _Demo, lake: Lake, tso: int) -> None:
    """Prints three questions that an analyst might ask, and what the lake answers."""
    spark = demo.session()
    print("Gold: orders by status, and in how many feeds every one of them is the same")
    print(text_of(spark.sql(_ORDERS)))
    print("\nSilver: the first changes of the customer that changed most")
    print(text_of(spark.sql(_CHANGES)))
    snapshot = as_of(spark, STEP_BY_STEP, tso, lake=lake)
    snapshot["shop.orders"].createOrReplaceTempView("orders_then")
    print(f"\nas_of(spark, '{STEP_BY_STEP}', {tso}): orders at {time_text(snapshot.tso)} beside those of gold now")
    print(text_of(spark.sql(_THEN_AND_NOW)))


def _show_verdicts(verdicts: Mapping[str, list[Verdict]]) -> bool:
    """Prints each difference, and at how many watermarks gold equals TiDB; true if it does at all of them."""
    print()
    for name, of_feed in verdicts.items():
        for each in of_feed:
            for difference in each.differences[:_SHOWN]:
                print(f"  {name} at {each.watermark}: {difference}")
        equal = sum(not each.differences for each in of_feed)
        rows = sum(each.rows for each in of_feed)
        print(f"{name}: gold equals TiDB at {equal} of {counted(len(of_feed), 'watermark')} ({rows} rows compared)")
    return all(not each.differences for of_feed in verdicts.values() for each in of_feed)
