"""The jars of Spark's Delta and Kafka connectors and of the Kafka broker: exactly those of ``jars.lock``.

Missing ones are fetched by Spark's own resolver (``MavenUtils``, which is what ``spark-submit --packages`` uses), so
that no host is named here and Spark's ways to use a mirror hold. Every file is checked against its SHA-256 each time
before it is used. Spark's transitive resolution is not used: the lock names every jar.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_local.java import cache_folder, find_java, writing_cache
from ticdc_local.launch import pyspark_folder
from ticdc_local.resolver import resolve


class Group(StrEnum):
    """The sections of ``jars.lock``."""

    SPARK = "spark"
    BROKER = "broker"


# Spark's resolver always leaves it out, because Spark brings it.
FROM_PYSPARK = ("org.scala-lang", "scala-library")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One line of ``jars.lock``."""

    organisation: str
    name: str
    version: str
    sha256: str
    group: Group

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``, as Maven writes them."""
        return f"{self.organisation}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        """As Spark's resolver names the file."""
        return f"{self.organisation}_{self.name}-{self.version}.jar"

    @property
    def path(self) -> Path:
        """Where the file is kept; it need not exist."""
        if (self.organisation, self.name) == FROM_PYSPARK:
            return pyspark_folder() / "jars" / f"{self.name}-{self.version}.jar"
        return jars_folder() / self.file_name


def jars_folder() -> Path:
    """Returns the cache's folder of jars."""
    return cache_folder() / "jars"


def locked(group: Group) -> tuple[Jar, ...]:
    """Returns the jars of one group, in the lock's order."""
    text = (files("ticdc_local") / "jars.lock").read_text()
    return tuple(jar for jar in _parsed(text) if jar.group is group)


def missing(jars: Iterable[Jar]) -> list[Jar]:
    """Returns the jars whose file is missing. Raises ConfigError for a file with a wrong checksum."""
    absent = []
    for jar in jars:
        if jar.path.exists():
            _check(jar, jar.path)
        else:
            absent.append(jar)
    return absent


def jar_files(group: Group) -> tuple[Path, ...]:
    """Returns the group's files, checked; missing ones are fetched first.

    Raises ConfigError when a jar cannot be fetched or written, or its checksum is wrong.
    """
    jars = locked(group)
    if absent := missing(jars):
        with writing_cache():
            _fetch(absent)
    return tuple(jar.path for jar in jars)


def class_path(group: Group) -> str:
    """Returns the group's files as Java's class path."""
    return os.pathsep.join(str(path) for path in jar_files(group))


def _parsed(text: str) -> Iterable[Jar]:
    group = None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("#"):
            # A comment that begins with a group's name opens its section.
            group = Group(words[1]) if words[1] in set(Group) else group
        elif words and group is not None:
            organisation, name, version = words[1].split(":")
            yield Jar(organisation=organisation, name=name, version=version, sha256=words[0], group=group)


def _check(jar: Jar, path: Path) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != jar.sha256:
        raise ConfigError(
            f"{path} ({jar.coordinates}): expected SHA-256 {jar.sha256} as jars.lock says, found {found}. "
            f"Delete the file and run again; if it comes back like this, your Maven mirror serves another file"
        )


def _fetch(jars: Sequence[Jar]) -> None:
    """Resolves into a temporary folder, checks, and only then moves files into the cache, which so has complete files
    only."""
    from_pyspark = [jar for jar in jars if jar.path.parent != jars_folder()]
    if from_pyspark:
        raise ConfigError(f"{from_pyspark[0].path} is missing: pyspark is not the version of requirements.lock")
    jars_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="resolve-") as folder:
        resolve([jar.coordinates for jar in jars], Path(folder), find_java())
        for jar in jars:
            resolved = Path(folder) / "jars" / jar.file_name
            _check(jar, resolved)
            shutil.move(resolved, jar.path)
