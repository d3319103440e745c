"""A session that a real TiDB recorded, played as a changefeed: its statements' DDLs and row changes as messages of any
protocol.

A session's file has a JSON line for each statement: its text, the DDL jobs and the commit_ts that it left, and all
tables with their rows after it. Row changes are the differences between two such states; a DDL's message is its job's
text, as TiDB's parser writes it anew where the file has that (``restored``), with names as TiCDC writes them
(docs/wire.md 2.4).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ticdc_codec.event import Column, Ddl, Event, Image, Op, Resolved, RowChange
from ticdc_codec.mysql_type import Family, parse_type
from ticdc_codec.name_case import fold
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named
from ticdc_codec.tso import milliseconds
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import CreateTable, RenameTables
from ticdc_lakehouse.sql.text import quoted
from ticdc_testkit.recorded_streams import RecordedStream, base64_text, gzipped_lines, recorded_stream, write_gzipped

_DONE = 6
"""A job's state; others were rolled back."""
_RENAME, _RENAMES, _DROP = 14, 47, 4
_OF_DATABASES = (1, 2, 26)
"""Types of jobs: a rename, several in one, a dropped table, and of databases (docs/wire.md 3.1)."""
_SENT = {*range(1, 16), *range(17, 27), 32, 33, 37, 38, 41, 42, 47, 60, 61, 64, 65, 67, 71, 72}
"""Types of jobs that TiCDC sends (docs/wire.md 3.1)."""
_Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTable:
    """A table as TiDB held it after a statement."""

    definition: Table
    answer: Mapping[str, Any]
    """As `recorded_streams.Answer` has it."""
    rows: Counter[_Row]
    """Values in the form of `ticdc_codec.event`, of the columns that messages have."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns as rows describe them: ENUM and SET by name."""
        named = (Family.ENUM, Family.SET)
        return tuple(
            Column(name=c.name, type=c.type, key=c.key, by="name" if parse_type(c.type).family in named else None)
            for c in self.definition.described
        )

    def image(self, row: _Row) -> Image:
        """Returns a row as an image."""
        return {column.name: value for column, value in zip(self.definition.sent, row, strict=True)}


