"""What is found wrong with an export's folder before anything is read, on this machine and without Spark."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dumpling_export import write_metadata, write_table

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.ops.dumpling.dialect import DumplingOptions
from ticdc_lakehouse.ops.dumpling.export import Export, read_export
from ticdc_lakehouse.ops.dumpling.folder import LocalFolder
from ticdc_lakehouse.ops.load import Loaded
from ticdc_lakehouse.ops.load_options import LoadOptions, read_load_options
from ticdc_lakehouse.ops.loadable import loadable_tables
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.sql.instant import backward_shifts
from ticdc_local.cli import load, main

ROOT = Path(__file__).parents[2]
CREATE = "CREATE TABLE `t` (`id` BIGINT PRIMARY KEY, `v` VARCHAR(9))"
WITHOUT_KEY = "CREATE TABLE `n` (`id` BIGINT)"
WITH_STORED = "CREATE TABLE `g` (\n  `id` INT PRIMARY KEY,\n  `s` INT GENERATED ALWAYS AS (`id` + 1) STORED\n)"
WITH_TIME = "CREATE TABLE `m` (`id` INT PRIMARY KEY, `at` TIMESTAMP NULL)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_metadata(tmp_path, 1 << 40)
    write_table(tmp_path, "shop.t", CREATE, ("id", "v"), [(1, "x")])
    return tmp_path


def read(folder: Path, options: DumplingOptions | None = None) -> Export:
    return read_export(LocalFolder(path=str(folder)), options or DumplingOptions())


def loadable(folder: Path, *options: str) -> list[str]:
    given = read_load_options(" ".join(options))
    export = read(folder, given.dumpling)
    return [str(name) for name in loadable_tables(export, GoldConfig(feed="f", time_zone="UTC"), given)]


def test_what_is_no_table_of_an_export_is_passed_over(folder: Path) -> None:
    write_table(folder, "shop.v", "CREATE TABLE `v`(\n`id` int\n)ENGINE=MyISAM", ())
    (folder / "shop.v-schema-view.sql").write_text("CREATE VIEW v AS SELECT 1;")
    (folder / "shop.s-schema-sequence.sql").write_text("CREATE SEQUENCE s;")
    (folder / "shop-schema-create.sql").write_text("CREATE DATABASE shop;")
    (folder / "near-placement-policy-create.sql").write_text("CREATE PLACEMENT POLICY `near` FOLLOWERS=4;")
    (folder / "far%2E-placement-policy-create.sql.gz").write_bytes(gzip.compress(b"CREATE PLACEMENT POLICY `far.`;"))
    assert loadable(folder) == ["shop.t"]


def test_a_backslash_in_the_names_of_an_enum_is_one_backslash(folder: Path) -> None:
    """SHOW CREATE TABLE prints it as it is."""
    columns = "  `id` int NOT NULL,\n  `e` enum('a\\b','k\\l') DEFAULT NULL,\n  `s` set('\\','x') DEFAULT NULL"
    create = f"CREATE TABLE `b` (\n{columns},\n  PRIMARY KEY (`id`)\n)"
    write_table(folder, "shop.b", create, ("id", "e", "s"), [(1, "a\\b", "\\")])
    elements = [column.type.elements for column in read(folder).tables[TableName("shop", "b")].definition.columns]
    assert elements == [(), ("a\\b", "k\\l"), ("\\", "x")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("shop.t.000000001.sql", "", "files in CSV and in SQL"),
        ("t.shop.000000000.csv", "", "--output-filename-template"),
        ("t.csv", "", "--output-filename-template"),
        ("shop.t.000000001.csv", "", r"shop\.t\.000000001\.csv holds nothing"),
        ("shop.u.000000000.csv", "", r"rows of shop\.u without its CREATE TABLE"),
        ("_x.u-schema.sql", "CREATE TABLE u (id INT)", "Spark does not read files whose names begin with _"),
        ("shop.u-schema.sql", "CREATE TABLE w (id INT)", r"expected CREATE TABLE of shop\.u alone, found shop\.w"),
        ("shop.u-schema.sql.gz", "CREATE", "cannot be decompressed"),
        ("metadata", "", "the export has not finished"),
        ("shop.t.000000000.csv", "1,2\n", 'expected the header "id","v", found 1,2: give load .*--no-header'),
    ],
)
def test_a_file_that_an_export_cannot_have(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        loadable(folder)


def test_folder_that_is_missing_or_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="found no file metadata"):
        read(tmp_path)
    write_metadata(tmp_path, 1 << 40)
    with pytest.raises(ConfigError, match="expected tables"):
        read(tmp_path)
    with pytest.raises(ConfigError, match=r"--output-filename-template \{\{\.Table\}\}: expected"):
        read(tmp_path, DumplingOptions(output_filename_template="{{.Table}}"))


@pytest.mark.parametrize("name", ["shop.t.000000000.csv.gz", "deeper/shop.t-schema.sql"])
def test_files_of_an_export_in_subfolders_are_refused(folder: Path, name: str) -> None:
    """Without their data files tables would be empty."""
    file = folder / "data" / name
    file.parent.mkdir(parents=True)
    (file.parent / "notes.txt").touch()
    assert loadable(folder) == ["shop.t"]
    file.touch()
    with pytest.raises(ConfigError, match=f"subfolders are not read, and {file} is in one"):
        read(folder)


def write_named(folder: Path, template: str, *names: tuple[str, str]) -> None:
    """An export whose tables have one row each, its files named by a template; no rows for tables without a file."""
    for database, table in names:
        write_table(folder, f"{database}.{table}", f"CREATE TABLE `{table}` (id INT)", ("id",))
        file = template.replace("{{fn .DB}}", database).replace("{{fn .Table}}", table).replace("{{.Index}}", "0" * 9)
        (folder / f"{file}.csv").write_text('"id"\n1\n')


@pytest.mark.parametrize("separator", ["_", "-", "."])
@pytest.mark.parametrize("order", ["{{fn .DB}}%{{fn .Table}}%{{.Index}}", "{{.Index}}%{{fn .Table}}%{{fn .DB}}"])
def test_names_of_tables_may_have_what_a_template_puts_between_them(tmp_path: Path, separator: str, order: str) -> None:
    template = order.replace("%", separator)
    names = ("shop", "order_items"), ("shop-eu", "orders"), ("x_y", "a-b_c")
    write_metadata(tmp_path, 1 << 40)
    write_named(tmp_path, template, *names)
    tables = read(tmp_path, DumplingOptions(output_filename_template=template)).tables
    assert {name: len(table.files) for name, table in tables.items()} == {TableName(*name): 1 for name in names}
    for (database, name), table in tables.items():
        assert database in table.files[0]
        assert name in table.files[0]


def test_a_file_that_may_be_that_of_two_tables_is_refused(tmp_path: Path) -> None:
    template = "{{fn .DB}}-{{fn .Table}}-{{.Index}}"
    write_metadata(tmp_path, 1 << 40)
    write_named(tmp_path, template, ("shop", "a-b"))
    write_table(tmp_path, "shop-a.b", "CREATE TABLE `b` (id INT)", ("id",))
    with pytest.raises(
        ConfigError, match=r"shop-a-b-000000000\.csv: files of shop\S* and shop\S* have this name: export w"
    ):
        read(tmp_path, DumplingOptions(output_filename_template=template))


@pytest.mark.parametrize(
    "template", ["{{fn .DB}}/{{fn .Table}}.{{.Index}}", "data/{{fn .DB}}.{{fn .Table}}.{{.Index}}"]
)
def test_a_template_with_subfolders_is_refused(folder: Path, template: str) -> None:
    with pytest.raises(ConfigError, match="subfolders are not read: export without a /"):
        read(folder, DumplingOptions(output_filename_template=template))


def test_a_folder_that_spark_takes_for_a_pattern(folder: Path) -> None:
    renamed = folder.rename(folder.parent / "export[1]")
    with pytest.raises(ConfigError, match=r"export\[1\]: Spark takes \[ in a path for a pattern"):
        read(renamed)


def test_spark_is_given_the_whole_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of ``export-2026-11-23T10:00:00Z``, a name as Dumpling makes it, Spark would take what is before a colon for the
    scheme of a URI."""

    class Opened:
        def load(self, path: str, _given: LoadOptions) -> Loaded:
            return Loaded(tso=1, rows={TableName(path, "t"): 1})

    renamed = folder.rename(folder.parent / "export-2026-11-23T10:00:00Z")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(load, "feed_run", lambda *_: Opened())
    assert main(["load", f"{renamed.name}/", "--feed", "shop_craft", "--project", str(ROOT), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {f"{renamed}.t": 1}


def test_a_name_with_a_quote_in_insert_statements_without_escapes(folder: Path) -> None:
    (folder / "shop.t.000000000.csv").unlink()
    write_table(folder, "shop.it's", "CREATE TABLE `it's` (id INT PRIMARY KEY)", ())
    (folder / "shop.it's.000000000.sql").write_text("INSERT INTO `it's` VALUES\n(1);\n")
    assert loadable(folder) == ["shop.it's", "shop.t"]
    with pytest.raises(ConfigError, match=r"table shop\.it's: the name it's has a quote"):
        loadable(folder, "--escape-backslash=false")
    assert loadable(folder, "--escape-backslash=false", "--table", "shop.t") == ["shop.t"]


def test_all_tables_that_have_no_place_in_gold_are_named_at_once(folder: Path) -> None:
    write_table(folder, "shop.n", WITHOUT_KEY, ())
    write_table(folder, "shop.g", WITH_STORED, ())
    write_table(folder, "shop.m", WITH_TIME, ())
    with pytest.raises(ConfigError) as error:
        loadable(folder)
    g, m, n = str(error.value).splitlines()
    assert "table shop.g: column s is generated and stored" in g
    assert "table shop.m: column at is a TIMESTAMP: give the time zone" in m
    assert n.endswith(
        "table shop.n has no handle key: its rows cannot be identified; load the others alone with --table"
    )
    assert loadable(folder, "--table", "SHOP.T", "--table", "shop.m", "--time-zone UTC") == ["shop.t", "shop.m"]
    assert loadable(folder, "--table", "SHOP.T", "--table", "shop.t") == ["shop.t"]
    with pytest.raises(ConfigError, match=r"--table shop\.x: expected one of shop\.g, shop\.m"):
        loadable(folder, "--table", "shop.x")


def test_a_chunk_whose_files_have_a_gap_lacks_one(folder: Path) -> None:
    """``-r`` with ``-F``: a chunk without rows has no file, a chunk's files are numbered without gaps."""
    whole = (folder / "shop.t.000000000.csv").rename(folder / "shop.t.0000000000000.csv").read_bytes()
    for number in ("0000000020000", "0000000020001", "0000000020002", "000000004"):
        (folder / f"shop.t.{number}.csv").write_bytes(whole)
    assert loadable(folder) == ["shop.t"]
    (folder / "shop.t.0000000020001.csv").unlink()
    with pytest.raises(ConfigError, match=r"table shop\.t has no file numbered 0000000020001: copy the export again"):
        loadable(folder)
    (folder / "shop.t.0000000020000.csv").unlink()
    with pytest.raises(ConfigError, match="has no file numbered 0000000020000"):
        loadable(folder)


def test_a_compressed_file_without_content_shows_no_header(folder: Path) -> None:
    (folder / "shop.t.000000000.csv").unlink()
    (folder / "shop.t.000000001.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ConfigError, match=r"shop\.t\.000000001\.csv\.gz holds nothing"):
        loadable(folder)


def test_definitions_that_cannot_be_read_count_only_for_tables_to_load(folder: Path) -> None:
    write_table(folder, "shop.u", "CREATE TABLE `u` (`id` BIGINT PRIMARY KEY, `v` GEOGRAPHY)", ("id", "v"), [(1, "x")])
    write_table(folder, "shop.w", "CREATE", ())
    (folder / "shop.x-schema.sql").write_bytes(b"\xff")
    with pytest.raises(ConfigError) as error:
        loadable(folder)
    u, w, x = str(error.value).splitlines()
    assert "shop.u-schema.sql, line 3: " in u
    assert "shop.w-schema.sql, line 3: " in w
    assert "shop.x-schema.sql: expected UTF-8" in x
    assert x.endswith("; load the others alone with --table")
    assert loadable(folder, "--table", "shop.t") == ["shop.t"]
    config = GoldConfig(feed="f", time_zone="UTC", matches=lambda _database, table: table == "t")
    assert loadable_tables(read(folder), config, LoadOptions()) == [("shop", "t")]


def test_a_temporary_table_has_no_rows_to_load(folder: Path) -> None:
    create = "CREATE GLOBAL TEMPORARY TABLE `g` (\n  `id` int NOT NULL\n) ENGINE=InnoDB ON COMMIT DELETE ROWS"
    write_table(folder, "shop.g", create, ())
    assert loadable(folder) == ["shop.t"]


def test_an_export_without_any_row_is_loaded_only_if_it_is_meant(folder: Path) -> None:
    """``--no-data`` writes the same files."""
    (folder / "shop.t.000000000.csv").unlink()
    with pytest.raises(ConfigError, match=r"no table has a file of rows: .* --no-data, or .* --all-empty"):
        loadable(folder)
    assert loadable(folder, "--all-empty") == ["shop.t"]


def test_options_of_the_notebook_are_those_of_the_command() -> None:
    options = read_load_options("--no-header --csv-separator '\t' --escape-backslash=false", "Asia/Tokyo")
    dumpling = DumplingOptions(no_header=True, csv_separator="\t", escape_backslash=False)
    assert options == LoadOptions(time_zone="Asia/Tokyo", dumpling=dumpling)
    for text in ("--nowhere", "--csv-output-dialect teradata", "--csv-separator '", "--csv ;", "--t shop.orders"):
        with pytest.raises(ConfigError, match="options: "):
            read_load_options(text)


@pytest.mark.parametrize(
    ("zone", "seconds"),
    [("UTC", ()), ("Asia/Tokyo", ()), ("America/New_York", (3600,)), ("Australia/Lord_Howe", (1800, 3600))],
)
def test_backward_shifts_of_a_zone_are_found(zone: str, seconds: tuple[int, ...]) -> None:
    assert backward_shifts(zone) == seconds


def test_the_command_refuses_a_folder_before_spark_starts(tmp_path: Path) -> None:
    """One line, no traceback, no session."""
    lake = str(tmp_path / "lake")
    arguments = ["load", str(tmp_path), "--feed", "shop_craft", "--project", str(ROOT), "--lake", lake]
    code = "import sys, pyspark.sql as sql; sql.SparkSession.builder = None; from ticdc_local.cli import main"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(main())", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    message = f"ticdc-lake load: {tmp_path}: expected an export of Dumpling's, found no file metadata\n"
    assert done.stderr == message


@pytest.mark.parametrize(
    ("given", "hours"),
    [("+08:00", 8), ("-05:00", -5), ("+00:00", 0), ("-00:00", 0), ("+14:00", 14), ("Asia/Shanghai", 8)],
)
def test_a_time_zone_may_be_hours_from_utc(given: str, hours: int) -> None:
    zone = read_load_options(f"--time-zone={given}").time_zone
    assert datetime(2024, 1, 1, tzinfo=ZoneInfo(str(zone))).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("given", ["+05:30", "+15:00", "SYSTEM"])
def test_other_time_zones_are_refused_by_name(folder: Path, given: str) -> None:
    with pytest.raises(ConfigError, match=r"expected UTC, a name such as Asia/Shanghai or hours as \+08:00, found"):
        loadable(folder, f"--time-zone {given}")
