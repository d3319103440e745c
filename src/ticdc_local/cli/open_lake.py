"""Opens the lake that a command's arguments mean. Apart from ``place``, because this needs Spark."""

from __future__ import annotations

import argparse
import atexit
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.bronze import landing
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.config.feed import Feed, load_feed, no_such_feed
from ticdc_lakehouse.entry import Run, lake_from
from ticdc_local.cli.arguments import lake_root, project_root
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.job import local_parameters
from ticdc_local.session import local_session


def open_lake(options: argparse.Namespace, *, reads_only: bool = False) -> Lake:
    """The lake, its tables registered with a Spark session; one that ``reads_only`` makes no file in the lake's folder.

    Raises ConfigError if there is none in the folder.
    """
    root = lake_root(options)
    if not (root / Layer.BRONZE).is_dir():
        raise ConfigError(f"{root}: expected a lake, found none; `ticdc-lake run` or `make demo` makes one")
    scratch = _temporary_folder() if reads_only else None
    return lake_from(quiet_session(root, scratch), local_parameters(project_root(options), root))


def _temporary_folder() -> Path:
    """A folder that goes with the process."""
    folder = tempfile.mkdtemp(prefix="ticdc-lake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def quiet_session(lake: Path, scratch: Path | None = None) -> SparkSession:
    """The process's session, with PySpark's own log of failed queries off."""
    silence_query_log()
    return local_session(lake, scratch=scratch)


def silence_query_log() -> None:
    """Keep PySpark from writing each failed query to stderr as a page of JSON: the error says all that is in it."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def feed_files(options: argparse.Namespace) -> dict[str, Path]:
    """The file of each feed, by the feed's name: those of the project, and those that verify-stream left in a lake."""
    folders = (lake_root(options) / "feeds", _feeds_folder(options))
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yml"))}


def _feeds_folder(options: argparse.Namespace) -> Path:
    return project_root(options) / "resources" / "feeds"


def check_feed(options: argparse.Namespace, name: str, known: Collection[str]) -> None:
    """Raise ConfigError if a feed is not among the known ones: it names the one that was probably meant."""
    if name not in known:
        raise no_such_feed(_feeds_folder(options) / f"{name}.yml", known)


def feed_named(options: argparse.Namespace, name: str) -> Feed:
    """The feed of this name. Raises ConfigError for one that has no file, or whose file is wrong."""
    files = feed_files(options)
    check_feed(options, name, files)
    return load_feed(files[name])


def feed_run(options: argparse.Namespace, name: str, lake: Lake | None = None) -> Run:
    """One feed in an open lake, or in one that is opened when the feed is known to be right."""
    feed = feed_named(options, name)
    return Run(lake=lake or open_lake(options), feed=feed, secret=Secrets().get)


def landed(lake: Lake, feed: str) -> bool:
    """Whether bronze has run for a feed."""
    return lake.exists(Layer.BRONZE, landing.offsets_table(feed))
