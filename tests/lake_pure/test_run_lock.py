"""One run of a layer and feed at a time, by a file that names the process."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.catalog import Layer
from ticdc_lakehouse.file_lock import locked
from ticdc_lakehouse.run_lock import exclusive_run


def test_a_second_run_is_refused_and_told_who_is_at_work(tmp_path: Path) -> None:
    lake: Any = SimpleNamespace(locks=tmp_path / "locks")
    refused = rf"^feed f: gold is at work in another process \(pid {os.getpid()}\)"
    with exclusive_run(lake, "f", Layer.GOLD):
        for _ in range(2):
            with pytest.raises(ConfigError, match=refused), exclusive_run(lake, "f", Layer.GOLD):
                pass
        with exclusive_run(lake, "f", Layer.SILVER), exclusive_run(lake, "g", Layer.GOLD):
            pass
    with exclusive_run(lake, "f", Layer.GOLD):
        pass


def test_a_lock_is_free_once_its_holder_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "live" / "t"
    with locked(file, wait=True) as is_held, locked(file, wait=False) as is_held_twice:
        assert (is_held, is_held_twice) == (True, False)
    with locked(file, wait=False) as is_held:
        assert is_held
