"""The names of tables in the lake: names of live tables and views, and stable ids.

A name is ``name``, or ``part.name`` in the parts of the layers' schemas that a feed's ``gold.schema`` sets: `orders` of
`shop` is ``gold_shop.orders``, ``live_shop.orders`` and ``silver_shop.orders`` there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from ticdc_codec.errors import ConfigError
from ticdc_codec.name_case import fold
from ticdc_lakehouse.policy import NAME_TEMPLATE, SCHEMA_TEMPLATE
from ticdc_lakehouse.schema.names import TableName

_DATA = re.compile(r"__(data|dropped)(_[0-9]+)?$")
_RENAMING = "__renaming"
OWN = ("events", "quarantine", "accounting", "schemas")
"""Suffixes of a feed's own tables and views in silver. Those of a feed `shop_crm` equal the names of the tables
`crm.events`, … of a feed `shop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameInUse:
    """A name of the lake that a table of some feed uses."""

    feed: str
    table: TableName
    lake_name: str
    stable_id: str
    named_at: int = 0
    """commit_ts since which the table has its name in TiDB; 0 if always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenNames:
    """The names that are taken in the lake. Only a window that gives a name needs them, or one with changes under a
    name that a table had before."""

    names: tuple[NameInUse, ...] = ()
    """All that tables of any feed were ever published with; those of one table in the order of publication."""
    feeds: frozenset[str] = frozenset()
    """The feeds that exist."""
    left_over: frozenset[str] = frozenset()
    """The names of removed feeds' tables that a table or view in the lake still has. A feed with the default template
    does not need them."""


class NamesNeeded(Exception):  # noqa: N818 - no error: it tells the caller to plan once more, with the names
    """A plan depends on the names that are taken, and `Naming` was made without them."""


@dataclass(slots=True)
class Naming:
    """Chooses the names of new tables: a pure function of the table and of the names that are taken, so that a run
    which repeats an interrupted one chooses the same names. Every answer that depends on them raises `NamesNeeded` if
    it was made without."""

    feed: str
    taken: TakenNames | None = None
    """None if they were not read."""
    template: str = NAME_TEMPLATE
    """The names of tables in the lake: text with {feed}, {database} and {table}."""
    schema_template: str = SCHEMA_TEMPLATE
    """The part of the layers' schemas that contains them: text with {feed} and {database}; may be empty."""
    reserved: frozenset[str] = frozenset()
    """Stable ids that are used, though no table was published with them yet."""
    loaded: Mapping[str, TableName] = field(default_factory=dict)
    """The names of the lake that tables of an export get with this window."""
    _tables_by_lake_name: dict[str, dict[str, TableName]] = field(init=False, default_factory=dict)
    """The tables that use or used each name of the lake: feed, and name in TiDB."""
    _ids_by_name: dict[TableName, set[tuple[int, str]]] = field(init=False, default_factory=dict)
    """The feed's tables by name, each with the commit_ts since which it had it."""
    _names_by_id: dict[str, list[tuple[int, TableName]]] = field(init=False, default_factory=dict)
    """The names of each of the feed's tables, as they were published, with the commit_ts since which it had them."""
    _ids: set[str] = field(init=False, default_factory=set)
    _refusals: dict[str, ConfigError] = field(init=False, default_factory=dict)
    """By a name that `planned_lake_name` gave: why the table cannot have that of the template."""

    def __post_init__(self) -> None:
        self._ids.update(self.reserved)
        for name in () if self.taken is None else self.taken.names:
            self._tables_by_lake_name.setdefault(name.lake_name, {})[name.feed] = name.table
            self._ids.add(name.stable_id)
            if name.feed == self.feed:
                self._ids_by_name.setdefault(name.table, set()).add((name.named_at, name.stable_id))
                self._names_by_id.setdefault(name.stable_id, []).append((name.named_at, name.table))
        for lake_name, table in self.loaded.items():
            self._tables_by_lake_name.setdefault(lake_name, {})[self.feed] = table

    def lake_name(self, table: TableName) -> str:
        """Returns the name of the table's live table and views, by the feed's template. If another table uses or used
        it, the default template adds a hash. A feed's own template raises ConfigError if a table of another feed has
        it; its own tables may have it in turn (`check_distinct`)."""
        name = self.planned_lake_name(table)
        if (refusal := self._refusals.get(name)) is not None:
            raise refusal
        return name

    def planned_lake_name(self, table: TableName) -> str:
        """Returns `lake_name`, or a name with a hash where that is refused: the table may have left its name by the end
        of the window. If it has not, `check_distinct` raises."""
        taken = self._needed()
        name = templated_lake_name(self.schema_template, self.template, self.feed, table)
        used_by = self._tables_by_lake_name.get(name, {})
        if used_by.get(self.feed) != table:
            other = next((feed for feed in used_by if self._keeps(taken, feed, name)), None)
            if other is not None or _is_reserved(taken, name):
                name = self._with_hash(name, table, other)
        self._tables_by_lake_name.setdefault(name, {})[self.feed] = table
        return name

    def _keeps(self, taken: TakenNames, feed: str, name: str) -> bool:
        """True if no other table may get a name that a table of ``feed`` has or had. By the default template none ever
        may: a table that has a hash in its name because of that one would lose it at its next TRUNCATE."""
        if self.template == NAME_TEMPLATE:
            return True
        return feed != self.feed and (feed in taken.feeds or name in taken.left_over)

    def _with_hash(self, plain: str, table: TableName, other: str | None) -> str:
        """Returns another name than the ``plain`` one, which is reserved or that of a table of the feed ``other``."""
        name = _in_part(plain.rpartition(".")[0], object_name(self.feed, *table, "\0"))
        if self.template == NAME_TEMPLATE:
            return name
        if other is None:
            self._refusals[name] = self._refused(table, plain, "is reserved")
        else:
            has = f"has table {self._tables_by_lake_name[plain][other]} of feed {other}"
            self._refusals[name] = self._refused(table, plain, has, f", or remove feed {other} first")
        return name

    def _refused(self, table: TableName, name: str, why: str, way_out: str = "") -> ConfigError:
        return ConfigError(
            f"feed {self.feed}: gold.name: table {table} would be called {name}, which {why}: "
            f"give another template than {self.template!r}, or another gold.schema{way_out}"
        )

    def check_distinct(self, names: Iterable[tuple[TableName, str]]) -> None:
        """Raises ConfigError if a feed's own template gives two of its tables, each with its name of the lake, the same
        one, or one of them a name that is refused; a table without one has ``""``."""
        tables: dict[str, TableName] = {}
        for table, name in () if self.template == NAME_TEMPLATE else names:
            if (refusal := self._refusals.get(name)) is not None:
                raise refusal
            other = tables.setdefault(name, table)
            if name and other != table:
                raise self._refused(table, name, f"has table {other} of feed {self.feed}")

    def new_stable_id(self, table: TableName, commit_ts: int) -> str:
        """Returns a new stable id for the rows that ``table`` has from ``commit_ts`` on."""
        first = f"{self.planned_lake_name(table)}__data"
        stable_id = f"{first}_{commit_ts}" if first in self._ids else first
        self._ids.add(stable_id)
        return stable_id

    def ids_named(self, table: TableName) -> frozenset[str]:
        """Returns the stable ids of the feed's tables that are or were published under this name."""
        self._needed()
        return frozenset(stable_id for _, stable_id in self._ids_by_name.get(table, ()))

    def ids_named_at(self, table: TableName, commit_ts: int) -> frozenset[str]:
        """Returns the stable ids of the feed's tables that had this name before a commit_ts and, as published, no other
        since; they may be gone."""
        self._needed()
        named = [(n, id_, name) for name, some in self._ids_by_name.items() for n, id_ in some if n < commit_ts]
        newest: dict[str, int] = {}
        for named_at, id_, _ in named:
            newest[id_] = max(named_at, newest.get(id_, named_at))
        return frozenset(id_ for named_at, id_, name in named if name == table and named_at == newest[id_])

    def name_before(self, stable_id: str, commit_ts: int) -> TableName | None:
        """Returns the name that a table of the feed had before a commit_ts, as published; None if it was not there."""
        self._needed()
        used = (name for at, name in reversed(self._names_by_id.get(stable_id, [])) if at < commit_ts)
        return next(used, None)

    def got_name_at(self, table: TableName, commit_ts: int) -> bool:
        """True if a table of the feed got this name by a DDL at a commit_ts, as published."""
        self._needed()
        return any(named_at == commit_ts for named_at, _ in self._ids_by_name.get(table, ()))

    def left_name(self, table: TableName, commit_ts: int) -> tuple[int, str] | None:
        """Returns the last commit_ts before ``commit_ts`` at which a table of the feed left this name for another one,
        as published, and the stable id of that table; None if none did."""
        ids = self.ids_named(table)
        used = ((id_, at, name) for name, some in self._ids_by_name.items() for at, id_ in some if id_ in ids)
        left = [
            (at, stable_id)
            for (former, _, old), (stable_id, at, new) in pairwise(sorted(used))
            if stable_id == former and old == table != new and at < commit_ts
        ]
        return max(left, default=None)

    def ids_named_between(self, table: TableName, first: int, last: int) -> frozenset[str]:
        """Returns the stable ids of the feed's tables to which rows under this name, with a commit_ts from ``first`` to
        ``last``, may belong: the last published one that got the name before ``first``, and all that got it from then
        until ``last``."""
        self._needed()
        named = {(named_at, id_) for named_at, id_ in self._ids_by_name.get(table, ()) if named_at < last}
        since = max((named_at for named_at, _ in named if named_at < first), default=first)
        return frozenset(id_ for named_at, id_ in named if named_at >= since)

    def _needed(self) -> TakenNames:
        if self.taken is None:
            raise NamesNeeded
        return self.taken


def _is_reserved(taken: TakenNames, name: str) -> bool:
    feed, _, last = name.rpartition("_")
    return is_internal(name) or (last in OWN and feed in taken.feeds)


def is_internal(name: str) -> bool:
    """True if a live table has this name only while it is created or renamed, or after its DROP; `Naming` chooses no
    such name.

    >>> [is_internal(name) for name in ("shop_orders", "shop_orders__data_7", "shop.orders__dropped", "t__renaming")]
    [False, True, True, True]
    """
    return bool(_DATA.search(name)) or name.endswith(_RENAMING)


def renaming_name(name: str) -> str:
    """Returns the name of a live table that has left its own and not taken the next one yet.

    >>> renaming_name("shop_orders"), renaming_name("shop_orders__renaming")
    ('shop_orders__renaming', 'shop_orders__renaming')
    """
    return f"{name.removesuffix(_RENAMING)}{_RENAMING}"


def dropped_name(stable_id: str) -> str:
    """Returns the name of the live table with this stable id after its DROP, until its retention ends.

    >>> dropped_name("shop_orders__data"), dropped_name("shop_orders__data_7")
    ('shop_orders__dropped', 'shop_orders__dropped_7')
    """
    return _DATA.sub(r"__dropped\2", stable_id)


_PLAIN = re.compile(r"[a-z0-9_]+")
LONGEST = 150
"""Longest name, in characters; Unity Catalog takes 255, and gold adds to some names."""


def templated_lake_name(schema_template: str, template: str, feed: str, table: TableName) -> str:
    """Returns the name that a feed's templates give a table.

    >>> templated_lake_name("{database}", "{table}", "crm", TableName("Shop", "orders"))
    'shop.orders'
    """
    return _in_part(templated_part(schema_template, feed, table[0]), _templated_name(template, feed, *table))


def templated_part(template: str, feed: str, database: str) -> str:
    """Returns the part of the layers' schemas that a template gives a database's tables; plain, as names are."""
    part = template.format(feed=feed, database=fold(database))
    return part if not part or (_PLAIN.fullmatch(part) and len(part) <= LONGEST) else object_name(part, database)


def _in_part(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def schema_part(name: str) -> str:
    """Returns the part of the layers' schemas that contains a table of this name; empty for the schemas themselves."""
    return name.rpartition(".")[0]


def _templated_name(template: str, feed: str, database: str, table: str) -> str:
    """Returns the catalog name that a template makes, with a hash where a name of TiDB is not plain.

    >>> _templated_name("{database}_{table}", "shop_craft", "shop", "orders")
    'shop_orders'
    """
    if template == NAME_TEMPLATE:
        return object_name(feed, database, table)
    name = template.format(feed=feed, database=fold(database), table=fold(table))
    if _PLAIN.fullmatch(name) and len(name) <= LONGEST:
        return name
    return object_name(name, database, table)


def object_name(*parts: str) -> str:
    """Returns one catalog name for these parts: joined by ``_`` when plain, otherwise made plain, with a hash of the
    parts.

    Catalogs take ``[A-Za-z0-9_]`` and ignore case; MySQL takes anything, and TiDB ignores case too. ``Shop`` and
    ``orders`` become ``shop_orders``.
    """
    parts = tuple(map(fold, parts))
    joined = "_".join(parts)
    if _PLAIN.fullmatch(joined) and len(joined) <= LONGEST:
        return joined
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    return f"{re.sub('[^a-z0-9_]', '_', joined)[:LONGEST]}_{digest}"
