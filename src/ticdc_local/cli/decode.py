"""``ticdc-lake decode``: messages in, events out, as JSON lines. Test vectors hold their answers in the same form.

    {"kind": "row", "op", "schema", "table", "commit_ts", "before", "after"}    {"kind": "resolved", "commit_ts"}
    {"kind": "ddl", "schema", "table", "commit_ts", "query", "type"}            {"kind": "bootstrap", "schema", "table"}

A value is null, MySQL's text (``event``), ``{"hex"}`` of binary, ``{"index"}`` or ``{"name"}`` of an ENUM,
``{"mask"}`` or ``{"names"}`` of a SET. A row or DDL without commit_ts carries ``es``, its commit time in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import tee
from typing import Any

from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Image, Resolved, RowChange
from ticdc_codec.mysql_type import Family, family_of
from ticdc_codec.protocols import SPELLINGS, MessageDecoder
from ticdc_lakehouse.counted import counted
from ticdc_local.cli.arguments import named_values, pairs_argument
from ticdc_local.cli.messages import message_in, opened
from ticdc_local.cli.notice import note

EXAMPLES = """examples:
  kcat -b localhost:9092 -t crm -C -e -J | ticdc-lake inspect      another tool's messages: inspect reads them
  ticdc-lake generate --workload shop --protocol craft --file - --rows 10 | ticdc-lake decode --protocol craft
  ticdc-lake decode --protocol canal-json --option enable-tidb-extension=true messages.jsonl"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--protocol", required=True, help=f"one of {SPELLINGS}")
    pairs_argument(parser, "--option", "a sink-uri option, or time-zone")
    parser.add_argument("--lenient", action="store_true", help="exit code 0 also if a message does not decode")
    parser.add_argument("file", nargs="?", help="JSON lines with key and value (base64 or null); default, and -: stdin")


def run(options: argparse.Namespace) -> int:
    """Prints one line per message: ``{"line", "events"}``, or ``{"line", "error": {"reason", "detail", "offset"}}``; 1
    if one does not decode."""
    failed = 0
    decoder = MessageDecoder(options.protocol, named_values(options.option, "--option"))
    with opened(options.file) as lines:
        for number, result in decoded_lines(decoder, lines):
            failed += "error" in result
            # ASCII only: a raw U+2028 in a value would be the end of a line to some readers of lines.
            print(json.dumps({"line": number, **result}, separators=(",", ":")))
    if failed:
        print(counted(failed, "message does not decode", "messages do not decode"), file=sys.stderr)
        if options.file not in (None, "-"):
            note(f"Which protocol and options the bytes show: {shlex.join(['ticdc-lake', 'inspect', options.file])}")
    return 1 if failed and not options.lenient else 0


def decoded_lines(decoder: MessageDecoder, lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, object]]]:
    """Yields each input line's number from 1, and its ``events`` or ``error``."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    read, passed_on = tee((number, message_in(line, f"line {number}")) for number, line in numbered)
    results = decoder.decode(message for _, message in read)
    yield from ((number, _result(events)) for (number, _), events in zip(passed_on, results, strict=True))


def _result(events: tuple[Event, ...]) -> dict[str, object]:
    match events:
        case (Failure() as fault,):
            return {"error": canonical(fault)}
    return {"events": [canonical(event) for event in events]}


def canonical(event: Event) -> dict[str, Any]:
    """Returns the event as JSON values (module docstring); a failure becomes ``{"reason", "detail", "offset"}``."""
    match event:
        case RowChange():
            return _row(event)
        case Ddl():
            return _ddl(event)
        case Resolved(commit_ts=commit_ts):
            return {"kind": "resolved", "commit_ts": commit_ts}
        case Bootstrap(database=database, table=table):
            return {"kind": "bootstrap", "schema": database, "table": table}
        case Failure(reason=reason, detail=detail, offset=offset):
            return {"reason": reason, "detail": detail, "offset": offset}


def _row(row: RowChange) -> dict[str, Any]:
    columns = {column.name: column for column in row.columns}
    return {
        "kind": "row",
        "op": row.op.value,
        "schema": row.database,
        "table": row.table,
        **_commit(row.commit_ts, row.commit_ms),
        "before": _values(row.before, columns),
        "after": _values(row.after, columns),
    }


def _ddl(ddl: Ddl) -> dict[str, Any]:
    kind = ddl.type
    return {
        "kind": "ddl",
        "schema": ddl.database or "",
        "table": ddl.table or "",
        **_commit(ddl.commit_ts, ddl.commit_ms),
        "query": ddl.query,
        "type": int(kind) if kind is not None and kind.isdecimal() else kind,
    }


def _commit(commit_ts: int | None, commit_ms: int) -> dict[str, int | None]:
    return {"commit_ts": None, "es": commit_ms} if commit_ts is None else {"commit_ts": commit_ts}


def _values(image: Image | None, columns: Mapping[str, Column]) -> dict[str, Any] | None:
    return None if image is None else {name: _value(text, columns[name]) for name, text in image.items()}


def _value(text: str | None, column: Column) -> Any:
    if text is None:
        return None
    match family_of(column.type):
        case Family.BINARY:
            return {"hex": text}
        case Family.ENUM:
            return {"name": text} if column.by == "name" else {"index": int(text)}
        case Family.SET:
            return {"names": text} if column.by == "name" else {"mask": text}
        case _:
            return text
