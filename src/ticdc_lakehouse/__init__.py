"""TiDB tables in the lakehouse: TiCDC's Kafka protocols decoded into Delta, applied per commit_ts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ticdc_lakehouse.decoding import MessageDecoder, decode
    from ticdc_lakehouse.inspection import inspect
    from ticdc_lakehouse.lake.history import as_of

_HOMES = {
    "MessageDecoder": "ticdc_lakehouse.decoding",
    "as_of": "ticdc_lakehouse.lake.history",
    "decode": "ticdc_lakehouse.decoding",
    "inspect": "ticdc_lakehouse.inspection",
}

__all__ = ["MessageDecoder", "as_of", "decode", "inspect"]


def __getattr__(name: str) -> object:
    """Each on first use: the codecs and the command line work without Spark, so importing the package must not
    import it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
