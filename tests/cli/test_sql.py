"""Statements as they are typed at the prompt."""

from __future__ import annotations

import argparse
import csv
import io
import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.gold.time_travel import AsOf
from ticdc_local.cli import main, project, sql
from ticdc_local.cli.sql import MORE, PROMPT, execute, run_all, typed
from ticdc_local.cli.sql_result import Format, Printing, csv_line, json_line, markdown_lines, table_lines
from ticdc_local.cli.sql_statement import check_reads, complete
from ticdc_local.sql_text import sql_statements

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FEED = "protocol: craft\ntime_zone: UTC\nkafka: {bootstrap_servers: 'k:9092', topics: [t]}\n"
EXPECTED = "expected a query, SHOW, DESCRIBE, EXPLAIN, SET, USE or CREATE TEMPORARY VIEW"


def statements(*lines: str) -> tuple[list[str], list[str]]:
    """The statements that come of these lines, and the prompts that were shown."""
    left, prompts = list(lines), []

    def read_line(prompt: str) -> str | None:
        prompts.append(prompt)
        return left.pop(0) if left else None

    return list(typed(read_line)), prompts


def test_a_statement_ends_with_a_semicolon_on_any_line() -> None:
    assert statements("select 1;", "select", "2 ;") == (["select 1", "select\n2"], [PROMPT, PROMPT, MORE, PROMPT])


def test_two_statements_on_one_line_both_run() -> None:
    assert statements("select 1; select 2;")[0] == ["select 1", "select 2"]


def test_the_end_of_input_ends_the_last_statement() -> None:
    assert statements("select 1")[0] == ["select 1"]


def test_an_interrupt_drops_the_lines_of_a_statement_that_is_not_complete() -> None:
    lines = iter(["select", KeyboardInterrupt(), KeyboardInterrupt(), "select 2;"])
    prompts = []

    def read_line(prompt: str) -> str | None:
        prompts.append(prompt)
        line = next(lines, None)
        if isinstance(line, KeyboardInterrupt):
            raise line
        return line

    found: list[str] = []
    with suppress(KeyboardInterrupt):  # which would end the tests
        found.extend(typed(read_line))
    assert found == ["select 2"]
    assert prompts == [PROMPT, MORE, PROMPT, PROMPT, PROMPT]


@pytest.mark.parametrize("word", ["quit", "QUIT;", " exit ", "exit ;"])
def test_quit_leaves_unless_a_statement_has_begun(word: str) -> None:
    assert statements(word, "select 1;")[0] == []
    assert statements("select", word, ";")[0] != []


@pytest.mark.parametrize("text", ["quit", "exit;\n", " Quit ; select 1"])
def test_quit_ends_a_script_too(text: str) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert run_all(lake, sql_statements(text)) == 0


@pytest.mark.parametrize("text", ["", " ; ", "-- nothing\n;"])
def test_a_script_without_a_statement_ends_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "bronze").mkdir()
    monkeypatch.setattr(sql, "open_lake", None)
    monkeypatch.setattr("sys.stdin", io.StringIO("select 1" if text else ""))
    assert main(["sql", "--lake", str(tmp_path), "-e", text]) == 0, "standard input is not read"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["sql", "--lake", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_script_that_is_not_utf8_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    """In the locale C Python reads other bytes as surrogates."""
    (tmp_path / "bronze").mkdir()
    monkeypatch.setattr(sql, "open_lake", None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"select '\xff'"), "utf-8", errors))
    assert main(["sql", "--lake", str(tmp_path)]) == 2
    assert "standard input: expected SQL in UTF-8, found other bytes" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["select ';", "select 1 -- ;", "select /* ; ", "select `;", "select 1"])
def test_a_semicolon_in_quotes_or_comments_ends_nothing(text: str) -> None:
    assert not complete(text)


def test_a_tso_that_is_too_large_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert not execute(lake, "AS OF shop_craft 9223372036854775808")
    assert capsys.readouterr().err == (
        "error: AS OF: expected a TSO, at most 9223372036854775807, found 9223372036854775808\n"
    )


