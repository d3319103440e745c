"""``dbutils.fs`` on a laptop, and what all parts of ``dbutils`` share."""

# ruff: noqa: N815 (names are those of Databricks)

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ticdc_codec.errors import ConfigError


class Part:
    """One part of ``dbutils``; its public methods are what is supported."""

    _name = "dbutils"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        supported = ", ".join(member for member in dir(self) if not member.startswith("_"))
        raise ConfigError(f"{self._name}.{name}: not supported locally; {self._name} has {supported}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What ``dbutils.fs.ls`` gives."""

    path: str
    name: str
    """Ends in ``/`` for a folder."""
    size: int
    modificationTime: int
    """Milliseconds since the Unix epoch."""


class FileSystem(Part):
    """``dbutils.fs`` under one local folder: ``/Volumes/…`` and ``dbfs:/…`` are paths in it."""

    _name = "dbutils.fs"

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def ls(self, path: str) -> list[FileInfo]:
        """The entries of a folder, by name."""
        return [_info(path, entry) for entry in sorted(self._present(path).iterdir())]

    def mkdirs(self, path: str) -> bool:
        """Make a folder and those above it."""
        self._local(path).mkdir(parents=True, exist_ok=True)
        return True

    def rm(self, path: str, recurse: bool = False) -> bool:
        """Remove a file, or with ``recurse`` a folder. Gives whether there was one."""
        local = self._local(path)
        if not local.exists():
            return False
        if not local.is_dir():
            local.unlink()
        elif recurse:
            shutil.rmtree(local)
        else:
            local.rmdir()
        return True

    def cp(self, source: str, target: str, recurse: bool = False) -> bool:
        """Copy a file, or with ``recurse`` a folder."""
        local, destination = self._present(source), self._local(target)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if not local.is_dir():
            shutil.copyfile(local, destination / local.name if destination.is_dir() else destination)
        elif recurse:
            shutil.copytree(local, destination, dirs_exist_ok=True)
        else:
            raise ConfigError(f"dbutils.fs.cp: {source}: is a folder; give recurse=True")
        return True

    def mv(self, source: str, target: str, recurse: bool = False) -> bool:
        """Move a file, or with ``recurse`` a folder."""
        self.cp(source, target, recurse)
        return self.rm(source, recurse)

    def put(self, file: str, contents: str, overwrite: bool = False) -> bool:
        """Write a text file."""
        local = self._local(file)
        if local.exists() and not overwrite:
            raise ConfigError(f"dbutils.fs.put: {file}: is there already; give overwrite=True")
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_text(contents, encoding="utf-8")
        return True

    def head(self, file: str, max_bytes: int = 65536) -> str:
        """The first bytes of a file as text."""
        with self._present(file).open("rb") as opened:
            return opened.read(max_bytes).decode("utf-8", errors="replace")

    def _present(self, path: str) -> Path:
        local = self._local(path)
        if not local.exists():
            raise ConfigError(f"dbutils.fs: {path}: there is no such file or folder (locally {local})")
        return local

    def _local(self, path: str) -> Path:
        """Where a path lies. A path that is under the local folder already is taken as it is."""
        plain = path.removeprefix("dbfs:")
        if not plain.startswith("/"):
            raise ConfigError(f"dbutils.fs: {path}: expected /Volumes/…, dbfs:/… or another path from /")
        if Path(plain).is_relative_to(self._root):
            local = Path(plain).resolve()
        else:
            local = (self._root / plain.lstrip("/")).resolve()
        if not local.is_relative_to(self._root):
            raise ConfigError(f"dbutils.fs: {path}: leads out of {self._root}")
        return local


def _info(folder: str, entry: Path) -> FileInfo:
    name = f"{entry.name}/" if entry.is_dir() else entry.name
    status = entry.stat()
    size = 0 if entry.is_dir() else status.st_size
    path = f"{folder.rstrip('/')}/{name}"
    return FileInfo(path=path, name=name, size=size, modificationTime=status.st_mtime_ns // 1_000_000)
