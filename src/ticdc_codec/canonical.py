"""Events as the plain JSON values that ``ticdc-lake decode`` prints, in which test vectors hold their answers.

    {"kind": "row", "op", "schema", "table", "commit_ts", "before", "after"}    {"kind": "resolved", "commit_ts"}
    {"kind": "ddl", "schema", "table", "commit_ts", "query", "type"}            {"kind": "bootstrap", "schema", "table"}

A value is null, MySQL's text (``event``), ``{"hex"}`` of binary, ``{"index"}`` or ``{"name"}`` of an ENUM,
``{"mask"}`` or ``{"names"}`` of a SET. A row or DDL without commit_ts carries ``es``, its commit time in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ticdc_codec.event import Bootstrap, Column, Ddl, Event, Failure, Image, Resolved, RowChange
from ticdc_codec.mysql_type import Family, family_of


def canonical(event: Event) -> dict[str, Any]:
    """The event as JSON values (module docstring); a failure gives ``{"reason", "detail", "offset"}``."""
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