@pytest.mark.parametrize("found", ["AS OF crm", "as of crm latest", "AS OF crm '2026-11-21 07:36:49'"])
def test_an_as_of_without_feed_and_tso_says_what_is_expected(found: str, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert not execute(lake, found)
    expected = "expected AS OF <feed> <tso>, such as AS OF crm 470613127188971521"
    assert capsys.readouterr().err == f"error: AS OF: {expected}, found {found}\n"


def test_an_as_of_may_have_comments_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    for statement in sql_statements(f"-- then\nAS OF crm {2**63}; /* and */ AS OF crm {2**63} -- again\n;"):
        assert not execute(lake, statement)
    assert capsys.readouterr().err.count(f"error: AS OF: expected a TSO, at most {2**63 - 1}, found {2**63}\n") == 2


@pytest.mark.parametrize("text", ["select ';';", "select 1; ", "-- what\nselect 1;\n", ";"])
def test_a_semicolon_outside_ends_it(text: str) -> None:
    assert complete(text)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM live.crm_shop_orders",
        "-- all of it\ndelete from live.crm_shop_orders",
        "/* SELECT */ UPDATE live.t SET a = 1",
        "MERGE INTO live.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "INSERT INTO live.t SELECT * FROM s",
        "WITH s AS (SELECT 1 AS a) INSERT INTO live.t SELECT * FROM s",
        "WITH s AS (SELECT 1 AS a) INSERT OVERWRITE live.t SELECT * FROM s",
        "WITH s AS (SELECT 1 AS a) UPDATE live.`t u` SET a = 1",
        "FROM s INSERT INTO live.t SELECT * INSERT INTO live.u SELECT *",
        "FROM s\nINSERT INTO live.t SELECT *",
        "CREATE TABLE live.t AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE live.t (a INT)",
        "CREATE VIEW gold.v AS SELECT 1 AS a",
        "DROP TABLE live.t",
        "TRUNCATE TABLE live.t",
        "ALTER TABLE live.t ADD COLUMN b INT",
        "OPTIMIZE live.t",
        "VACUUM live.t RETAIN 0 HOURS",
        "RESTORE TABLE live.t TO VERSION AS OF 0",
        "EXECUTE IMMEDIATE 'DELETE FROM live.t'",
        "BEGIN DELETE FROM live.t; END",
    ],
)
def test_a_statement_that_could_change_a_table_is_not_run(statement: str, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert not execute(lake, statement)
    output = capsys.readouterr().err
    assert output.startswith("error: this prompt only reads; expected a query, ")
    assert f"found {' '.join(statement.split())[:60]}. Tables of your own" in output


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'DELETE FROM t', `insert into` FROM live.t -- UPDATE t SET a = 1",
        "-- which\n(SELECT 1) UNION (SELECT 2)",
        "WITH s AS (SELECT op FROM silver.t WHERE op = 'update') SELECT count(*) FROM s",
        "WITH s AS (SELECT update, merge FROM t) SELECT * FROM s",
        "FROM live.t SELECT a",
        "FROM live.t |> WHERE a > 1",
        "VALUES (1), (2)",
        "TABLE live.t",
        "SHOW TABLES IN gold",
        "DESC HISTORY live.t",
        "DESCRIBE gold.t",
        "EXPLAIN SELECT 1",
        "USE gold",
        "SET spark.sql.session.timeZone = Asia/Shanghai",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "CREATE TEMPORARY VIEW v AS SELECT 1",
        "DROP VIEW v",
        "CACHE TABLE v",
    ],
)
def test_a_statement_that_reads_is_accepted(statement: str) -> None:
    check_reads(statement)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELEC 1", "SELEC: no such statement; did you mean SELECT?"),
        ("(selct 1)", "selct: no such statement; did you mean SELECT?"),
        ("-- which\ndelet from live.t", "delet: no such statement; did you mean DELETE?"),
        ("help", f"help: no such statement; {EXPECTED}"),
        (r"\d t", rf"\d: no such statement; {EXPECTED}"),
    ],
)
def test_a_first_word_of_no_statement_is_reported_as_such(
    statement: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert not execute(lake, statement)
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_table_is_a_box_in_full_width_unless_it_is_cut() -> None:
    rows = [("1", "x" * 50), (None, "two\nlines")]
    assert [*table_lines(["n", "long"], rows, None)] == [
        "+----+" + "-" * 50 + "+",
        "|   n|" + "long".rjust(50) + "|",
        "+----+" + "-" * 50 + "+",
        "|   1|" + "x" * 50 + "|",
        "|NULL|" + "two\\nlines".rjust(50) + "|",
        "+----+" + "-" * 50 + "+",
    ]
    assert [*table_lines(["n"], [("x" * 50,)], 10)][3] == "|xxxxxxx...|"
    assert [*table_lines(["n"], [("x" * 50,)], 2)][3] == "| xx|"


def test_a_table_is_straight_with_characters_of_two_columns_and_obeys_none() -> None:
    rows = [("东京", "a\tb"), ("Bonn", "\x1b[2J\x9b")]
    assert [*table_lines(["city", "text"], rows, None)][3:5] == ["|东京|       a\\tb|", "|Bonn|\\x1b[2J\\x9b|"]
    assert [*table_lines(["city"], [("东京东京",)], 6)][3] == "|东 ...|"


def test_csv_tells_null_from_an_empty_text() -> None:
    rows = [("a,b", None, ""), ('say "x"', "two\nlines", " 东京\r")]
    lines = [csv_line(row) for row in rows]
    assert lines == ['"a,b",,""', '"say ""x""","two\nlines"," 东京\r"']
    assert [tuple(row) for row in csv.reader(lines)] == [("a,b", "", ""), rows[1]]
    assert csv_line([None]) == '""', "an empty line is no row to most readers"


def test_json_has_numbers_and_booleans_and_each_column() -> None:
    types = (LongType(), DoubleType(), DoubleType(), BooleanType(), LongType(), StringType())
    fields = [StructField(name, type_) for name, type_ in zip(("n", "d", "x", "b", "z", "n"), types, strict=True)]
    line = json_line(fields, ("463267587767402496", "1.0E-5", "NaN", "true", None, 'a"\n东'))
    assert line == '{"n":463267587767402496,"d":1.0E-5,"x":"NaN","b":true,"z":null,"n":"a\\"\\n东"}'
    assert json.loads(line)["d"] == 1e-5


def test_markdown_has_a_line_a_row() -> None:
    assert [*markdown_lines(["a|b"], iter([("1\r\n2\r3\n4",), (None,)]))] == [
        "| a\\|b |", "| --- |", "| 1<br>2<br>3<br>4 |", "| NULL |"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "is_script", "expected"),
    [
        ([], True, Printing(Format.TABLE, 20, None)),
        ([], False, Printing(Format.TABLE, 20, 40, pages=True)),
        (["--rows", "all"], True, Printing(Format.TABLE, None, None)),
        (["--format", "csv"], True, Printing(Format.CSV, None, None)),
        (["--json", "--rows", "5"], True, Printing(Format.JSON, 5, None)),
        (["--width", "9"], False, Printing(Format.TABLE, 20, 9, pages=True)),
    ],
)
def test_all_rows_are_printed_but_of_a_table(arguments: list[str], is_script: bool, expected: Printing) -> None:
    parser = argparse.ArgumentParser()
    sql.arguments(parser)
    assert sql.printing_of(parser.parse_args(arguments), is_script=is_script) == expected


