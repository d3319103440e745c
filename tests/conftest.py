"""One Spark session and one Kafka broker for all tests that ask for them; both start when first asked for.

`make test` runs two processes: all tests of Spark and Kafka in one of them, one after the other, the rest beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ticdc_lakehouse.local.broker import Broker


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for its marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the session and the broker together, so that there is one of each."""
    for item in items:
        if {"spark", "broker"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session; what a test leaves in it, another test sees."""
    from ticdc_lakehouse.local.session import local_session  # noqa: PLC0415 - pure tests must not load Spark

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
    """The one broker; tests keep apart by the names of their topics."""
    from ticdc_lakehouse.local.broker import Broker  # noqa: PLC0415 - pure tests must not start or load Kafka

    with Broker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running
