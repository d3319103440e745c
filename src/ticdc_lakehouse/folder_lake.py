"""A lake on a laptop: a folder of Delta tables, which every session registers with its own catalog."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.errors import PySparkException

from ticdc_lakehouse import log_folder
from ticdc_lakehouse.catalog import Lake, Layer
from ticdc_lakehouse.file_lock import locked
from ticdc_lakehouse.sql.text import literal

_ABANDONED_AFTER_SECONDS = 60
"""Age from which on a folder whose table has no commit is that of a run that was killed, if no run is creating it:
somebody else may be, without `FolderLake.creating`."""
_WITHOUT_COLUMNS = "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG"
"""Delta's error where a folder has no log, or that of a table without columns."""
_NO_COLUMNS = r'"schemaString":"{\"type\":\"struct\",\"fields\":[]}"'
"""What the commit that creates a table without columns has in its metadata."""


def holds_table(folder: Path) -> bool:
    """True if a Delta table lies in a folder: its log has a commit. The log of one that is being created has none yet,
    nor has it if the run that created it was killed."""
    try:
        with os.scandir(folder / "_delta_log") as entries:  # a log has a file for each commit, and one is enough
            return any(entry.name.endswith(".json") for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLake(Lake):
    """A lake whose tables are folders: ``<root>/<layer>/<table>``."""

    root: Path
    reads_only: bool = False
    """True for a session that leaves the folder as it is."""
    on_databricks: ClassVar[bool] = False

    def location(self, layer: Layer, name: str) -> str:
        """Returns the LOCATION clause that a new table needs."""
        return f"LOCATION {literal(str(self._folder(layer, name)))}"

    @property
    def locks(self) -> Path:
        """The folder of the locks, by which one run keeps the others out."""
        return self.root / "locks"

    @contextmanager
    def creating(self, layer: Layer, name: str) -> Iterator[None]:
        """Lets one run at a time create a table of this name, or rename one to it, and removes the folder that a killed
        run left. Delta creates no table in a folder that has files."""
        folder = self._folder(layer, name)
        if holds_table(folder):
            yield
            return
        with locked(self._lock(layer, name), wait=True):
            if not holds_table(folder):
                shutil.rmtree(folder, ignore_errors=True)
            yield

    def trim_log(self, layer: Layer, name: str, *, keeps_versions: bool = False, read_from: int | None = None) -> None:
        """Deletes what is no longer needed of a table's log, as `log_folder.trim` describes it."""
        log_folder.trim(self._folder(layer, name) / "_delta_log", keeps_versions=keeps_versions, read_from=read_from)

    def remove_abandoned(self, layer: Layer) -> None:
        """Removes the folders that killed runs left of tables which they were creating: those of names that a run has
        locked. Other folders are somebody else's."""
        for folder in (self.root / layer).glob("*"):
            if holds_table(folder) or not folder.is_dir() or not self._lock(layer, folder.name).exists():
                continue
            with locked(self._lock(layer, folder.name), wait=False) as is_free:
                if is_free and _last_change(folder) < time.time() - _ABANDONED_AFTER_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def drop(self, layer: Layer, name: str) -> None:
        """Drops a Delta table with its folder."""
        Lake.drop(self, layer, name)
        folder = self._folder(layer, name)
        # First, and at once: a folder whose log lacks only its first commits, as a killed run left it, is an error.
        with suppress(OSError):
            (folder / "_delta_log").rename(folder / "_dropped_log")
        shutil.rmtree(folder, ignore_errors=True)

    def register(self) -> None:
        """Prepares the session: creates the schemas, and registers every Delta table with the session's catalog."""
        Lake.register(self)
        for layer in self.schemas:
            names = sorted(folder.name for folder in (self.root / layer).glob("*") if holds_table(folder))
            for part in sorted({"", *(name.rpartition(".")[0] for name in names)}):
                self._make_schema(layer, part)
            for name in names:
                self._register_table(layer, name)

    def _make_schema(self, layer: Layer, part: str) -> None:
        self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema(layer, part)}")

    def refresh(self) -> None:
        """Registers what other processes created or renamed since ``register``: a session's catalog is its own."""
        self._clear_delta_cache()
        for part in {folder.name.rpartition(".")[0] for folder in (self.root / Layer.LIVE).glob("*")} | {""}:
            for name in self.tables(Layer.LIVE, part):
                if not holds_table(self._folder(Layer.LIVE, name)):
                    self.spark.sql(f"DROP TABLE IF EXISTS {self.table(Layer.LIVE, name)}")
        self.register()

    def comment_on_view(self, view: str, comment: str) -> None:
        """Replaces the comment of a view. Spark's own catalog takes COMMENT ON for tables only."""
        self.spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('comment' = {literal(comment)})")

    def _register_table(self, layer: Layer, name: str) -> None:
        """Registers a table with the session's catalog, unless another run has renamed or dropped it meanwhile."""
        location = self.location(layer, name)
        try:
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS {self.table(layer, name)} USING delta {location}")
        except PySparkException as error:
            if error.getCondition() == _WITHOUT_COLUMNS:
                self._remove_without_columns(layer, name)
            elif holds_table(self._folder(layer, name)):
                raise

    def _remove_without_columns(self, layer: Layer, name: str) -> None:
        """Removes a table without columns, which earlier versions made where another run had renamed one meanwhile: no
        table can be renamed to it."""
        folder = self._folder(layer, name)
        if self.reads_only or not _has_no_columns(folder):  # or another run renamed it meanwhile: nothing to lock
            return
        # A user who may only read the lake leaves it there.
        with suppress(OSError), locked(self._lock(layer, name), wait=False) as is_free:
            if is_free and _has_no_columns(folder):  # another run may have put a table there since
                shutil.rmtree(folder, ignore_errors=True)

    def _rename(self, old: str, new: str) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table(Layer.LIVE, old)}")  # only of the catalog: the folder stays
        with self.creating(Layer.LIVE, new):
            self._folder(Layer.LIVE, old).rename(self._folder(Layer.LIVE, new))
        self._clear_delta_cache()
        self._register_table(Layer.LIVE, new)

    def _clear_delta_cache(self) -> None:
        """Clears what Delta remembers by folder: another table may use the folder soon."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def _folder(self, layer: Layer, name: str) -> Path:
        return self.root / layer / name

    def _lock(self, layer: Layer, name: str) -> Path:
        return self.locks / layer / name


def _has_no_columns(folder: Path) -> bool:
    """True if the only commit of a folder's table creates it without columns."""
    commits = list((folder / "_delta_log").glob("*.json"))
    try:
        return len(commits) == 1 and _NO_COLUMNS in commits[0].read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def _last_change(folder: Path) -> float:
    """Returns when something in a folder was last written, in seconds; the current time, if something goes away
    meanwhile."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return time.time()