def test_what_one_statement_of_the_command_line_ends_with_takes_nothing_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bronze").mkdir()
    given: list[str] = []
    monkeypatch.setattr(sql, "open_lake", lambda *_, **__: None)
    monkeypatch.setattr(sql, "refresh_views", lambda *_: {})
    monkeypatch.setattr(sql, "run_all", lambda _, statements, *__: given.extend(statements) or 0)
    script = "BEGIN SELECT 2; SELECT 3; END"
    assert (
        main(["sql", "--lake", str(tmp_path), "-e", "SELECT 1 -- one", "-e", script, "-e", "SELECT 4; SELECT 5;"]) == 0
    )
    assert given == ["SELECT 1 -- one", script, "SELECT 4", "SELECT 5"]


def test_the_statements_after_one_that_fails_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert run_all(lake, iter([f"AS OF f {2**63}", "SELECT\n 2", "SELECT 3", "quit", "SELECT 4"])) == 1
    assert capsys.readouterr().err.splitlines()[1:] == ["not run: SELECT 2", "not run: SELECT 3"]


def test_a_script_stops_where_the_views_of_renamed_tables_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks before each statement, with what the views show by then."""
    (tmp_path / "bronze").mkdir()
    shown = iter([{"crm": "renamed"}, None])
    seen, ran = [], []

    def follow(_options: object, _lake: object, feeds: dict[str, str]) -> object:
        seen.append(feeds)
        return next(shown)

    monkeypatch.setattr(sql, "open_lake", lambda *_, **__: None)
    monkeypatch.setattr(sql, "refresh_views", lambda *_: {"crm": "first"})
    monkeypatch.setattr(sql, "follow_renames", follow)
    monkeypatch.setattr(sql, "execute", lambda _, statement, *__: ran.append(statement) or True)
    script = "SELECT 1; SELECT\n 2; SELECT 3; quit; SELECT 4"
    assert main(["sql", "--lake", str(tmp_path), "-e", script]) == 1
    assert ran == ["SELECT 1"]
    assert seen == [{"crm": "first"}, {"crm": "renamed"}]
    assert capsys.readouterr().err.splitlines()[-2:] == ["not run: SELECT 2", "not run: SELECT 3"]


def test_an_as_of_drops_the_views_of_tables_that_did_not_exist_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `SELECT` reads the rows of a later time under their names."""
    views: set[str] = set()
    frames = {name: SimpleNamespace(createOrReplaceTempView=views.add) for name in ("crm.a", "crm.b", "hr.c")}

    def as_of(_spark: object, feed: str, tso: int, **_: object) -> AsOf:
        names = {"crm": ["crm.a", "crm.b"][:tso], "hr": ["hr.c"]}[feed]
        behind = {"crm.a": 470613127188971521} if tso == 1 else {}
        texts = {name: name.replace(".", "_") for name in names}
        tables = {name: frames[name] for name in names}
        return AsOf(feed=feed, tso=tso, time=NOW, tables=tables, behind=behind, names=texts)

    monkeypatch.setattr(sql, "as_of", as_of)
    spark = SimpleNamespace(catalog=SimpleNamespace(dropTempView=views.remove))
    lake = Lake(spark=spark, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]
    assert run_all(lake, iter(["AS OF crm 2", "AS OF hr 2", "AS OF crm 1"])) == 0
    assert views == {"crm_a", "hr_c"}
    first, _, last = capsys.readouterr().out.splitlines()
    assert first == "crm as of 2026-11-21 08:00:00 UTC (TSO 2); read these without the gold. prefix: crm_a, crm_b"
    assert last == (
        "crm as of 2026-11-21 08:00:00 UTC (TSO 1); read these without the gold. prefix: crm_a; behind: crm.a "
        "(as of TSO 470613127188971521 (2026-11-21 07:36:49.455 UTC))"
    )


