"""Tables that would get one name in the lake, as far as feed files show it; gold refuses the others as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, groupby
from operator import itemgetter

from ticdc_lakehouse.config.gold import Gold
from ticdc_lakehouse.config.table_filter import TableFilter
from ticdc_lakehouse.planning.naming import templated_lake_name
from ticdc_lakehouse.policy import NAME_TEMPLATE
from ticdc_lakehouse.schema.definition import Table
from ticdc_lakehouse.schema.names import TableName

NamesOfFeed = tuple[str, dict[TableName, str]]
"""A feed, and the names that its tables would get."""


def known_names(feed: str, gold: Gold, tables: TableFilter, schema_tables: Iterable[Table]) -> NamesOfFeed:
    """Returns the names of the tables that a feed file names: those of its ``schema_file``, and included ones without *
    and ?.

    Empty with the default template, which gives each table of the lake a name of its own.
    """
    if gold.name == NAME_TEMPLATE:
        return feed, {}
    plain = (pattern for pattern in tables.include if not {"*", "?"} & set(pattern))
    included = (TableName(database, table) for database, _, table in (pattern.partition(".") for pattern in plain))
    names = {table.name for table in schema_tables} | set(included)
    return feed, {
        name: templated_lake_name(gold.schema, gold.name, feed, name) for name in names if tables.matches(*name)
    }


def clashes(feeds: Iterable[NamesOfFeed]) -> Iterator[str]:
    """Yields a sentence about each name that two tables would get. Catalogs ignore letter case, and so do these names,
    which are all lower case."""
    named = sorted((name, feed, table) for feed, names in feeds for table, name in names.items())
    for name, same in groupby(named, key=itemgetter(0)):
        for (_, feed, table), (_, other, second) in combinations(same, 2):
            yield (
                f"table {table} of feed {feed} and table {second} of feed {other} would both be called {name}: "
                "give another gold.name or gold.schema"
            )
