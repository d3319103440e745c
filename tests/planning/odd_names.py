"""Recorded streams whose databases, tables, columns, indexes and partitions have names that are hard to quote."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ticdc_codec.event import Bootstrap, Column, Ddl, Event, RowChange
from ticdc_codec.options import sink_options
from ticdc_codec.protocols import protocol_named
from ticdc_lakehouse.sql.text import quoted
from ticdc_testkit.recorded_streams import RecordedStream, base64_text, gzipped_lines
from ticdc_testkit.respelled_streams import decoded_messages

ENDINGS = (
    *("`x", "'q", '"d', " s s", "é", "名", "\\b", "$", "%s", "{f}", "--", "/*c", "; DROP"),
    *("#h", "@v", "😀", "İ", "ß", "|", "a:b", "[0]"),
)
_NAME = re.compile(r"'(?:[^'\\]|\\.|'')*'|`((?:[^`]|``)+)`(\s*\.)?", re.DOTALL)
"""A text, which stays, or a name in backticks, and whether a dot follows: then it is a database."""


def odd(name: str) -> str:
    """Another name for each name: a capital, something that needs quotes or escapes, and a dot."""
    return f"{odd_database(name)}.t" if name else name


def odd_database(name: str) -> str:
    """Likewise without a dot, which parts database and table in the answers."""
    return f"{name[:1].upper()}{name[1:]}{ENDINGS[zlib.crc32(name.encode()) % len(ENDINGS)]}z" if name else name


@dataclass(frozen=True)
class OddNames:
    """A stream's databases, which the text of a DDL does not tell from other names."""

    databases: frozenset[str]

    def sql(self, text: str) -> str:
        return _NAME.sub(self._renamed, text)

    def _renamed(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name = match[1].replace("``", "`")
        is_database = match[2] or name in self.databases
        return quoted(odd_database(name) if is_database else odd(name)) + (match[2] or "")

    def event(self, event: Event) -> Event:
        match event:
            case RowChange(database=database, table=table):
                images = {"before": _image(event.before), "after": _image(event.after)}
                names = {"database": odd_database(database), "table": odd(table)}
                return replace(event, **names, columns=_columns(event.columns), **images)
            case Ddl(database=database, table=table):
                names = {"database": odd_database(database or ""), "table": odd(table or "")}
                return replace(event, **names, query=self.sql(event.query), columns=_columns(event.columns))
            case Bootstrap(database=database, table=table):
                names = {"database": odd_database(database), "table": odd(table)}
                return replace(event, **names, columns=_columns(event.columns))
        return event

    def tables(self, tables: dict[str, Any]) -> dict[str, Any]:
        """Of an answer, or CREATE statements, by ``database.table``."""
        return {".".join(_pair(name)): self._table(table) for name, table in tables.items()}

    def _table(self, table: Any) -> Any:
        if isinstance(table, str):
            return self.sql(table)
        columns = [{**column, "name": odd(column["name"])} for column in table["columns"]]
        return {**table, "create": self.sql(table["create"]), "columns": columns}


def with_odd_names(stream: RecordedStream, folder: Path) -> RecordedStream:
    """The stream with its answers, encoded anew into ``folder`` by the project's encoder of its protocol."""
    events: dict[int, list[Event]] = defaultdict(list)
    for number, event in decoded_messages(stream):
        events[number].append(event)
    databases = {str(e.database) for some in events.values() for e in some if isinstance(e, RowChange | Ddl)}
    names = OddNames(frozenset(databases))
    folder.mkdir(parents=True)
    _write(folder / stream.file, _messages(stream, names, events))
    answers = map(json.loads, gzipped_lines(stream.folder / "answers.jsonl.gz"))
    _write(folder / "answers.jsonl.gz", ({**answer, "tables": names.tables(answer["tables"])} for answer in answers))
    described = json.loads((stream.folder / "stream.json").read_text(encoding="utf-8"))
    if described.get("tables_at_start"):
        described["tables_at_start"] = names.tables(described["tables_at_start"])
    (folder / "stream.json").write_text(json.dumps(described), encoding="utf-8")
    return replace(stream, folder=folder)


def _messages(stream: RecordedStream, names: OddNames, events: dict[int, list[Event]]) -> Iterable[dict[str, Any]]:
    encode = protocol_named(stream.protocol).encode
    options = sink_options(stream.protocol, {**stream.options, "time-zone": stream.time_zone})
    for number, line in enumerate(gzipped_lines(stream.messages)):
        for message in encode([*map(names.event, events[number])], options) if events[number] else []:
            yield {**json.loads(line), "key": base64_text(message.key), "value": base64_text(message.value)}


def _pair(name: str) -> tuple[str, str]:
    database, _, table = name.partition(".")
    return odd_database(database), odd(table)


def _columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(replace(column, name=odd(column.name)) for column in columns)


def _image(image: Any) -> Any:
    return image and {odd(column): value for column, value in image.items()}


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