def test_the_command_that_finishes_what_a_run_left_is_for_the_same_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "feed_files", lambda _: {"crm": tmp_path / "crm.yml"})
    monkeypatch.setattr(sql, "open_reader", lambda _: None)
    monkeypatch.setattr(sql, "published_feeds", lambda _: ["crm"])
    monkeypatch.setattr(sql, "published", lambda *_: SimpleNamespace(tables={}))
    monkeypatch.setattr(sql, "has_published_names", lambda *_: False)
    for module in (sql.feed_views, sql.events_table):
        monkeypatch.setattr(module, "create_views", lambda *_: None)
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    sql.refresh_views(argparse.Namespace(project=Path(), lake=Path("else where")), lake)
    assert capsys.readouterr().err.endswith("finishes that: ticdc-lake run --feed crm --lake 'else where'\n")


def test_a_feed_whose_file_is_wrong_keeps_no_other_from_being_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crm.yml").write_text("protocol: craft\n")
    (tmp_path / "hr.yml").write_text(FEED)
    monkeypatch.setattr(sql, "open_reader", lambda _: None)
    monkeypatch.setattr(sql, "published_feeds", lambda _: ["crm", "hr"])
    monkeypatch.setattr(sql, "published", lambda *_: SimpleNamespace(tables={}))
    for module in (sql, project):
        monkeypatch.setattr(module, "feed_files", lambda _: {feed: tmp_path / f"{feed}.yml" for feed in ("crm", "hr")})
    for module in (sql.feed_views, sql.events_table):
        monkeypatch.setattr(module, "create_views", lambda *_: None)
    shown = []
    monkeypatch.setattr(sql.views, "show", lambda _lake, config, _now: shown.append(config.feed))
    lake = Lake(spark=None, catalog="c", schemas={}, checkpoints="")  # type: ignore[arg-type]  # it is not asked
    assert [*sql.refresh_views(argparse.Namespace(project=Path(), lake=None), lake)] == ["crm", "hr"]
    assert shown == ["hr"]
    assert capsys.readouterr().err.startswith("crm: its views are not made: ")
