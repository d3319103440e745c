"""TiDB tables in the lakehouse: TiCDC's Kafka protocols decoded into Delta, applied per commit_ts."""

from __future__ import annotations

from typing import Any

__all__ = ["as_of"]


def __getattr__(name: str) -> Any:
    """``as_of`` on first use: the codecs and the command line work without Spark, so importing the package must not
    import it."""
    if name == "as_of":
        from ticdc_lakehouse.lake.history import as_of

        return as_of
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
