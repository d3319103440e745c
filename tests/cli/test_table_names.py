"""Two tables whose names have dots: what commands print has both, under names that commands take."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from delta_lake import NOW

from ticdc_codec.errors import ApplyError
from ticdc_codec.tso import time_of
from ticdc_lakehouse.ops.alarm import Thresholds
from ticdc_lakehouse.ops.load import Loaded
from ticdc_lakehouse.ops.status import FeedStatus, Health
from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.planning.published_state import TableState
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName, table_named
from ticdc_local.cli.load import loaded_lines, loaded_object
from ticdc_local.cli.status import checked_status, feed_text
from ticdc_local.cli.verify_source import verified_lines, verified_object
from ticdc_local.report.facts import FeedFacts, TableFacts, WindowFacts
from ticdc_local.report.page import page

TSO = 470613127470252033
ONE, OTHER, PLAIN = TableName("a", "b.c"), TableName("a.b", "c"), TableName("shop", "orders")
TEXTS = {ONE: "`a`.`b.c`", OTHER: "`a.b`.`c`", PLAIN: "shop.orders"}
STOP = StopReason(kind=StopKind.LATE_ROWS, detail="a DDL", needs_override=True)
STATUS = FeedStatus(
    feed="shop",
    landed=9,
    waiting=0,
    reasons={},
    dismissed=0,
    tso=TSO,
    time=time_of(TSO),
    newest_change=None,
    asked_at=time_of(TSO),
    waiting_on=None,
    tables={
        name: TableState(lake_name=f"shop_{number}", stable_id=f"d{number}", version=1, applied_tso=TSO, stop=STOP)
        for number, name in enumerate(TEXTS)
    },
)


def test_status_prints_each_table_by_the_name_that_the_command_table_takes() -> None:
    words = [line.split()[0] for line in feed_text(STATUS).splitlines()[-3:]]
    assert words == [*TEXTS.values()]
    assert [table_named(word, STATUS.tables) for word in words] == [*TEXTS]
    _, text = checked_status(STATUS, Thresholds())
    assert "3 tables are blocked: `a`.`b.c` (a DDL), `a.b`.`c` (a DDL), shop.orders (a DDL)" in text


def test_a_table_alone_has_no_backquotes() -> None:
    assert "  a.b.c  BLOCKED" in feed_text(replace(STATUS, tables={ONE: STATUS.tables[ONE]}))


def test_load_says_how_many_rows_each_of_two_such_tables_got() -> None:
    loaded = Loaded(tso=TSO, rows={ONE: 1, OTHER: 2, PLAIN: 3})
    found = json.loads(json.dumps(loaded_object(loaded)))
    assert found == {"tso": TSO, "rows": {"`a`.`b.c`": 1, "`a.b`.`c`": 2, "shop.orders": 3}}
    assert [line.partition(" as of")[0] for line in loaded_lines(loaded)] == [
        "`a`.`b.c`: 1 row",
        "`a.b`.`c`: 2 rows",
        "shop.orders: 3 rows",
    ]


def test_a_loaded_table_stays_on_its_line_whatever_it_is_called() -> None:
    (line,) = loaded_lines(Loaded(tso=TSO, rows={TableName("shop", "t\n\x1b[2J"): 1}))
    assert line.isprintable()


def test_verify_source_has_the_result_of_each_of_two_such_tables() -> None:
    tables = tuple(TableResult(name=name, tso=TSO, version=1, result=Result.DIFFERENT) for name in TEXTS)
    verified = Verified(feed="shop", tso=TSO, tables=tables)
    assert [line.split()[0] for line in verified_lines(verified)[1:]] == [*TEXTS.values()]
    assert [each["table"] for each in verified_object(verified)["tables"]] == [*TEXTS.values()]  # type: ignore[attr-defined]
    assert verified.different == [*TEXTS.values()]
    with pytest.raises(ApplyError, match=r"ops\.differences: `a`\.`b\.c`, `a\.b`\.`c`, shop\.orders$"):
        verified.raise_if_different()


def test_the_page_has_both_of_two_such_tables_in_its_plot_its_list_and_its_catalogue() -> None:
    window = WindowFacts(
        number=1,
        tso=TSO,
        time=time_of(TSO),
        published_at=NOW,
        row_changes=60,
        landed_at=None,
        decoded_at=None,
    )
    facts = FeedFacts(
        status=STATUS,
        windows=(window,),
        rows={(1, name): rows for name, rows in zip(TEXTS, (17, 19, 23), strict=True)},
        ddls=(),
        tables=tuple(
            TableFacts(name=name, view=state.lake_name, topics=(), source="ddl", columns=())
            for name, state in STATUS.tables.items()
        ),
    )
    html = page("lake", NOW, [facts], lambda _: (Health.ATTENTION, "attention: -"))
    for text, rows in zip(TEXTS.values(), (17, 19, 23), strict=True):
        assert f"{text}, window 1: {rows} row changes" in html
        assert f"<td>{text}</td>" in html
        assert f"<summary>{text}: 0 columns" in html
