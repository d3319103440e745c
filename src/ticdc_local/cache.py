"""The folder that survives between runs and projects: jars, Java's shims."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TICDC_LAKE_CACHE"


def cache_folder() -> Path:
    """``$TICDC_LAKE_CACHE``, or ``~/.cache/ticdc-lakehouse``; it need not exist."""
    return Path(os.environ.get(VARIABLE) or Path.home() / ".cache" / "ticdc-lakehouse").expanduser().absolute()
