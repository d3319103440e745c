"""No table of a recorded stream is blocked, and after each window each is what TiDB says it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from odd_names import with_odd_names
from planned import Planner

from ticdc_codec.event import RowChange
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.schema.definition import Table
from ticdc_testkit.recorded_streams import RecordedStream, answers, recorded_streams
from ticdc_testkit.respelled_streams import decoded_messages, respelled

STREAMS = recorded_streams(Path(__file__).parents[1] / "data" / "streams", {"craft-float": "trust"})


WORDS = {"tiflow-ddl": "evo", "ticdc-ddl": "shop"}
"""How the databases of the streams of DDLs begin."""
OF_DDLS = [stream for stream in STREAMS if stream.folder.name in WORDS]
WATERMARKED = [stream for stream in OF_DDLS if stream.watermarks]
ENCODED = [stream for stream in OF_DDLS if stream.file != "debezium-noext.jsonl.gz"]
"""The encoder of Debezium needs the columns' types, which this file does not tell."""


@pytest.mark.parametrize("stream", STREAMS, ids=map(str, STREAMS))
def test_all_tables_go_on_as_they_are_in_tidb(stream: RecordedStream) -> None:
    assert_plans(stream)


@pytest.mark.parametrize("stream", OF_DDLS, ids=map(str, OF_DDLS))
def test_tables_of_databases_with_capitals_go_on_as_they_are_in_tidb(stream: RecordedStream, tmp_path: Path) -> None:
    """A renamed table's messages have the database in lower case until its next DDL (wire.md 8.14)."""
    capitalized = respelled(stream, WORDS[stream.folder.name], tmp_path)
    rows = [event for _, event in decoded_messages(stream) if isinstance(event, RowChange)]
    spelled = [event for _, event in decoded_messages(capitalized) if isinstance(event, RowChange)]
    assert [(row.before, row.after) for row in spelled] == [(row.before, row.after) for row in rows]
    assert {row.database.islower() for row in spelled} == {True, False}
    assert_plans(capitalized)


@pytest.mark.parametrize("stream", ENCODED, ids=map(str, ENCODED))
def test_tables_and_columns_with_odd_names_go_on_as_they_are_in_tidb(stream: RecordedStream, tmp_path: Path) -> None:
    """Backticks, quotes, backslashes, braces, comment signs and letters beyond ASCII in every name."""
    assert_plans(with_odd_names(stream, tmp_path / "odd"))


@pytest.mark.parametrize("stream", WATERMARKED, ids=map(str, WATERMARKED))
def test_windows_may_end_at_a_ddl_or_just_before(stream: RecordedStream) -> None:
    """No answer lies at the commit_ts of a DDL, but TiCDC's watermarks do, and the DDL is seen again behind them."""
    at_ddls = {ddl.commit_ts for ddl in Planner(stream).ddls}
    assert_plans(stream, {end - before for end in at_ddls for before in (0, 1)})


def assert_plans(stream: RecordedStream, others: Iterable[int] = ()) -> None:
    wanted = {answer.watermark: answer.tables for answer in answers(stream.folder)}
    for tso, plans in Planner(stream).windows(others):
        assert {plan.name: str(plan.stop) for plan in plans if plan.stop is not None} == {}
        if others and tso not in wanted:
            continue
        tables = wanted.get(tso) or list(wanted.values())[-1]
        found = {".".join(plan.name): described(plan.definition.table) for plan in plans if plan.definition is not None}
        assert found == {name: [column_facts(column) for column in table["columns"]] for name, table in tables.items()}


def described(table: Table) -> list[tuple[str, str, bool]]:
    return [(column.name, column.type.family.name, column.type.unsigned) for column in table.columns]


def column_facts(column: dict[str, Any]) -> tuple[str, str, bool]:
    kind = parse_type(column["type"])
    return column["name"], kind.family.name, kind.unsigned
