"""A right feed file, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import load_feed

RIGHT = """
protocol: canal-json
time_zone: Asia/Shanghai
options: {enable-tidb-extension: true}
kafka:
  bootstrap_servers: [a.example:9092, b.example:9092]
  topics: [one, two]
"""


def written(folder: Path, text: str, name: str = "feed") -> Path:
    path = folder / f"{name}.yml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_feed(path)
    return str(caught.value).splitlines()
