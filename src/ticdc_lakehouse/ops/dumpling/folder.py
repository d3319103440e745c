"""The folder of an export: on this machine, or wherever Spark reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.error_text import first_line
from ticdc_lakehouse.ops.dumpling.contents import COPY_AGAIN, UNKNOWN_TO_SPARK, content

FILE = "_metadata.file_name"
"""Spark's column of a file's name: as part of a URI, so that % stands there for what Dumpling's % stands for, too."""

BLOCK_START = "_metadata.file_block_start"
_PATTERN = frozenset("*?[]{}\\")
_HEAD = 1024 * 1024
"""Bytes of a file in which its first line ends."""


class Folder(Protocol):
    """Files of one folder. Names are as in `FILE`."""

    @property
    def path(self) -> str:
        """The folder's path as the user gave it, for messages."""

    def sizes(self) -> dict[str, int]:
        """Returns the files' names, in order, with their bytes. Raises ConfigError if the folder cannot be read."""

    def nested(self) -> list[str]:
        """Returns the paths of the files in its subfolders, at any depth, in order."""

    def contents(self, names: Collection[str], limit: int) -> dict[str, bytes]:
        """Returns the first ``limit`` bytes of each of the files."""

    def first_line(self, name: str) -> bytes:
        """Returns the first line of a file, decompressed, without LF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFolder:
    """A folder of this machine, read without Spark."""

    path: str

    def sizes(self) -> dict[str, int]:
        """Implements `Folder.sizes`. Raises ConfigError also for a path that Spark takes for a pattern, and for a file
        that it would pass over."""
        if found := set(self.path) & _PATTERN:
            raise ConfigError(
                f"{self.path}: Spark takes {min(found)} in a path for a pattern: give the folder another name"
            )
        try:
            files = [file for file in Path(self.path).iterdir() if file.is_file()]
            sizes = {quote(file.name): file.stat().st_size for file in sorted(files)}
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror}") from None
        _check_none_hidden(self.path, sizes)
        return sizes

    def nested(self) -> list[str]:
        """Implements `Folder.nested`."""
        root = Path(self.path)
        return sorted(str(file) for file in root.rglob("*") if file.parent != root and file.is_file())

    def contents(self, names: Collection[str], limit: int) -> dict[str, bytes]:
        """Implements `Folder.contents`."""
        return {name: self._head(unquote(name), limit) for name in names}

    def first_line(self, name: str) -> bytes:
        """Implements `Folder.first_line`."""
        return content(self._head(unquote(name), _HEAD), name, limit=_HEAD).partition(b"\n")[0]

    def _head(self, name: str, limit: int) -> bytes:
        try:
            with (Path(self.path) / name).open("rb") as file:
                return file.read(limit)
        except OSError as error:
            raise ConfigError(f"{self.path}/{name}: cannot be read: {error.strerror}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFolder:
    """A folder that Spark can read: a path, ``/Volumes/…`` or a URI."""

    spark: SparkSession
    path: str

    def sizes(self) -> dict[str, int]:
        """Implements `Folder.sizes`. Raises ConfigError if Spark cannot read the folder and, where this process can see
        it too, for a file that Spark would pass over."""
        here = Path(self.path.removeprefix("file:"))
        if here.is_absolute() and here.is_dir():
            _check_none_hidden(self.path, sorted(quote(file.name) for file in here.iterdir()))
        try:
            files = self.spark.read.format("binaryFile").load(self.path)
            # As rows Spark has no files of zero bytes.
            names = [path.rpartition("/")[2] for path in files.inputFiles()]
            lengths = {row[0]: row[1] for row in files.select(FILE, "length").collect()}
        except AnalysisException as error:
            raise ConfigError(f"{self.path}: cannot be read: {first_line(error)}") from None
        return {name: lengths.get(name, 0) for name in sorted(names)}

    def nested(self) -> list[str]:
        """Implements `Folder.nested`."""
        direct, every = (
            self.spark.read.format("binaryFile").option("recursiveFileLookup", recursive).load(self.path).inputFiles()
            for recursive in ("false", "true")
        )
        return sorted(map(unquote, {*every} - {*direct}))

    def contents(self, names: Collection[str], limit: int) -> dict[str, bytes]:
        """Implements `Folder.contents`."""
        files = self.spark.read.format("binaryFile").load(self.path).where(F.col(FILE).isin([*names]))
        heads = files.select(FILE, F.substring("content", 1, limit)).collect()
        return dict.fromkeys(names, b"") | {name: bytes(head) for name, head in heads}

    def first_line(self, name: str) -> bytes:
        """Implements `Folder.first_line`. A file that Spark can split may be of any size."""
        if name.endswith(UNKNOWN_TO_SPARK):
            return content(self.contents([name], _HEAD)[name], name, limit=_HEAD).partition(b"\n")[0]
        lines = self.spark.read.format("text").option("lineSep", "\n").load(self.path)
        begin = lines.where((F.col(FILE) == name) & (F.col(BLOCK_START) == 0)).select(F.col("value").cast("binary"))
        with damage_named(self.path, [name]):
            line = begin.first()
        return b"" if line is None else bytes(line[0])


def _check_none_hidden(folder: str, names: Iterable[str]) -> None:
    hidden = [name for name in names if name.startswith(("_", ".")) and name.count(".") > 1]
    if hidden:
        raise ConfigError(f"{folder}: Spark does not read files whose names begin with {hidden[0][0]}: {hidden[0]}")


@contextmanager
def damage_named(folder: str, names: Collection[str]) -> Iterator[None]:
    """Raises ConfigError in place of Spark's exception for one of these files that Spark cannot decompress."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        damaged = [name for name in names if name.endswith(".gz") and f"/{name}" in text]
        if not damaged or "FAILED_READ_FILE" not in text:
            raise
        raise ConfigError(f"{folder}/{unquote(damaged[0])} cannot be decompressed: {COPY_AGAIN}") from None
