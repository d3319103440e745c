"""``status``, ``quarantine`` and ``sql`` on a lake with a message that does not decode."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from changefeed import Changefeed, Source, at
from dumpling_export import write_metadata, write_table

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import with_time
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.job_parameters import ROOT_CONF
from ticdc_lakehouse.ops.status import FeedStatus, feed_status
from ticdc_local.cli import main, project, quarantine, sql, status
from ticdc_local.cli import open_lake as opened
from ticdc_local.delta_reader import DeltaReader
from ticdc_local.runner.notebook import Surroundings, run_notebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

ORDERS = Source(table="orders")
NOTEBOOKS = Path(__file__).parents[2] / "notebooks" / "ops"


@pytest.fixture
def feed(spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Changefeed:
    """A feed whose lake the commands open."""
    opened.silence_query_log()
    made = Changefeed(spark, broker, tmp_path / "lake", is_new_lake=True)
    for module in (quarantine, sql, project):
        monkeypatch.setattr(module, "feed_files", lambda _: {made.name: made.write_file()})
    for module in (sql, opened):
        monkeypatch.setattr(module, "open_lake", lambda *_, **__: made.lake)
    for module in (quarantine, status):
        monkeypatch.setattr(module, "open_reader", lambda _: DeltaReader(tmp_path / "lake"))
    return made


def without_time(status: FeedStatus) -> FeedStatus:
    return replace(status, asked_at=datetime.min)


def exported(folder: Path, tso: int) -> str:
    """An export with one row."""
    write_metadata(folder, tso)
    write_table(folder, "shop.orders", "CREATE TABLE orders (id BIGINT PRIMARY KEY, v TEXT)", ("id", "v"), [(7, "old")])
    return str(folder)


class OutputOf(Protocol):
    """Runs a command and returns what it prints."""

    def __call__(self, *arguments: str, code: int = 0) -> str: ...


@pytest.fixture
def output_of(capsys: pytest.CaptureFixture[str]) -> OutputOf:
    def output(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        return capsys.readouterr().out

    return output


def test_status_and_quarantine_say_which_command_runs_a_new_feed(feed: Changefeed, output_of: OutputOf) -> None:
    hint = f"bronze has not run for this feed: ticdc-lake run --feed {feed.name}\n"
    assert output_of("status") == f"{feed.name}\n  {hint}"
    assert output_of("quarantine", "list") == f"{feed.name}: {hint}"


def test_poison_message_is_found_shown_and_dismissed(feed: Changefeed, tmp_path: Path, output_of: OutputOf) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"))
    feed.resolve(at(2))
    feed.send(0, b"{not JSON")
    feed.send(0, ORDERS.insert(at(3), 2, "b"))
    feed.resolve(at(4))
    feed.go()

    place = f"{feed.topic}/0/2"
    assert output_of("status", "--check", code=2) == (
        f"{feed.name}: broken: waiting on the quarantined message {place}; 1 message is in quarantine: 1 bad_json\n"
    )
    assert without_time(feed_status(DeltaReader(tmp_path / "lake"), feed.name)) == without_time(
        feed_status(feed.lake, feed.name)
    )
    standing = output_of("status", "--feed", feed.name)
    assert "  decoded      4 messages\n" in standing
    assert "  quarantined  1 message open, 0 dismissed\n" in standing
    assert f"  next         waiting on: the message at {feed.topic}/0/2 is in quarantine" in standing
    assert "  unapplied    0:00:01, from the watermark to the newest change that arrived\n" in standing
    assert "  shop.orders  at the watermark\n" in standing

    listed = output_of("quarantine", "list").splitlines()
    assert listed[0] == f"{feed.name}: 1 open (1 bad_json)"
    assert listed[1].startswith(f"  {place}  any table  bad_json")
    assert output_of("quarantine", "list", "--at", f"{feed.topic}/0/1") == f"{feed.name}: no open message\n"

    assert output_of("quarantine", "replay", code=1) == f"{feed.name}: 0 decoded, 1 still open\n"
    nowhere = output_of("quarantine", "dismiss", "--at", f"{feed.topic}/0/1", "--reason", "no", code=1)
    assert nowhere == f"{feed.name}: no open message at {feed.topic}/0/1\n"
    assert output_of("quarantine", "dismiss", "--at", place, "--reason", "made up") == f"{feed.name}: 1 dismissed\n"
    assert output_of("quarantine", "list") == f"{feed.name}: no open message\n"
    assert "  next         nothing is blocking gold: run the job\n" in output_of("status")

    feed.run.gold()
    caught_up = output_of("status")
    assert "1 dismissed" in caught_up
    assert "  unapplied    0:00:00, " in caught_up
    assert "  next         nothing: caught up\n" in caught_up
    loaded = output_of("load", exported(tmp_path / "export", at(2)), "--feed", feed.name)
    assert loaded == f"shop.orders: 1 row as of {with_time(at(2))}, and what the changefeed sent since\n"
    assert feed.rows("orders") == {2: ("b",), 7: ("old",)}


@pytest.mark.long
def test_notebooks_do_what_the_commands_do(
    feed: Changefeed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"), b"{not JSON")
    feed.resolve(at(2))
    feed.go()
    place = {"feed": feed.name, "catalog": "spark_catalog", "feeds_root": str(feed.folder)}
    place |= {f"{layer}_schema": name for layer, name in feed.lake.schemas.items()}
    place |= {"checkpoint_root": feed.lake.checkpoints}

    def output_of(notebook: str, **widgets: str) -> str:
        session = feed.spark.newSession()  # of this lake: the tests' own session knows another folder
        session.conf.set(ROOT_CONF, str(feed.lake.root))
        run_notebook(NOTEBOOKS / f"{notebook}.py", place | widgets, Surroundings(spark=session))
        return capsys.readouterr().out

    assert "Replayed(decoded=0, still_open=1)" in output_of("replay")
    with pytest.raises(ConfigError, match="topic/partition/offset of each"):
        output_of("dismiss", reason="made up")
    with pytest.raises(ConfigError, match="reason: expected"):
        output_of("dismiss", dismiss="all")
    assert output_of("dismiss", dismiss=f"{feed.topic}/0/1", reason="made up").startswith("1\n")
    feed.apply()
    export = exported(tmp_path / "export", at(1))
    loaded = output_of("load", folder=export, time_zone="", options="--csv-null-value NULL")
    assert loaded.startswith(f"Loaded(tso={at(1)}, rows={{TableName(database='shop', table='orders'): 1}})")
    with pytest.raises(ConfigError, match="action: expected one of skip-ddl, resume, found 'drop'"):
        feed.run.override("shop.orders", "drop", "to see")
    with pytest.raises(ConfigError, match=r"table shop\.orders is not blocked"):
        output_of("override", table="shop.orders", reason="to see")


@pytest.mark.long
def test_sql_makes_the_views_and_stops_a_script_at_its_first_error(
    feed: Changefeed, capfd: pytest.CaptureFixture[str]
) -> None:
    feed.send(0, ORDERS.insert(at(1), 1, "a"), ORDERS.update(at(1, 1), (1, "a"), (1, "ä; ö")))
    feed.resolve(at(2))
    feed.go()
    gold = feed.lake.table(Layer.GOLD, f"{feed.name}_shop_orders")
    changes = feed.lake.table(Layer.SILVER, f"{feed.name}_shop_orders")
    for view in (gold, changes):
        feed.spark.sql(f"DROP VIEW {view}")

    sql_of_lake = ("sql", "--lake", str(feed.lake.root))
    assert (
        main([*sql_of_lake, "-e", f"SELECT v FROM {gold} WHERE v = 'ä; ö'", "-e", f"SELECT count(*) FROM {changes}"])
        == 0
    )
    out = capfd.readouterr().out
    assert "|ä; ö|" in out
    assert "|       2|" in out

    assert main([*sql_of_lake, "-e", "SELECT nothing", "-e", "SELECT 'after'"]) == 1
    out, err = capfd.readouterr()
    assert "after" not in out
    assert err.startswith("error: [UNRESOLVED_COLUMN")
    assert err.endswith("\nnot run: SELECT 'after'\n")
    assert err.count("\n") == 2

    numbers = "SELECT id AS n, IF(id = 1, NULL, 'a|\"b') AS t, X'0aff' AS t FROM range(30)"
    assert main([*sql_of_lake, "-e", numbers, "--format", "csv", "--rows", "2"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-3:] == ["n,t,t", '0,"a|""b",0AFF', "1,,0AFF"]
    assert err == "only the first 2 rows; --rows all prints all\n"
    assert main([*sql_of_lake, "-e", numbers, "--format", "markdown", "--rows", "all"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-32:-28] == ["| n | t | t |", "| --- | --- | --- |", '| 0 | a\\|"b | 0AFF |', "| 1 | NULL | 0AFF |"]
    assert main([*sql_of_lake, "-e", "SELECT repeat('x', 100) AS long", "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1]) == {"long": "x" * 100}
