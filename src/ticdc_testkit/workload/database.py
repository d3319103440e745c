"""A database in memory: rows by key, and what the open transaction has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from ticdc_codec.event import Image, Op
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.script import tables_from_sql

Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a transaction did to one row, by its key; ``before`` and ``after`` are never both None."""

    table: Table
    before: Image | None
    after: Image | None

    @property
    def op(self) -> Op:
        """What happened to the row."""
        if self.before is None:
            return Op.INSERT
        return Op.DELETE if self.after is None else Op.UPDATE


_ORDER = [Op.DELETE, Op.UPDATE, Op.INSERT]


class Rows:
    """One table's rows."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: dict[Key, Image] = {}
        self._keys: list[Key] = []
        """Every key, for choosing one at random in no time."""
        self._places: dict[Key, int] = {}
        self._before: dict[Key, Image | None] = {}
        """The rows that the open transaction touched, as they were before it."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Image]:
        return iter(self._rows.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __getitem__(self, key: Key) -> Image:
        return self._rows[key]

    def any_key(self, random: Random) -> Key:
        """Returns some row's key; there must be one."""
        return random.choice(self._keys)

    def insert(self, **row: str | None) -> None:
        """Adds a row of all columns, in the order of the table."""
        self._put(self._key(row), row)

    def update(self, key: Key, **values: str | None) -> None:
        """Changes a row. One whose key changes is another row: the old one goes, the new one comes (wire.md 2.3)."""
        row = {**self._rows[key], **values}
        if self._key(row) != key:
            self.delete(key)
        self._put(self._key(row), row)

    def delete(self, key: Key) -> None:
        """Removes a row."""
        self._before.setdefault(key, self._rows.pop(key))
        place, last = self._places.pop(key), self._keys.pop()
        if last != key:
            self._keys[place] = last
            self._places[last] = place

    def commit(self) -> list[Change]:
        """Returns what the transaction changed, one change per key; nothing of what it left as it was."""
        touched, self._before = self._before, {}
        changes = ((before, self._rows.get(key)) for key, before in touched.items())
        return [Change(table=self.table, before=old, after=new) for old, new in changes if old != new]

    def _key(self, row: Mapping[str, str | None]) -> Key:
        return tuple(row[name] for name in self.table.key)

    def _put(self, key: Key, row: Image) -> None:
        self._before.setdefault(key, self._rows.get(key))
        if key not in self._places:
            self._places[key] = len(self._keys)
            self._keys.append(key)
        self._rows[key] = row


class Database:
    """The tables of a schema, empty at first."""

    def __init__(self, schema: str) -> None:
        self.tables = {table.table: Rows(table) for table in tables_from_sql(schema)}

    def __getitem__(self, table: str) -> Rows:
        return self.tables[table]

    def commit(self) -> list[Change]:
        """Returns the transaction's changes: deletes before updates before inserts, as tiflow sends them (wire.md
        2.3)."""
        changes = [change for rows in self.tables.values() for change in rows.commit()]
        return sorted(changes, key=lambda change: _ORDER.index(change.op))
