"""Rows of one table and one op, as the columns that ``Gathered`` takes."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from ticdc_codec.debezium.row import Image, Row
from ticdc_codec.debezium.table import Table
from ticdc_codec.errors import DecodeError
from ticdc_codec.event import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one kind, as columns."""

    numbers: list[int]
    op: Op
    commits: list[int]
    keys: tuple[bytes, list[bytes | None] | None]
    images: tuple[bytes, bytes]
    """Before and after."""


def part_of(
    table: Table, op: Op, numbers: list[int], commits: list[int], keys: list[bytes | None], rows: list[Row]
) -> Part:
    """Columns of rows of one op. Raises DecodeError, or one of ``Unreadable``."""
    old, new = _images(op, rows)
    named = old if op is Op.DELETE else new
    if table.keys(named) != keys:
        raise DecodeError("key_mismatch", "expected the key to have the values of the row's key columns")
    before, after = table.texts(old), table.texts(new)
    changed = table.old_handle_keys(before, after) if op is Op.UPDATE and old else None
    return Part(
        numbers=numbers,
        op=op,
        commits=commits,
        keys=(table.handle_keys(before if op is Op.DELETE else after), changed),
        images=(table.lines(before, len(old)), table.lines(after, len(new))),
    )


def _images(op: Op, rows: list[Row]) -> tuple[list[Image], list[Image]]:
    """The images before and after: all rows have them, or none. Raises DecodeError where the op forbids it."""
    old = [row.before for row in rows if row.before is not None and row.before is not UNSET]
    new = [row.after for row in rows if row.after is not None and row.after is not UNSET]
    allowed = {
        Op.INSERT: ((0,), (len(rows),)),
        Op.UPDATE: ((0, len(rows)), (len(rows),)),
        Op.DELETE: ((len(rows),), (0,)),
    }[op]
    if len(old) not in allowed[0] or len(new) not in allowed[1]:
        raise DecodeError("wrong_type", f"expected other rows in before and after of an {op}")
    return old, new