Tables = dict[TableName, HeldTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A statement, what a changefeed sends of it, and the tables after it."""

    number: int
    statement: str
    events: tuple[Event, ...]
    watermark: int
    tables: Tables
    time_zone: str
    """The zone of the session that ran it."""
    refused: bool
    """True if TiDB answered with an error."""


def session_steps(file: Path) -> Iterator[Step]:
    """Yields the statements of a session's file, in order. Raises ConfigError as `gzipped_lines`."""
    before: Tables = {}
    spelled: dict[str, str] = {}
    for line in map(json.loads, gzipped_lines(file)):
        if line["kind"] == "session":
            continue
        tables = {TableName(t["db"], t["table"]): _held(t) for t in line["tables"]}
        spelled |= {fold(name.database): name.database for name in tables}
        events: list[Event] = [*_row_changes(line, before, tables), *_ddls(line, {**before, **tables}, spelled)]
        yield Step(
            number=line["n"],
            statement=line["statement"],
            events=(*events, Resolved(commit_ts=line["tso_after"])),
            watermark=line["tso_after"],
            tables=tables,
            time_zone=line["session_time_zone"],
            refused=line["error"] is not None,
        )
        before = tables


def session_stream(file: Path, protocol: str, options: Mapping[str, Any], folder: Path) -> RecordedStream:
    """Returns the session as a recorded stream of one partition, written into ``folder``, with an answer after each
    statement."""
    steps = list(session_steps(file))
    encode, given = protocol_named(protocol).encode, sink_options(protocol, options)
    messages = encode([event for step in steps for event in step.events], given)
    lines = [
        {"partition": 0, "offset": offset, "timestamp": 0, "key": base64_text(m.key), "value": base64_text(m.value)}
        for offset, m in enumerate(messages)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_gzipped(folder / f"{protocol}.jsonl.gz", map(json.dumps, lines))
    write_gzipped(folder / "answers.jsonl.gz", (json.dumps(_answer(step)) for step in steps))
    entry = {"file": f"{protocol}.jsonl.gz", "protocol": protocol, "options": options}
    described = {
        "files": [{**entry, "counts": {"watermark_messages": len(steps)}}],
        "time_zone": "UTC",
        "tables_at_start": {},
    }
    (folder / "stream.json").write_text(json.dumps(described), encoding="utf-8")
    return recorded_stream(folder, f"{protocol}.jsonl.gz", {})


def _held(table: Mapping[str, Any]) -> HeldTable:
    # SHOW CREATE TABLE leaves a backslash in ENUM and SET alone, as the texts do that TiCDC sends.
    (statement,) = read_ddl(table["create"], table["db"], table["table"])
    assert isinstance(statement, CreateTable)
    definition = statement.table
    kinds = [column.type for column in definition.columns]
    rows = [
        [str(int(v, 16)) if v is not None and k.family is Family.BIT else v for k, v in zip(kinds, row, strict=True)]
        for row in table["rows"]
    ]
    key = dict.fromkeys(table["primary_key"], "PRI")
    sent = [at for at, column in enumerate(definition.columns) if not column.virtual]
    columns = [
        {"name": c["name"], "type": c["type"], "nullable": c["nullable"] == "YES", "key": key.get(c["name"], "")}
        for at, c in enumerate(table["columns"])
        if at in sent
    ]
    sent_values = [tuple(row[at] for at in sent) for row in rows]
    answer = {"create": table["create"], "columns": columns, "rows": sent_values}
    return HeldTable(definition=definition, answer=answer, rows=Counter(sent_values))


def _row_changes(line: Mapping[str, Any], before: Tables, after: Tables) -> Iterator[RowChange]:
    """Yields what an INSERT, UPDATE or DELETE did; rows of one key, or else any two, are an update."""
    commit_ts = int(line.get("dml_commit_tso") or 0)
    for name, table in after.items() if commit_ts else ():
        old, new = before[name].rows, table.rows
        gone, come = list((old - new).elements()), list((new - old).elements())
        for left, right in _paired(table, gone, come):
            yield RowChange(
                op=Op.INSERT if left is None else Op.DELETE if right is None else Op.UPDATE,
                database=name.database,
                table=name.table,
                commit_ts=commit_ts,
                commit_ms=milliseconds(commit_ts),
                before=None if left is None else table.image(left),
                after=None if right is None else table.image(right),
                columns=table.columns,
            )


def _paired(table: HeldTable, gone: Sequence[_Row], come: Sequence[_Row]) -> Iterator[tuple[_Row | None, _Row | None]]:
    key = [at for at, column in enumerate(table.columns) if column.key]
    left = {tuple(row[at] for at in key) if key else number: row for number, row in enumerate(gone)}
    right = {tuple(row[at] for at in key) if key else number: row for number, row in enumerate(come)}
    for place in dict.fromkeys([*left, *right]):
        yield left.get(place), right.get(place)


def _ddls(line: Mapping[str, Any], tables: Tables, spelled: Mapping[str, str]) -> Iterator[Ddl]:
    for job in line["jobs"]:
        if job["state"] != _DONE or job["type"] not in _SENT:
            continue
        database = spelled.get(job["schema_name"], job["schema_name"])
        for query, table in _messages(job, line["session_db"] if job["type"] == _RENAMES else database):
            known = next((name for name in tables if name == (database, table)), None)
            yield Ddl(
                database=database,
                table=None if job["type"] in _OF_DATABASES else known.table if known else table,
                commit_ts=job["commit_tso"],
                commit_ms=milliseconds(job["commit_tso"]),
                query=query,
                type=str(_RENAME if job["type"] == _RENAMES else job["type"]),
                columns=tables[known].columns if known else (),
                schema_version=job["commit_tso"] if known else None,
            )


def _messages(job: Mapping[str, Any], database: str) -> Iterable[tuple[str, str]]:
    """Returns each message's text and table: a rename has the new name, and several in one become one each, with the
    databases that TiDB took for them (``database`` is the session's then); of a DROP TABLE each table has its own."""
    query = job.get("restored") or job["query"]
    if job["type"] == _DROP:
        return [(f"DROP TABLE {quoted(database)}.{quoted(job['table_name'])}", job["table_name"])]
    if job["type"] not in (_RENAME, _RENAMES):
        return [(query, job["table_name"])]
    (statement,) = read_ddl(query, database, job["table_name"])
    assert isinstance(statement, RenameTables)
    if job["type"] == _RENAME:
        return [(query, statement.pairs[0][1].table)]
    pairs = [(".".join(map(quoted, old)), ".".join(map(quoted, new)), new.table) for old, new in statement.pairs]
    return [(f"RENAME TABLE {old} TO {new};", table) for old, new, table in pairs]


def _answer(step: Step) -> Mapping[str, Any]:
    return {"watermark": step.watermark, "tables": {str(name): held.answer for name, held in step.tables.items()}}
