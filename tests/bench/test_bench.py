"""The benchmarks of the codecs run and say what they measured; nothing is asserted of speed."""

from __future__ import annotations

import time
from threading import Barrier

import pytest
from bench.generated_messages import Made
from bench.recorded import json_texts, recorded
from bench.report import Target
from bench.timing import Times, interleaved

from bench import codec, gold, loop, memory, pipeline, silver
from ticdc_codec.event import Kind
from ticdc_codec.protocols import Decoder
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.gold import windows
from ticdc_lakehouse.loop import Round


@pytest.mark.parametrize("name", codec.CONTESTS)
def test_every_recorded_row_decodes(name: str) -> None:
    messages = recorded(name)
    kinds = Decoder(messages.protocol, messages.options).decode(messages.keys, messages.values).column("kind")
    assert kinds.to_pylist().count(Kind.ROW) == messages.rows
    assert Kind.ERROR not in kinds.to_pylist()


def test_json_texts_of_open_are_a_key_and_a_value_for_each_row() -> None:
    texts = json_texts(recorded("open_protocol"))
    assert len(texts) == 2 * recorded("open_protocol").rows
    assert all(text.startswith(b"{") and text.endswith(b"}") for text in texts)


def test_codec_benchmark_measures_every_contestant() -> None:
    result = codec.measure(rows=420, repetitions=1)
    text = codec.report(result)
    assert all(name in text for name in result.times)
    assert [target.bound for target in codec.targets(result)] == [0.15, 0.8, 0.4, 0.8, 1.3, 0.5, 0.8]


def test_repetitions_are_interleaved_and_each_contestant_begins() -> None:
    ran: list[str] = []
    contestants = {"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}
    times = interleaved(contestants, 2, {"steps": lambda: float(len(ran))})
    assert ran == ["a", "b", "b", "a"]
    assert times["steps"]["a"].seconds == (1.0, 1.0)


def test_target_says_whether_it_is_met() -> None:
    slow = Target(what="decode", measured=0.6, bound=0.5, at_most=True)
    assert (slow.met, str(slow)) == (False, "MISSED  decode: 0.6 (target ≤ 0.5)")
    assert Target(what="rate", measured=0.9, bound=0.85, at_most=False).met


def test_a_large_message_is_a_row_with_a_large_text() -> None:
    head, tail = memory.row_around()
    message = recorded("canal_json")
    (event,) = Decoder(message.protocol, message.options).decode([None], [head + b"x" * 99_999 + tail]).to_pylist()
    assert event["kind"] == Kind.ROW
    assert "x" * 99_999 in event["after"]


@pytest.mark.parametrize(("cpu", "is_met"), [(9.0, True), (11.0, False)])
def test_law_of_silver_compares_cpu_time_with_an_empty_map_in_arrow(cpu: float, is_met: bool) -> None:
    slow, bare, own = Times((99.0,)), Times((6.0,)), Times((cpu,))
    wall = {"mapInArrow": slow, "silver": bare}
    result = silver.SilverResult(protocol="craft", rows=1, wall=wall, cpu={"mapInArrow": bare, "silver": own})
    [law] = silver.targets(result)
    assert (law.measured, law.met) == (6.0 / cpu, is_met)


def test_law_of_further_tables_counts_from_one_to_ten_and_from_ten_to_a_hundred() -> None:
    seconds = {1: (4.0, 2.0), 10: (13.0, 2.0), 100: (40.0, 20.0)}
    compared = [_gold(tables, own, bare) for tables, (own, bare) in seconds.items()]
    laws = [target for target in gold.targets(compared, *compared) if "each further" in target.what]
    assert [(law.measured, law.met) for law in laws] == [(1.0, False), (0.1, True)]
    assert ["from 1 to 10" in laws[0].what, "from 10 to 100" in laws[1].what] == [True, True]


def _gold(tables: int, own: float, bare: float) -> gold.GoldResult:
    case = gold.Case(feed="gold", changes=100, tables=tables)
    return gold.GoldResult(case=case, gold=Times((own,)), bare=Times((bare,)))


def test_bare_merges_run_as_many_at_a_time_as_those_of_gold() -> None:
    assert gold.AT_ONCE == windows._TABLES_AT_ONCE
    all_there, done = Barrier(gold.AT_ONCE), []

    def merge(table: int) -> None:
        all_there.wait(timeout=10)
        done.append(table)

    gold.side_by_side(merge, 2 * gold.AT_ONCE)
    assert sorted(done) == [*range(2 * gold.AT_ONCE)]


def test_bare_copy_reads_kafka_with_the_options_of_bronze() -> None:
    options = pipeline.copied(Made(feed="f", protocol="canal_json", rows=8, batch=2), "broker:9092", 4)
    source = landing.KafkaSource(feed="f", kafka_options={"kafka.bootstrap.servers": "broker:9092", "subscribe": "f"})
    of_bronze = landing.kafka_options(source, {}, None)
    assert options == {**of_bronze, "startingOffsets": '{"f": {"0": 6, "1": 6, "2": 6, "3": 6}}'}


def test_law_of_the_loop_counts_how_far_readers_are_behind_just_before_a_publication() -> None:
    before, after = [20.0, 20.0, 11.0, 9.0, 9.0, 9.0], [12.0, 12.0, 4.0, 4.0, 4.0, 4.0]
    result = loop.LoopResult(changes=1, seconds=1.0, before=before, after=after)
    behind, lag, heap = loop.targets(result, {loop.FIRST: 100.0, loop.LAST: 120.0})
    assert (behind.measured, behind.met, behind.bound) == (11.0, False, 10.0)
    assert (lag.measured, heap.measured) == (1.0, 1.2)
    assert "| 10.0 (20.0) " in loop.report(result)
    assert "| 4.0 (12.0) " in loop.report(result)


def test_loop_is_most_behind_just_before_it_publishes() -> None:
    began = time.monotonic()
    written = {0: began - 90, 10: began - 50, 20: began - 10}
    result = loop.carried([_round(10, 7), _round(10, 0), _round(20, 8)], written)
    assert result.changes == 15
    assert result.before == pytest.approx([90, 50], abs=5)
    assert result.after == pytest.approx([50, 10], abs=5)


def _round(tso: int, changes: int) -> Round:
    return Round(
        feed="f",
        number=1,
        messages=changes,
        row_changes=changes,
        tables=1,
        blocked=(),
        tso=tso,
        waiting_on=None,
        behind_seconds=None,
        seconds=1.0,
    )
