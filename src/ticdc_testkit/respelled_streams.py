"""Recorded streams with their databases spelled with a capital, as tiflow writes them (docs/wire.md 8.14).

The message of a RENAME of one table, and every message of that table after it, has the database in lower case, until
another DDL of the table; every other message, and the text of every DDL, has the capital.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ticdc_codec.batch import DecoderContext, SchemaName
from ticdc_codec.event import Bootstrap, Column, Ddl, Event, RowChange, events_of
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder, protocol_named
from ticdc_codec.tso import first_of
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.read import read_ddl
from ticdc_lakehouse.schema.statement import RenameTables
from ticdc_testkit.recorded_streams import RecordedStream, base64_bytes, base64_text, gzipped_lines, write_gzipped


def respelled(stream: RecordedStream, word: str, folder: Path) -> RecordedStream:
    """Returns the stream with its answers, written into ``folder``: databases that begin with ``word``, which must
    occur nowhere else, begin with a capital."""
    events: dict[int, list[Event]] = defaultdict(list)
    for number, event in decoded_messages(stream):
        events[number].append(event)
    spelling = _Spelling(ddl for some in events.values() for ddl in some if isinstance(ddl, Ddl))
    lines = []
    for number, line in enumerate(gzipped_lines(stream.messages)):
        message, some = json.loads(line), events[number]
        lines.append(json.dumps({**message, **_parts(stream, message, word, some, [*map(spelling.of, some)])}))
    folder.mkdir(parents=True, exist_ok=True)
    write_gzipped(folder / stream.file, lines)
    answers = (line.decode() for line in gzipped_lines(stream.folder / "answers.jsonl.gz"))
    write_gzipped(folder / "answers.jsonl.gz", (line.replace(word, word.capitalize()).rstrip() for line in answers))
    described = (stream.folder / "stream.json").read_text(encoding="utf-8")
    (folder / "stream.json").write_text(described.replace(word, word.capitalize()), encoding="utf-8")
    return replace(stream, folder=folder)


_PARTS = ("key", "value")


def decoded_messages(stream: RecordedStream) -> list[tuple[int, Event]]:
    """Returns the stream's events in order of arrival, each with the number of its message; rows with the schema that
    they name, wherever in the stream it is."""
    messages = [json.loads(line) for line in gzipped_lines(stream.messages)]
    keys, values = ([base64_bytes(message[part]) for message in messages] for part in _PARTS)

    def decode(schemas: Mapping[SchemaName, tuple[Column, ...]]) -> list[tuple[int, Event]]:
        return [
            *events_of(Decoder(stream.protocol, _options(stream), DecoderContext(schemas=schemas)).decode(keys, values))
        ]

    events = decode({})
    if not protocol_named(stream.protocol).traits.external_schemas:
        return events
    sent = [e for _, e in events if isinstance(e, Bootstrap | Ddl) and e.schema_version is not None and e.table]
    return decode({(str(e.database), str(e.table), int(e.schema_version or 0)): e.columns for e in sent})


def commit_order(event: RowChange | Ddl) -> int:
    """Returns the same as ``events_table.COMMIT_ORDER``."""
    return first_of(event.commit_ms) if event.commit_ts is None else event.commit_ts


class _Spelling:
    """How the messages of tables spell their database at each commit_ts."""

    def __init__(self, ddls: Iterable[Ddl]) -> None:
        renames: dict[int, set[str]] = defaultdict(set)
        changes: dict[TableName, dict[int, bool]] = defaultdict(dict)
        for ddl in ddls:
            statements = read_ddl(ddl.query, ddl.database, ddl.table)
            pairs = [pair for s in statements if isinstance(s, RenameTables) for pair in s.pairs]
            if pairs:
                renames[commit_order(ddl)].add(ddl.query)
            for name in [new for _, new in pairs] or [TableName(str(ddl.database), str(ddl.table))]:
                changes[name][commit_order(ddl)] = bool(pairs)
        # Several tables of one RENAME come as several DDLs of one commit_ts, and keep their spelling.
        single = {commit_ts for commit_ts, queries in renames.items() if len(queries) == 1}
        self._changes = {
            name: [(at, is_rename and at in single) for at, is_rename in sorted(of_table.items())]
            for name, of_table in changes.items()
        }

    def of(self, event: Event) -> str:
        """Returns how the database of an event's message is spelled: ``lower``, ``capital``, or ``text`` where only the
        text of the DDL has the capital."""
        match event:
            case Ddl() if self._is_lower(event, commit_order(event) + 1):
                return "text"
            case Bootstrap(schema_version=int(version)) if self._is_lower(event, version + 1):
                return "lower"
            case RowChange() if self._is_lower(event, commit_order(event)):
                return "lower"
        return "capital"

    def _is_lower(self, event: RowChange | Ddl | Bootstrap, commit_ts: int) -> bool:
        changes = self._changes.get(TableName(str(event.database), str(event.table)), [])
        at = bisect_left(changes, commit_ts, key=lambda change: change[0])
        return at > 0 and changes[at - 1][1]


def _parts(
    stream: RecordedStream, message: Mapping[str, Any], word: str, events: Sequence[Event], spelled: Sequence[str]
) -> dict[str, str | None]:
    """Returns key and value of a message with the databases of its events respelled."""
    if len(set(spelled)) > 1:  # rows of several tables: Craft writes a word once however many rows have it
        rows = [_respelled_row(row, how) for row, how in zip(events, spelled, strict=True)]
        (encoded,) = protocol_named(stream.protocol).encode(rows, _options(stream))
        return {part: base64_text(getattr(encoded, part)) for part in _PARTS}
    quote = {"text": b"`", "capital": b""}.get(spelled[0] if spelled else "capital")
    parts = {part: base64_bytes(message[part]) for part in _PARTS}
    if quote is None:
        return {part: message[part] for part in _PARTS}
    before, after = quote + word.encode(), quote + word.capitalize().encode()
    return {part: base64_text(data and data.replace(before, after)) for part, data in parts.items()}


def _respelled_row(row: Event, how: str) -> RowChange:
    assert isinstance(row, RowChange)
    return row if how == "lower" else replace(row, database=row.database.capitalize())


def _options(stream: RecordedStream) -> SinkOptions:
    return sink_options(stream.protocol, {**stream.options, "time-zone": stream.time_zone})
