"""Checks in a workspace, one by one, whether this package can work there: what cannot be known from outside.

Its own tables in ops and live, its view in gold and files below the checkpoints' folder are dropped at the end. On a
laptop the checks run that apply there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ticdc_codec.errors import ConfigError, LakehouseError
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse import stream_checkpoint
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.commit_sessions import committing, release
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.gold.alter_table import alter
from ticdc_lakehouse.gold.live_commits import UPKEEP, restore
from ticdc_lakehouse.gold.live_table import create_live_table, tags_sql, update_comment
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.steps import AlterRows
from ticdc_lakehouse.planning.window import statements_of
from ticdc_lakehouse.schema.change import change
from ticdc_lakehouse.schema.definition import ColumnDefinition, Table
from ticdc_lakehouse.schema.statement import AlterTable
from ticdc_lakehouse.sql.text import literal, quoted
from ticdc_lakehouse.sql.typed_columns import image_sql
from ticdc_lakehouse.tidb.session import Secret

CANARY = "given"
"""What the job passes to the notebook as parameter of the job and of the nested task."""
_METADATA = '{"feed": "selftest", "tso": 1, "run": ""}'
_COLUMNS = tuple(ColumnDefinition(name=name, type=parse_type("int")) for name in ("id", "v"))
_TABLE = Table(database="selftest", table="selftest", columns=_COLUMNS, key=("id",))
_GOLD = GoldConfig(feed="selftest", time_zone="UTC")


class Outcome(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check."""

    check: str
    outcome: Outcome
    detail: str
    """What was found."""
    meaning: str
    """What follows from a failure, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The lake and the job parameters that the checks use."""

    lake: Lake
    principal: str = ""
    """A group to grant to and revoke from; empty: not tried."""
    secret: str = ""
    """``scope/key`` of a secret that feeds refer to; empty: not tried."""
    read_secret: Secret | None = None
    job_parameter: str = ""
    nested_parameter: str = ""
    name: str = ""
    """Name of the tables and the view that the checks use."""

    @property
    def table(self) -> str:
        """The quoted name of the table."""
        return self.lake.table(Layer.OPS, self.name)

    @property
    def live(self) -> str:
        """The quoted name of the live table."""
        return self.lake.table(Layer.LIVE, self.name)

    @property
    def view(self) -> str:
        """The quoted name of the view of the table, which is in another schema as gold's views are."""
        return self.lake.table(Layer.GOLD, self.name)

    @property
    def folder(self) -> Path:
        """A folder of files."""
        return Path(self.lake.checkpoint(self.name))


# The last two are of a Spark client that lacks something.
_FAILURES = (PySparkException, Py4JError, OSError, ValueError, LakehouseError, AttributeError, TypeError)


class _NotHereError(Exception):
    """A check that does not apply here; the text says why."""


def selftest(env: Environment) -> Iterator[CheckResult]:
    """Runs every check, one after the other, and yields the results."""
    given = replace(env, name=f"selftest_{uuid4().hex[:12]}")
    try:
        for check, (run, meaning) in _CHECKS.items():
            yield _result(check, run, meaning, given)
    finally:
        with suppress(*_FAILURES):  # a check has said what is not allowed
            given.lake.spark.sql(f"DROP VIEW IF EXISTS {given.view}")
        for layer, name in ((Layer.LIVE, given.name), (Layer.LIVE, _renamed(given)), (Layer.OPS, given.name)):
            with suppress(*_FAILURES):
                given.lake.drop(layer, name)
        rmtree(given.folder, ignore_errors=True)


def _result(check: str, run: Callable[[Environment], str], meaning: str, env: Environment) -> CheckResult:
    try:
        outcome, detail = Outcome.OK, run(env)
    except _NotHereError as reason:
        outcome, detail = Outcome.SKIPPED, str(reason)
    except _FAILURES as error:
        outcome, detail = Outcome.FAILED, first_line(error)
    return CheckResult(check=check, outcome=outcome, detail=detail, meaning=meaning)


def _expect(found: object, expected: object) -> None:
    if found != expected:
        raise ConfigError(f"expected {expected!r}, found {found!r}")


def _identity(env: Environment) -> str:
    row = env.lake.spark.sql("SELECT current_user(), version()").first()
    assert row is not None
    return f"{row[0]}, Spark {row[1].split()[0]}"


def _session_settings(env: Environment) -> str:
    """Checks what the settings are for that `Lake.register` sets where it may."""
    text = "${spark.sql.session.timeZone}"
    row = env.lake.spark.sql(f"SELECT '{text}', typeof(TIMESTAMP'2026-01-01 00:00:00')").first()
    assert row is not None
    _expect(tuple(row), (text, "timestamp"))
    return "texts are taken as they are, times have a zone"


def _commit_metadata(env: Environment) -> str:
    env.lake.create(Layer.OPS, env.name, "id BIGINT COMMENT 'a number'", comment="Of the selftest")
    own = committing(env.lake, _METADATA, env.lake.spark.conf.getAll)
    try:
        own.spark.sql(f"INSERT INTO {env.table} VALUES (1)")
    finally:
        release(env.lake, own)
    newest = env.lake.history(env.table, 1).collect()[0]
    _expect(newest["userMetadata"], _METADATA)
    return f"version {newest['version']} has it"


