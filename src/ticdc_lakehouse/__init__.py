"""TiDB tables in the lakehouse: TiCDC's Kafka protocols decoded into Delta, applied per commit_ts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ticdc_codec.inspection import inspect
    from ticdc_codec.protocols import MessageDecoder, decode
    from ticdc_lakehouse.gold.time_travel import as_of

_MODULES = {
    "MessageDecoder": "ticdc_codec.protocols",
    "as_of": "ticdc_lakehouse.gold.time_travel",
    "decode": "ticdc_codec.protocols",
    "inspect": "ticdc_codec.inspection",
}

__all__ = ["MessageDecoder", "as_of", "decode", "inspect"]


def __getattr__(name: str) -> object:
    """Imports each name on first use: the codecs and the command line work without Spark, so importing the package must
    not import it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
