"""Records a session of random statements on a real TiDB: what `ticdc_testkit.recorded_session` reads.

    TIDB_SERVER=build/tidb-server python tests/tidb/record_session.py --seed 7 --statements 150 session.jsonl.gz

A line a statement: its text, error, jobs and commit_ts, and all tables with their rows after it. Jobs have their texts
as typed and as TiDB's parser writes them anew.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pymysql
from random_statements import RandomStatements
from statement_texts import DATABASES, DML, FIRST, MODES, ZONES
from tidb_server import TiDB, restorer, server, tidb

from ticdc_lakehouse.sql.text import quoted

_SYSTEM = ("mysql", "information_schema", "performance_schema", "metrics_schema", "sys", "test")
_HEX = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit")
_KEEPS_DROPPED = "INSERT IGNORE INTO mysql.gc_delete_range VALUES (0, 0, 'no key', 'no key', 0)"
"""The embedded store deletes at once what is dropped, and RECOVER TABLE would find no rows. One range that it cannot
read (``loadDeleteRangesFromTable``), and it deletes none."""


@dataclass
class Recorder:
    """One session that runs statements, and one that reads what they left."""

    writer: Any
    reader: Any
    last_job: int = 0

    @classmethod
    def of(cls, database: TiDB) -> Recorder:
        """Sessions with the server's own settings. Rows are read as TiDB prints them, in UTC."""
        address = {"host": database.address.host, "port": database.address.port, "user": "root", "conv": {}}
        writer, reader = (pymysql.connect(**address, autocommit=True) for _ in range(2))
        recorder = cls(writer=writer, reader=reader)
        recorder.rows("SET time_zone = '+00:00', sql_mode = ''")
        recorder.rows(_KEEPS_DROPPED)
        recorder.last_job = int(recorder.rows("SELECT max(job_id) FROM mysql.tidb_ddl_history")[0][0])
        return recorder

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.reader.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def run(self, statement: str) -> dict[str, Any]:
        """A statement's line, without number, zone and database."""
        error, affected, commit_ts = None, 0, None
        with self.writer.cursor() as cursor:
            try:
                affected = cursor.execute(statement)
            except pymysql.err.MySQLError as raised:
                error = list(raised.args)
            if error is None and statement.startswith(DML):
                cursor.execute("SELECT @@tidb_last_txn_info")
                commit_ts = orjson.loads(cursor.fetchone()[0] or "{}").get("commit_ts")
        line = {"kind": "statement", "statement": statement, "error": error, "affected": affected}
        line |= {"dml_commit_tso": commit_ts, "jobs": self._jobs(), "tso_after": self._tso()}
        return line | {"tables": self.tables()}

    def _jobs(self) -> list[dict[str, Any]]:
        query = f"SELECT job_meta FROM mysql.tidb_ddl_history WHERE job_id > {self.last_job}"
        found = [orjson.loads(meta) for (meta,) in self.rows(query)]
        self.last_job = max([self.last_job, *(job["id"] for job in found)])
        jobs = [
            {key: job[key] for key in ("type", "state", "schema_name", "table_name", "schema_id", "table_id", "query")}
            | {"job_id": job["id"], "commit_tso": job["binlog"]["FinishedTS"]}
            for job in found
        ]
        return sorted(jobs, key=lambda job: (job["commit_tso"], job["job_id"]))

    def _tso(self) -> int:
        ((_, position, *_),) = self.rows("SHOW MASTER STATUS")
        return int(position)

    def tables(self) -> list[dict[str, Any]]:
        """All base tables with their rows."""
        left_out = ", ".join(map(_text, _SYSTEM))
        query = f"""SELECT table_schema, table_name FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND lower(table_schema) NOT IN ({left_out}) ORDER BY 1, 2"""
        return [self._table(database, table) for database, table in self.rows(query)]

    def _table(self, database: str, table: str) -> dict[str, Any]:
        name = f"{quoted(database)}.{quoted(table)}"
        where = f"WHERE table_schema = {_text(database)} AND table_name = {_text(table)}"
        columns = [
            dict(zip(("name", "type", "data_type", "nullable", "generation"), row, strict=True))
            for row in self.rows(
                "SELECT column_name, column_type, data_type, is_nullable, generation_expression"
                f" FROM information_schema.columns {where} ORDER BY ordinal_position"
            )
        ]
        key = self.rows(
            f"SELECT column_name FROM information_schema.statistics {where} AND index_name = 'PRIMARY'"
            " ORDER BY seq_in_index"
        )
        listed = ", ".join(_printed(column) for column in columns)
        rows = sorted((list(row) for row in self.rows(f"SELECT {listed} FROM {name}")), key=orjson.dumps)
        create = self.rows(f"SHOW CREATE TABLE {name}")[0][1]
        described = {"db": database, "table": table, "create": create, "columns": columns}
        return described | {"primary_key": [column for (column,) in key], "rows": rows}


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _printed(column: Mapping[str, Any]) -> str:
    name = quoted(column["name"])
    return f"lower(hex({name}))" if column["data_type"] in _HEX else name