_NEW_COMMENT = "Of the selftest, altered"


def _pinned_view(env: Environment) -> str:
    version = env.lake.version(env.table)
    query = f"SELECT * FROM {env.table} VERSION AS OF {version}"
    env.lake.alter_view(Layer.GOLD, env.name, query, comment="Of the selftest")
    env.lake.spark.sql(f"INSERT INTO {env.table} VALUES (2)")
    _expect(_count(env), 1)
    query = f"SELECT * FROM {env.table} VERSION AS OF {version + 1}"
    env.lake.alter_view(Layer.GOLD, env.name, query, comment=_NEW_COMMENT)
    _expect(_count(env), 2)
    # With most windows only the version changes.
    env.lake.alter_view(Layer.GOLD, env.name, query, comment=_NEW_COMMENT, same_comment=True)
    described = {row["col_name"]: row["data_type"] for row in env.lake.rows(f"DESCRIBE EXTENDED {env.view}")}
    _expect(described.get("Comment"), _NEW_COMMENT)
    return f"stays at version {version} until it is altered"


def _count(env: Environment) -> int:
    return env.lake.spark.table(env.view).count()


def _kept_grants(env: Environment) -> str:
    if not env.lake.on_databricks:
        raise _NotHereError("a laptop has no privileges")
    if not env.principal:
        raise _NotHereError("parameter principal is empty")
    env.lake.spark.sql(f"GRANT SELECT ON VIEW {env.view} TO {quoted(env.principal)}")
    version = env.lake.version(env.table)
    env.lake.spark.sql(f"ALTER VIEW {env.view} AS SELECT * FROM {env.table} VERSION AS OF {version}")
    # Unity Catalog also lists what the view inherits from its schema and catalog.
    grants = env.lake.rows(f"SHOW GRANTS {quoted(env.principal)} ON VIEW {env.view}")
    inherited = ("SCHEMA", "CATALOG", "METASTORE")
    _expect(any("SELECT" in row.values() and not {*row.values()} & {*inherited} for row in grants), True)
    return f"{env.principal} still has SELECT"


def _tags(env: Environment) -> str:
    if not env.lake.on_databricks:
        raise _NotHereError("a laptop has no tags")
    env.lake.spark.sql(tags_sql(env.table, "selftest", _TABLE))
    return "feed and database"


def _live_table(env: Environment) -> str:
    """Does to a live table what gold and maintenance may do to one."""
    create_live_table(env.lake, env.name, _TABLE, stable_id=env.name, config=_GOLD)
    env.lake.spark.sql(f"INSERT INTO {env.live} (id) SELECT CAST(id AS INT) FROM range(3)")
    filled = env.lake.version(env.live)
    table = _TABLE
    for query in ("ADD COLUMN `a b` DATETIME", "RENAME COLUMN `a b` TO c", "MODIFY COLUMN v BIGINT"):
        table = _altered(env, table, query)
    env.lake.spark.sql(f"DELETE FROM {env.live} WHERE id = 1")
    if env.lake.on_databricks:  # on a laptop the name of a live table is a folder's
        for names in ({env.name: _renamed(env)}, {_renamed(env): env.name}):
            env.lake.begin_renames(names)
    restore(env.lake, env.name, filled)
    _expect(env.lake.spark.table(env.live).count(), 3)
    return f"altered and restored in {env.lake.version(env.live)} versions"


def _renamed(env: Environment) -> str:
    return f"{env.name}_renamed"


def _altered(env: Environment, table: Table, actions: str) -> Table:
    """Lets gold follow an ALTER TABLE. Returns the table as it is then."""
    [statement] = statements_of(f"ALTER TABLE selftest {actions}", table.database, table.table)
    assert isinstance(statement, AlterTable)
    changed = change(table, statement)
    step = AlterRows(commit_ts=1, query=actions, effects=changed.effects, table=changed.table)
    alter(env.lake, _GOLD, env.name, step, env.lake.version(env.live))
    return changed.table


def _upkeep(env: Environment) -> str:
    before = env.lake.version(env.live)
    for _ in range(2):
        env.lake.spark.sql(f"ALTER TABLE {env.live} SET TBLPROPERTIES ('ticdc.selftest' = '1')")
    update_comment(env.lake, _GOLD, env.name, _TABLE)
    for statement in ("OPTIMIZE", "VACUUM"):
        env.lake.spark.sql(f"{statement} {env.live}")
    unknown = sorted({row["operation"] for row in env.lake.commits(env.live, before)} - set(UPKEEP))
    _expect(unknown, [])
    return f"{env.lake.version(env.live) - before} versions, all known as upkeep"


