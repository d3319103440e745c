"""Opens the lake that a command's arguments mean in Spark; what needs none is in ``project``."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ticdc_lakehouse.catalog import Lake
from ticdc_lakehouse.entry import Run
from ticdc_lakehouse.job_parameters import lake_from
from ticdc_local.cli.arguments import project_root
from ticdc_local.cli.notice import progress
from ticdc_local.cli.project import existing_lake, feed_named
from ticdc_local.preflight import check_lake, check_writable
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.runner.job import local_parameters
from ticdc_local.session import local_session
from ticdc_local.temporary import temporary_folder


def open_lake(options: argparse.Namespace, *, reads_only: bool = False, frees_space: bool = False) -> Lake:
    """Opens the lake, its tables registered with a Spark session. A command that ``reads_only`` creates no file in the
    lake's folder; one that ``frees_space`` may find the disk full.

    Raises ConfigError if the folder has no lake, or one that cannot be written although it must be, also because its
    disk is full.
    """
    root = existing_lake(options)
    scratch = temporary_folder() if reads_only else None
    if frees_space:
        check_writable(root)
    elif not reads_only:
        check_lake(root)
    return lake_from(quiet_session(root, scratch), local_parameters(project_root(options), root))


def quiet_session(lake: Path, scratch: Path | None = None) -> SparkSession:
    """Returns the process's session, with PySpark's own log of failed queries off."""
    silence_query_log()
    with progress("starting Spark"):
        return local_session(lake, scratch=scratch)


def silence_query_log() -> None:
    """Keeps PySpark from writing each failed query to stderr as a page of JSON: the error says all that is in it."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def feed_run(options: argparse.Namespace, name: str, lake: Lake | None = None) -> Run:
    """Returns one feed in an open lake, or in one that is opened when the feed is known to be right."""
    feed = feed_named(options, name)
    return Run(lake=lake or open_lake(options), feed=feed, secret=Secrets().get)
