"""Gold compared with a running database: what is equal is equal for every type, and every difference is found.

The database is MariaDB, which has the SQL but no TSO; ``make verify-test`` does the same with TiDB itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mariadb
import pytest
from changefeed import as_on_databricks
from every_type import COLUMNS, DECLARED, VALUES, sql_value
from published_lake import published_lake
from pyspark import TaskContext, cloudpickle

from ticdc_codec.errors import ConfigError
from ticdc_codec.tso import first_of
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.folder_lake import FolderLake
from ticdc_lakehouse.gold.live_commits import Commits, restore
from ticdc_lakehouse.gold.overrides import OverrideAction, override
from ticdc_lakehouse.gold.state import commit_window, published
from ticdc_lakehouse.ops.verify import repair as repair_module
from ticdc_lakehouse.ops.verify import verification as verification_module
from ticdc_lakehouse.ops.verify.results import (
    Result,
    TableResult,
    last_verification,
    verification_object,
    verification_text,
)
from ticdc_lakehouse.ops.verify.row_differences import DifferenceKind
from ticdc_lakehouse.ops.verify.verification import VerifySettings, verify
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Published
from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.session import Snapshot, address_of
from ticdc_local.delta_reader import DeltaReader

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

MISSING = mariadb.missing()
for module in (mariadb, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(module)  # Spark's workers do not have the tests
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

CREATE = {
    "typed": f"CREATE TABLE shop.typed ({DECLARED}, PRIMARY KEY (k, t)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "named": "CREATE TABLE shop.named (n varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v varchar(20))",
}
CONFIG = GoldConfig(feed="verified", time_zone="UTC")
TSO = first_of(1_700_000_002_000)
ROWS = 60
"""Of each table; the first rows of ``typed`` have the other text in one column each, the next NULL."""


def typed_row(number: int) -> list[str | None]:
    texts = [other if at == number else text for at, (_, _, text, other) in enumerate(VALUES)]
    if number >= len(VALUES):
        texts[number % len(VALUES)] = None
    return [str(number), f"key {number % 7} ", *texts]


@dataclass(frozen=True)
class Snapshots:
    """Snapshots of MariaDB, whatever the TSO."""

    port: int
    user: str = "root"

    def __call__(self, tso: int) -> Snapshots:
        assert tso in (TSO, TSO - 1)
        return self

    def connect(self) -> Any:
        return mariadb.connect(self.port, self.user)


@dataclass(frozen=True)
class OnlyDriver(Snapshots):
    """A TiDB that answers the driver, and no worker."""

    def connect(self) -> Any:
        if TaskContext.get() is not None:
            raise ConfigError("TiDB does not answer")
        return super().connect()


@dataclass(frozen=True, slots=True)
class Verification:
    lake: Lake
    port: int
    config: GoldConfig = CONFIG

    def execute(self, *statements: str) -> None:
        connection = mariadb.connect(self.port)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    def verify(self, *tables: str, user: str = "root", **settings: Any) -> dict[str, TableResult]:
        chosen = VerifySettings(**{"tables": tables, "chunk_rows": 8, **settings})
        verified = verify(self.lake, self.config, Snapshots(self.port, user), chosen)  # type: ignore[arg-type]
        return {table.name.table: table for table in verified.tables}

    def fill(self) -> None:
        """The database as the feed has it."""
        typed = (
            ", ".join(sql_value(kind, text) for (_, kind, *_), text in zip(COLUMNS, typed_row(i), strict=True))
            for i in range(ROWS)
        )
        named = (f"'Name {i}', 'v{i}'" for i in range(ROWS))
        self.execute(
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop",
            *CREATE.values(),
            *(f"INSERT INTO shop.typed VALUES ({row})" for row in typed),
            *(f"INSERT INTO shop.named VALUES ({row})" for row in named),
        )

    @property
    def state(self) -> Published:
        return published(self.lake, self.config.feed)

    def rows(self, layer: Layer, name: str) -> list[Row]:
        return self.lake.spark.table(self.lake.table(layer, name)).collect()


@pytest.fixture(scope="module")
def verification(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verification]:
    typed, named = tables_from_sql(";".join(CREATE.values()), source="test")
    rows = {typed: [typed_row(i) for i in range(ROWS)], named: [(f"Name {i}", f"v{i}") for i in range(ROWS)]}
    lake = published_lake(spark, tmp_path_factory.mktemp("verified"), CONFIG, rows, TSO)
    with mariadb.mariadb(tmp_path_factory.mktemp("mariadb")) as port:
        yield Verification(lake, port)


@pytest.fixture(autouse=True)
def filled(verification: Verification) -> None:
    verification.fill()


def test_equal_tables_are_equal_for_every_type(verification: Verification) -> None:
    found = verification.verify()
    assert [str(each) for table in found.values() for each in table.differences] == []
    assert {(name, table.result, table.rows) for name, table in found.items()} == {
        ("typed", Result.EQUAL, ROWS),
        ("named", Result.EQUAL, ROWS),
    }
    assert found["typed"].chunks > 4  # ranges of (k, t)
    assert found["named"].chunks == 16  # buckets: no common order of a collation without case


def test_every_changed_cell_is_found(verification: Verification) -> None:
    """In row 50, which has a value in every column but one, each column in turn; and NULL for a value."""
    kinds = {name: kind for name, kind, *_ in VALUES}
    other = {name: sql_value(kinds[name], text) for name, _, _, text in VALUES}
    nulls = {name: 51 + at % 9 for at, name in enumerate(kinds) if name != "nothing"}
    verification.execute(
        *(f"UPDATE shop.typed SET `{name}` = {value} WHERE k = 50" for name, value in other.items()),
        *(f"UPDATE shop.typed SET `{name}` = NULL WHERE k = {row}" for name, row in nulls.items()),
    )
    differences = verification.verify("shop.typed")["typed"].differences
    assert {each.kind for each in differences} == {DifferenceKind.CHANGED}
    assert {each.column for each in differences if each.key == '["50","key 1 "]'} == set(other)
    found = {(each.column, (each.key or "")[2:4]) for each in differences if each.source is None}
    assert found == {(name, str(row)) for name, row in nulls.items()}


def test_missing_and_extra_rows_are_found(verification: Verification) -> None:
    verification.execute(
        "DELETE FROM shop.typed WHERE k IN (0, 33)",
        "INSERT INTO shop.typed (k, t) VALUES (-5, 'before all'), (1000, 'after all'), (33, 'another t')",
        "DELETE FROM shop.named WHERE n = 'name 7'",
        "INSERT INTO shop.named VALUES ('a name', NULL)",
        "UPDATE shop.named SET n = 'NAME 8' WHERE n = 'Name 8'",
        "UPDATE shop.named SET v = '' WHERE n = 'Name 9'",
    )
    found = verification.verify()
    assert {(each.kind, each.key) for each in found["typed"].differences} == {
        (DifferenceKind.EXTRA, '["0","key 0 "]'),
        (DifferenceKind.EXTRA, '["33","key 5 "]'),
        (DifferenceKind.MISSING, '["-5","before all"]'),
        (DifferenceKind.MISSING, '["1000","after all"]'),
        (DifferenceKind.MISSING, '["33","another t"]'),
    }
    assert {(each.kind, each.key, each.source, each.lake) for each in found["named"].differences} == {
        (DifferenceKind.EXTRA, '["Name 7"]', None, None),
        (DifferenceKind.MISSING, '["a name"]', None, None),
        (DifferenceKind.EXTRA, '["Name 8"]', None, None),
        (DifferenceKind.MISSING, '["NAME 8"]', None, None),
        (DifferenceKind.CHANGED, '["Name 9"]', "", "v9"),
    }
    assert (found["typed"].different_rows, found["named"].different_rows) == (5, 5)


def test_more_rows_than_are_listed_are_counted(verification: Verification) -> None:
    rows = ", ".join(f"({number}, 'x')" for number in range(1000, 1100))
    verification.execute(f"INSERT INTO shop.typed (k, t) VALUES {rows}")
    typed = verification.verify("shop.typed")["typed"]
    (many,) = typed.differences
    assert (many.kind, typed.rows) == (DifferenceKind.MANY, ROWS + 100)
    assert 90 <= typed.different_rows <= 100


def test_columns_and_tables_of_one_side_are_found(verification: Verification) -> None:
    verification.execute("ALTER TABLE shop.named ADD COLUMN w int, DROP COLUMN v", "DROP TABLE shop.typed")
    found = verification.verify()
    assert {(each.kind, each.column) for each in found["named"].differences} == {
        (DifferenceKind.COLUMN, "w"),
        (DifferenceKind.COLUMN, "v"),
    }
    assert [each.kind for each in found["typed"].differences] == [DifferenceKind.TABLE]


def test_a_table_without_a_column_in_common_is_different(verification: Verification) -> None:
    verification.execute("ALTER TABLE shop.named CHANGE n a varchar(20), CHANGE v b varchar(20)")
    named = verification.verify("shop.named")["named"]
    assert named.result is Result.DIFFERENT
    assert {(each.kind, each.column) for each in named.differences} == {
        (DifferenceKind.COLUMN, each) for each in "nvab"
    }


def test_differences_are_recorded_and_shown_by_status(verification: Verification) -> None:
    verification.execute("UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'")
    verification.verify()
    written = [row for row in verification.rows(Layer.OPS, "differences") if row["key"] == '["Name 3"]']
    assert [(d["feed"], d["tso"], d["kind"], d["column"], d["source_value"], d["lake_value"]) for d in written] == [
        (CONFIG.feed, TSO, "changed", "v", "other", "v3")
    ]
    said = verification_text(last_verification(verification.lake, CONFIG.feed))
    assert said.endswith("tables 1 equal, 1 different")
    counted = verification_object(last_verification(DeltaReader(verification.lake.root), CONFIG.feed))
    assert counted is not None
    assert (counted["tso"], counted["tables"]) == (TSO, {"equal": 1, "different": 1})
    assert verification_object([]) is None
    assert verification_text(last_verification(DeltaReader(verification.lake.root), CONFIG.feed)) == said
    assert str(TSO) in said


def test_what_cannot_be_compared_is_refused(verification: Verification) -> None:
    with pytest.raises(ConfigError, match=r"table shop\.none: expected one of shop\.named, shop\.typed"):
        verification.verify("shop.none")
    address = address_of(f"mysql://root@127.0.0.1:{verification.port}", lambda scope, key: f"{scope}{key}")
    with pytest.raises(ConfigError, match="expected a TiDB"):
        Snapshot(address=address, tso=TSO).connect()


def test_a_table_that_cannot_be_read_fails_alone(verification: Verification) -> None:
    verification.execute(
        "CREATE OR REPLACE USER reader",
        "GRANT SELECT ON shop.named TO reader",
        "GRANT INSERT ON shop.typed TO reader",  # so that information_schema shows its columns
        "UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'",
    )
    found = verification.verify(user="reader", repair=False)
    assert {name: table.result for name, table in found.items()} == {"typed": Result.FAILED, "named": Result.DIFFERENT}
    assert (found["typed"].tso, "denied" in (found["typed"].detail or "")) == (TSO, True)
    said = verification_text(last_verification(verification.lake, CONFIG.feed))
    assert said.endswith("tables 1 different, 1 failed")
    assert found["typed"].detail in {row["detail"] for row in verification.rows(Layer.OPS, "verifications")}
    verification.execute("REVOKE INSERT ON shop.typed FROM reader")  # information_schema hides the table
    hidden = verification.verify("shop.typed", user="reader", repair=False)["typed"]
    assert (hidden.result, "denied" in (hidden.detail or "")) == (Result.FAILED, True)


@pytest.mark.long
def test_a_damaged_table_fails_alone_and_a_tidb_that_goes_away_repairs_nothing(verification: Verification) -> None:
    """Spark reports both: a missing file, and the error of a worker that reads rows again."""
    typed, named = (verification.state.tables["shop", table].lake_name for table in ("typed", "named"))
    assert isinstance(verification.lake, FolderLake)
    files = [*(verification.lake.root / Layer.LIVE / typed).glob("[!_]*/*.parquet")]
    assert files
    verification.execute("UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'")
    for file in files:
        file.rename(file.with_suffix(".away"))
    try:
        chosen = VerifySettings(chunk_rows=8, repair=True)
        verified = verify(verification.lake, CONFIG, OnlyDriver(verification.port), chosen)  # type: ignore[arg-type]
    finally:
        for file in files:
            file.with_suffix(".away").rename(file)
    results = {table.name.table: table for table in verified.tables}
    assert results["typed"].result is Result.FAILED
    assert any(file.name in (results["typed"].detail or "") for file in files)
    assert (results["named"].result, results["named"].different_rows) == (Result.DIFFERENT, 1)
    assert results["named"].detail == "not repaired: ConfigError: TiDB does not answer"
    recorded = {row["detail"] for row in verification.rows(Layer.OPS, "verifications")}
    assert {result.detail for result in results.values()} <= recorded
    assert {row["v"] for row in verification.rows(Layer.LIVE, named)}.isdisjoint({"other"})


def test_what_cannot_be_repaired_is_still_reported(verification: Verification, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise ConfigError("shop.named: the live table is at version 9")

    monkeypatch.setattr(verification_module, "repair", refused)
    verification.execute("UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'")
    named = verification.verify(repair=True)["named"]
    assert (named.result, named.different_rows) == (Result.DIFFERENT, 1)
    assert named.detail == "not repaired: shop.named: the live table is at version 9"


@pytest.mark.long
def test_a_repair_that_died_is_put_back_by_the_next(
    verification: Verification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gold would leave the table ahead of its published version until it has a change."""
    verification.execute("UPDATE shop.named SET v = 'of the first' WHERE n = 'Name 3'")
    before = verification.state.tables["shop", "named"]
    with monkeypatch.context() as patch:
        patch.setattr(repair_module, "publish_versions", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            verification.verify("shop.named", repair=True)
    verification.fill()
    verification.execute("UPDATE shop.named SET v = 'of the second' WHERE n = 'Name 4'")
    assert verification.verify("shop.named", repair=True)["named"].result is Result.REPAIRED
    after = verification.state.tables["shop", "named"]
    assert after.version == before.version + 3, "MERGE, RESTORE, MERGE"
    shown = {row["n"]: row["v"] for row in verification.rows(Layer.GOLD, after.lake_name)}
    assert (shown["Name 3"], shown["Name 4"]) == ("v3", "of the second")
    verification.fill()
    assert verification.verify("shop.named", repair=True)["named"].result is Result.REPAIRED


@pytest.mark.long
def test_a_table_that_a_dead_repair_put_back_is_repaired_at_once(verification: Verification) -> None:
    """On Databricks each attempt that fails then would postpone the next one by a day."""
    before = verification.state.tables["shop", "named"]
    with closing(Commits(lake=verification.lake, feed=CONFIG.feed, run="dead")) as commits:
        lake = commits.at(TSO)
        lake.spark.sql(f"DELETE FROM {lake.table(Layer.LIVE, before.lake_name)} WHERE n = 'Name 5'")
        restore(lake, before.lake_name, before.version)
    verification.execute("UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'")
    on_databricks = replace(verification, lake=as_on_databricks(verification.lake))
    assert on_databricks.verify("shop.named", repair=True)["named"].result is Result.REPAIRED
    after = verification.state.tables["shop", "named"]
    assert after.version == before.version + 3, "DELETE, RESTORE, MERGE"
    shown = {row["n"]: row["v"] for row in verification.rows(Layer.GOLD, after.lake_name)}
    assert (shown["Name 3"], shown["Name 5"]) == ("other", "v5")
    verification.fill()
    assert verification.verify("shop.named", repair=True)["named"].result is Result.REPAIRED


def test_repair_puts_rows_in_place_in_one_commit(verification: Verification) -> None:
    """The last test: it changes gold."""
    kinds = {name: kind for name, kind, *_ in VALUES}
    verification.execute(
        *(f"UPDATE shop.typed SET `{n}` = {sql_value(kinds[n], text)} WHERE k = 50" for n, _, _, text in VALUES),
        "DELETE FROM shop.typed WHERE k = 20",
        "INSERT INTO shop.typed (k, t, day, kind) VALUES (2000, 'new', '0000-00-00', 'a')",
        "UPDATE shop.named SET v = 'other' WHERE n = 'Name 3'",
        "DELETE FROM shop.named WHERE n = 'Name 4'",
    )
    before = verification.state
    live = verification.lake.table(Layer.LIVE, before.tables["shop", "named"].lake_name)
    verification.lake.spark.sql(f"ALTER TABLE {live} SET TBLPROPERTIES ('team' = 'sales')")  # upkeep is in no way
    found = verification.verify(repair=True)
    assert {name: (table.result, table.different_rows) for name, table in found.items()} == {
        "typed": (Result.REPAIRED, 3),
        "named": (Result.REPAIRED, 2),
    }
    after = verification.state
    assert (after.number, after.tso) == (before.number + 1, TSO)
    assert {name: state.version - before.tables[name].version for name, state in after.tables.items()} == {
        ("shop", "typed"): 1,
        ("shop", "named"): 2,
    }
    again = verification.verify()
    assert [str(each) for table in again.values() for each in table.differences] == []
    shown = {row["n"]: row["v"] for row in verification.rows(Layer.GOLD, after.tables["shop", "named"].lake_name)}
    assert (shown["Name 3"], len(shown)) == ("other", ROWS - 1)
    overrides = {(row["table"], row["action"], row["commit_ts"]) for row in verification.rows(Layer.OPS, "overrides")}
    assert overrides == {("typed", "repair", TSO), ("named", "repair", TSO)}
    repaired = {row["data"] for row in verification.rows(Layer.OPS, "overrides")}
    assert repaired == {state.stable_id for state in after.tables.values()}
    keys = {row["_ticdc_key"] for row in verification.rows(Layer.LIVE, after.tables["shop", "typed"].lake_name)}
    assert '["2000","new"]' in keys

    late = StopReason(kind=StopKind.LATE_ROWS, detail="came late", needs_override=True)
    named = replace(after.tables["shop", "named"], applied_tso=TSO - 1, stop=late)
    blocked = replace(after, tables={**after.tables, TableName("shop", "named"): named})
    commit_window(verification.lake, CONFIG.feed, after, blocked, (), 0)
    assert verification.verify("shop.named", repair=True)["named"].result is Result.FAILED, "its rows are of no TSO"
    with pytest.raises(ConfigError, match="was repaired from TiDB at"):
        override(verification.lake, CONFIG.feed, "shop.named", OverrideAction.RESUME, "its late row is right")


@pytest.mark.long
def test_a_table_renamed_while_it_was_blocked_is_compared_and_repaired_as_itself(verification: Verification) -> None:
    """Its definition has the name of its TSO, which is another table's now."""
    before = verification.state
    typed, named = (before.tables["shop", name] for name in ("typed", "named"))
    names = {TableName("shop", "typed"): replace(named, applied_tso=TSO, stop=None), TableName("shop", "named"): typed}
    commit_window(verification.lake, CONFIG.feed, before, replace(before, tables=names), (), 0)
    assert verification.verify("shop.typed", repair=True)["typed"].result is Result.REPAIRED  # by the test before
    swapped = verification.state

    verification.execute("UPDATE shop.named SET v = 'again' WHERE n = 'Name 3'")
    found = verification.verify("shop.typed", repair=True)["typed"]
    assert (found.result, found.different_rows) == (Result.REPAIRED, 1)
    versions = {name: state.version - swapped.tables[name].version for name, state in verification.state.tables.items()}
    assert versions == {("shop", "typed"): 1, ("shop", "named"): 0}
    assert verification.state.tables["shop", "named"].stable_id == typed.stable_id