def _repeated_members(env: Environment) -> str:
    for last, expected in (('"2"', "2"), ("null", None)):
        text = literal(f'{{"id":"1","id":{last}}}')
        # Of a row, since the driver reads a constant itself.
        image = image_sql(_TABLE, f"concat({text}, substr('', CAST(id AS INT)))")
        _expect(env.lake.rows(f"SELECT {image}.id AS id FROM range(1)")[0]["id"], expected)
    return "the last one counts"


def _offsets_files(env: Environment) -> str:
    """Checks also that the function of foreachBatch imports the wheel, and has a session, as bronze's must."""
    checkpoint = str(env.folder / "stream")

    def read_offsets(rows: DataFrame, number: int) -> None:
        _expect(stream_checkpoint.planned(checkpoint), number)
        Path(checkpoint, "offsets", str(number)).read_text(encoding="utf-8")
        rows.sparkSession.range(1).collect()

    rows = env.lake.spark.readStream.table(env.table)
    writer = rows.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.foreachBatch(read_offsets).start().awaitTermination()
    planned, interrupted = stream_checkpoint.planned(checkpoint), stream_checkpoint.interrupted(checkpoint)
    if planned is None or interrupted is not None:
        raise ConfigError(f"{checkpoint}: expected committed batches, found {planned}, not done {interrupted}")
    return f"batch {planned} of query {stream_checkpoint.query_id(checkpoint)}"


def _workers(env: Environment) -> str:
    """Checks that a worker imports the wheel and reads what the driver wrote and renamed, as bronze does beside its
    checkpoint."""
    file, unfinished = env.folder / "probe.txt", env.folder / "probe.new"
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished.write_text("probe", encoding="utf-8")
    path = str(unfinished.replace(file))

    def read(batches):  # type: ignore[no-untyped-def]  # Arrow batches in and out
        import pyarrow as pa  # noqa: PLC0415 - in the worker

        from ticdc_codec.protocols import PROTOCOLS  # noqa: PLC0415 - in the worker

        for batch in batches:
            text = Path(path).read_text(encoding="utf-8")
            found = f"{text}, {len(PROTOCOLS)} protocols"
            yield pa.RecordBatch.from_pydict({"found": [found] * batch.num_rows})

    (row,) = env.lake.spark.range(1).mapInArrow(read, "found STRING").collect()
    return str(row["found"])


def _parameters(env: Environment) -> str:
    if not env.job_parameter and not env.nested_parameter:
        raise _NotHereError("not run by the job ticdc_selftest")
    _expect((env.job_parameter, env.nested_parameter), (CANARY, CANARY))
    return "reach the task of a for-each task"


def _secret(env: Environment) -> str:
    if not env.secret or env.read_secret is None:
        raise _NotHereError("parameter secret is empty")
    scope, _, key = env.secret.partition("/")
    return f"{len(env.read_secret(scope, key))} characters"


_CHECKS: dict[str, tuple[Callable[[Environment], str], str]] = {
    "identity": (_identity, "No SQL runs at all: look at the cluster's log."),
    "session settings": (
        _session_settings,
        "The session refuses a setting whose default is another one: texts with ${...} in TiDB's names and comments "
        "would be replaced, or times lose their zone. Use dedicated access mode.",
    ),
    "commit metadata": (
        _commit_metadata,
        "Commits do not carry their TSO: as_of by TSO, and continuing after a crash, cannot work. Use dedicated access "
        "mode; if CREATE TABLE failed, the service principal lacks CREATE_TABLE on ops.",
    ),
    "pinned view": (
        _pinned_view,
        "Gold's views cannot be pinned to a version of a table in another schema, or their comments cannot be changed: "
        "set gold.views: none, and let people read live tables.",
    ),
    "grants after ALTER VIEW": (
        _kept_grants,
        "Views lose their privileges with each window: grant on the schema alone, not on single views.",
    ),
    "tags": (
        _tags,
        "Live tables get no tags with their feed and database. Nothing else depends on them; to have them, grant APPLY "
        "TAG on live.",
    ),
    "live table": (
        _live_table,
        "Gold or maintenance cannot make a live table, alter it, or put it back: if CREATE TABLE failed, the service "
        "principal lacks CREATE_TABLE on live; else report it.",
    ),
    "upkeep": (
        _upkeep,
        "Versions without changes have a name that this package does not know, and takes for another run's: report it.",
    ),
    "repeated members": (
        _repeated_members,
        "JSON is read otherwise here: silver's `_before` is wrong for updates under only-output-updated-columns. "
        "Report it.",
    ),
    "offsets files": (
        _offsets_files,
        "Bronze cannot read what a batch read to: the checkpoints' folder must be a path that Python can open, also "
        "in foreachBatch, which must find the wheel.",
    ),
    "files in workers": (
        _workers,
        "Workers lack the wheel, or cannot open /Volumes: claim-check objects there cannot be read. If the "
        "driver cannot write or rename a file there, bronze cannot either.",
    ),
    "job parameters": (_parameters, "Parameters do not reach nested tasks: ticdc_maintenance would maintain nothing."),
    "secret": (_secret, "The service principal cannot read the secret: databricks secrets put-acl <scope> <id> READ."),
}
