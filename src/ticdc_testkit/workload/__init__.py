"""Generated change streams: the transactions of an invented database as TiCDC would send them.

``ticdc-lake generate`` writes them. Pure: no Spark, no files, no clock; the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType

from ticdc_codec.errors import ConfigError
from ticdc_testkit.workload import shop, sysbench
from ticdc_testkit.workload.database import Database

Transactions = Callable[[Database, Random], Iterator[None]]
"""Changes the database; each time it gives control back, a transaction is complete. It never ends."""

WORKLOADS: Mapping[str, tuple[str, Transactions]] = MappingProxyType(
    {"shop": (shop.SCHEMA, shop.transactions), "sysbench": (sysbench.SCHEMA, sysbench.transactions)}
)
"""By name: CREATE TABLE statements (``USE`` first) and what happens to the tables."""


def workload_named(name: str) -> tuple[str, Transactions]:
    """Returns the workload of this name. Raises ConfigError for any other name."""
    if name not in WORKLOADS:
        raise ConfigError(f"workload: expected one of {', '.join(WORKLOADS)}, found {name!r}")
    return WORKLOADS[name]
