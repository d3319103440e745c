"""One Spark session and one Kafka broker for all tests that ask for them; both start when first asked for.

`make test` runs two processes, each with its own session and broker, and gives them whole files: a window of small
tables keeps little more than one core busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_local.broker import Broker

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """The argument's name for a value too long to be read in a test's name.

    A compressed file has its second in it: the two processes of `make test` gave its test two names, and neither ran.
    """
    return argname if isinstance(val, bytes | str) and len(val) > (16 if isinstance(val, bytes) else 100) else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The process's session; what a test leaves in it, another test sees."""
    from ticdc_local.session import local_session  # noqa: PLC0415 - pure tests must not load Spark

    session = local_session(tmp_path_factory.mktemp("spark"), app_name="tests")
    yield session
    session.stop()


@pytest.fixture
def lake_root(tmp_path: Path) -> Path:
    """An empty folder for the tables of one test."""
    root = tmp_path / "lake"
    root.mkdir()
    return root


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The process's broker; tests keep apart by the names of their topics."""
    from ticdc_local.broker import Broker  # noqa: PLC0415 - pure tests must not start or load Kafka

    with Broker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running
