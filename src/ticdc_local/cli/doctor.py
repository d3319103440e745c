"""``ticdc-lake doctor``: what a machine needs to run the project, looked at one by one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.feed import VISIBLE, Feed, feed_file, load_feed
from ticdc_local.broker import free_ports
from ticdc_local.cli.arguments import lake_root, place_arguments
from ticdc_local.cli.feed import topics_text
from ticdc_local.cli.notice import progress
from ticdc_local.cli.project import feeds_folder
from ticdc_local.jars import Group, jars_folder, locked, missing
from ticdc_local.java import find_java
from ticdc_local.preflight import ONLY_JAVA, read_sample
from ticdc_local.runner.dbutils import Secrets
from ticdc_local.session import local_session

PYTHONS = ((3, 11), (3, 12))
FREE_BYTES = 2 * 1024**3
FEED_ENDINGS = (".yml", ".yaml")
"""Endings of the files that are looked at; what is wrong with the second one is its ending."""
EXAMPLES = """examples:
  ticdc-lake doctor
  ticdc-lake doctor --spark --json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    good: bool
    is_of_machine: bool = True
    """True if it is this machine's; a broker that does not answer is another one's matter."""
    detail: str
    """What was found; for what is not good, also what was expected or what to do."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    place_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list with one object per finding")
    parser.add_argument("--spark", action="store_true", help="also start a Spark session and count to ten")


def run(options: argparse.Namespace) -> int:
    """Prints a line per finding; 1 if one of this machine, or a feed's file, is not good."""
    with progress("looking"):
        findings = [*examine(lake_root(options), start_spark=options.spark), *examine_feeds(options)]
    print(json.dumps([asdict(each) for each in findings]) if options.json else text_of(findings))
    return 0 if all(finding.good or not finding.is_of_machine for finding in findings) else 1


def text_of(findings: list[Finding]) -> str:
    """Returns a line per finding: whether it is good, what was looked at, what was found; the lines of a detail one
    below the other."""
    width = max(len(finding.subject) for finding in findings)
    below = "\n" + " " * (width + 8)
    return "\n".join(f"{_word(f)}  {f.subject:{width}}  {below.join(f.detail.splitlines())}" for f in findings)


def _word(finding: Finding) -> str:
    if finding.good:
        return "good"
    return "BAD " if finding.is_of_machine else "note"


def examine(folder: Path, *, start_spark: bool = False) -> list[Finding]:
    """Examines Python, Java, jars, disk and ports, and with ``start_spark`` a session; nothing is fetched or changed.

    ``folder`` is where the lake would lie.
    """
    checks: dict[str, Callable[[], str]] = {
        "Python": _python,
        "Java": _java,
        **{f"jars of {group}": partial(_jars, group) for group in Group},
        "disk": partial(_disk, folder),
        "ports": _ports,
    }
    if start_spark:
        checks["Spark"] = _spark
    return [_finding(subject, check) for subject, check in checks.items()]


def examine_feeds(options: argparse.Namespace) -> list[Finding]:
    """Examines each feed of the project: its file, its secrets, its brokers, its topics; or finds that there is no
    project."""
    try:
        folder = feeds_folder(options)
        found = (path for ending in FEED_ENDINGS for path in folder.glob(f"{VISIBLE}{ending}"))
        files = sorted({path.with_suffix(".yml") for path in found})
    except ConfigError as error:
        return [Finding(subject="feeds", good=False, is_of_machine=False, detail=str(error))]
    with ThreadPoolExecutor(max(1, len(files))) as pool:  # a broker that does not answer takes two seconds
        return [*pool.map(_feed, files)]


def _feed(path: Path) -> Finding:
    subject = f"feed {path.stem}"
    try:
        feed = load_feed(feed_file(path.parent, path.stem))
    except ConfigError as error:
        return Finding(subject=subject, good=False, detail=str(error))
    return replace(_finding(subject, partial(_source, feed)), is_of_machine=False)


def _source(feed: Feed) -> str:
    sample = read_sample(feed, Secrets().get)
    topics = f"topics not looked at: {ONLY_JAVA}" if sample is None else topics_text(sample)
    return f"brokers answer at {', '.join(feed.bootstrap_servers)}; {topics}"


def _finding(subject: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(subject=subject, good=True, detail=check())
    except (ConfigError, OSError, PySparkException, Py4JError) as error:
        return Finding(subject=subject, good=False, detail=str(error))


def _python() -> str:
    if sys.version_info[:2] not in PYTHONS:
        raise ConfigError(f"expected 3.11 or 3.12, found {sys.version.split()[0]} at {sys.executable}")
    return f"{sys.version.split()[0]} at {sys.executable}"


def _java() -> str:
    java, home = find_java(), os.environ.get("JAVA_HOME")
    if home is not None and not (Path(home) / "bin" / "java").is_file():
        raise ConfigError(f"JAVA_HOME is {home}, which has no bin/java; unset it or name a Java 17 or 21")
    return f"{java.version} at {java.executable}, from {java.source}"


def _jars(group: Group) -> str:
    jars = locked(group)
    if absent := missing(jars):
        raise ConfigError(f"{len(absent)} of {len(jars)} are not in {jars_folder()}; fetch them: make jars")
    return f"{len(jars)} in {jars_folder()}, checksums as locked"


def _disk(folder: Path) -> str:
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(existing).free
    if free < FREE_BYTES:
        raise ConfigError(f"expected {FREE_BYTES / 1e9:.1f} GB free at {existing}, found {free / 1e9:.1f}")
    return f"{free / 1e9:.1f} GB free at {existing}"


def _ports() -> str:
    return f"free on 127.0.0.1, such as {free_ports(1)[0]}"


def _spark() -> str:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        session = local_session(Path(scratch), app_name="doctor")
        count = session.range(10).count()
        session.stop()
    if count != 10:
        raise ConfigError(f"expected 10 rows of range(10), found {count}")
    return f"{session.version} started and counted in {time.monotonic() - begin:.0f} s"
