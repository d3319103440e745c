"""The names that a table has in the lake: of its views, and of the Delta tables that hold its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ticdc_lakehouse.ddl.statement import TableName
from ticdc_lakehouse.lake.place import Lake, Layer, object_name
from ticdc_lakehouse.lake.state import DEFINITIONS

_DATA = re.compile(r"__data(_[0-9]+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A table of some feed, and its names in the lake."""

    feed: str
    table: TableName
    name: str
    data: str


@dataclass(slots=True)
class Naming:
    """Names of new tables: a pure function of the table and of what the history holds, so that a run that died and the
    one after it choose the same."""

    feed: str
    history: Callable[[], Iterable[Taken]]
    """All names ever given; asked for only when a new name is needed, which in most windows is never."""
    _views: dict[str, tuple[str, TableName]] = field(default_factory=dict)
    _bearers: dict[TableName, set[str]] = field(default_factory=dict)
    _data: set[str] = field(default_factory=set)
    _asked: bool = False

    def view(self, table: TableName) -> str:
        """The name of the table's views: ``<feed>_<database>_<table>``, with a hash if that is taken."""
        self._ask()
        plain = object_name(self.feed, *table)
        own = (self.feed, table)
        # A table `t__data` would stand where the rows of a table `t` lie.
        free = self._views.get(plain, own) == own and not _DATA.search(plain)
        name = plain if free else object_name(self.feed, *table, "\0")
        self._views[name] = own
        return name

    def data(self, table: TableName, commit_ts: int) -> str:
        """The name of the Delta table for the rows that ``table`` has from ``commit_ts`` on."""
        first = f"{self.view(table)}__data"
        name = f"{first}_{commit_ts}" if first in self._data else first
        self._data.add(name)
        return name

    def bearers(self, table: TableName) -> frozenset[str]:
        """The Delta tables of the feed's tables that were published under this name, now or once."""
        self._ask()
        return frozenset(self._bearers.get(table, ()))

    def _ask(self) -> None:
        if self._asked:
            return
        self._asked = True
        for taken in self.history():
            self._views[taken.name] = (taken.feed, taken.table)
            self._data.add(taken.data)
            if taken.feed == self.feed:
                self._bearers.setdefault(taken.table, set()).add(taken.data)


def naming(lake: Lake, feed: str) -> Naming:
    """The names for new tables of a feed."""

    def history() -> Iterable[Taken]:
        lines = lake.spark.table(lake.table(Layer.OPS, DEFINITIONS)).select("feed", "database", "table", "name", "data")
        for line in lines.distinct().collect():
            yield Taken(feed=line[0], table=(line[1], line[2]), name=line[3], data=line[4])

    return Naming(feed=feed, history=history)