def session(database: TiDB, seed: int, statements: int, modes: str) -> Iterator[dict[str, Any]]:
    """The lines of a session, whose sql_mode is one of `MODES`, and now and then becomes another of them."""
    chosen, recorder = RandomStatements(seed), Recorder.of(database)
    random = chosen.random
    described = {"seed": seed, "modes": modes, "server": "8.0.11-TiDB-v8.5.6", "read_time_zone": "+00:00"}
    yield {"kind": "session", **described}
    first = [*(f"CREATE DATABASE {quoted(name)}" for name in DATABASES), *FIRST]
    zone, tables = ZONES[0], []
    _run(recorder.writer, f"SET sql_mode = {MODES[modes][0]}")
    for number in range(1, statements + 1):
        if number == len(DATABASES) + 1 or (number > len(first) and random.random() < 0.05):
            chosen.database = DATABASES[0] if number <= len(first) else chosen.cased(random.choice(DATABASES[:2]))
            _run(recorder.writer, f"USE {quoted(chosen.database)}")
        if number > len(first) and random.random() < 0.08:
            zone = random.choice(ZONES)
            _run(recorder.writer, f"SET time_zone = '{zone}'")
        if number > len(first) and random.random() < 0.04:
            _run(recorder.writer, f"SET sql_mode = {random.choice(MODES[modes])}")
        statement = first[number - 1] if number <= len(first) else chosen.next(tables)
        try:
            line = recorder.run(statement)
        except pymysql.err.OperationalError:  # TiDB 8.5.6 cannot read information_schema after some REMOVE PARTITIONING
            return
        tables = line["tables"]
        yield {"n": number, **line, "session_time_zone": zone, "session_db": chosen.database}


def _run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def as_sent(lines: Sequence[dict[str, Any]], program: Path) -> None:
    """Gives each job its text as TiCDC sends it."""
    jobs = [job for line in lines for job in line.get("jobs", ())]
    texts = b"".join(orjson.dumps(job["query"]) + b"\n" for job in jobs)
    answers = subprocess.run([program], input=texts, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    for job, answer in zip(jobs, answers, strict=True):
        job["restored"] = orjson.loads(answer)


def write_session(lines: Iterable[dict[str, Any]], file: Path) -> None:
    """Writes a session's file: the same bytes for the same lines."""
    lines = [*lines]
    if (program := restorer()) is not None:
        as_sent(lines, program)
    file.write_bytes(gzip.compress(b"".join(orjson.dumps(line) + b"\n" for line in lines), 9, mtime=0))


def clear(database: TiDB) -> None:
    """Takes away what a session left."""
    recorder = Recorder.of(database)
    left_out = ", ".join(map(_text, _SYSTEM))
    query = f"SELECT schema_name FROM information_schema.schemata WHERE lower(schema_name) NOT IN ({left_out})"
    for (name,) in recorder.rows(query):
        recorder.rows(f"DROP DATABASE {quoted(name)}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path, help="{seed} in its name stands for the seed")
    arguments.add_argument("--seed", type=int, nargs="+", default=[1])
    arguments.add_argument("--statements", type=int, default=150)
    arguments.add_argument("--modes", choices=MODES, default="mixed", help="values of sql_mode")
    given = arguments.parse_args()
    program = server()
    if program is None:
        raise SystemExit("TIDB_SERVER names no program: `make verify-test` builds it")
    with tempfile.TemporaryDirectory() as folder, tidb(program, Path(folder)) as database:
        for seed in given.seed:
            clear(database)
            write_session(
                session(database, seed, given.statements, given.modes), Path(str(given.file).format(seed=seed))
            )


if __name__ == "__main__":
    main()
