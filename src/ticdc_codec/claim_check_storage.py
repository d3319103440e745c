"""Claim-check objects: the large messages that TiCDC stores outside Kafka
(``large-message-handle-option=claim-check``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from ticdc_codec.errors import ConfigError

_FILE_NAME = re.compile(rb"(?!\.\.?$)[^/\0]{1,255}")
"""Valid file names, in UTF-8: no object has any other name."""


class StoredObjects(Mapping[str, bytes]):
    """The objects of a folder by the location that messages name. A location's last part is the file's name.

    ``storage_uri`` is ``claim-check-storage-uri``, as this machine sees it: a folder (``/Volumes/…`` on Databricks), or
    a URI of a file system that pyarrow opens (``s3://``, ``gs://``, ``abfss://``, ``hdfs://``, ``file://``), with the
    credentials that the machine has for it. None is an empty store.

    Raises ConfigError for a URI that cannot be opened, and for a store that cannot be read.
    """

    def __init__(self, storage_uri: str | None) -> None:
        self._shown = _shown(storage_uri or "")
        self._folder = None if storage_uri is None else _folder(storage_uri)

    def __getitem__(self, location: str) -> bytes:
        """Returns the object's bytes. Raises KeyError if it does not exist."""
        name = location.rstrip("/").rpartition("/")[2]
        if self._folder is None or not _FILE_NAME.fullmatch(name.encode(errors="replace")):
            raise KeyError(location)
        try:
            with self._folder.open_input_file(name) as stored:
                return bytes(stored.read())
        except FileNotFoundError:
            raise KeyError(location) from None
        except OSError as error:
            if _is_folder(self._folder, name):
                raise KeyError(location) from None
            # Not the message's fault: it is decoded when the store can be read again.
            raise ConfigError(f"claim-check-storage-uri: cannot read {name} in {self._shown}: {error}") from None

    def __iter__(self) -> Iterator[str]:
        if self._folder is not None:
            yield from (info.base_name for info in self._folder.get_file_info(fs.FileSelector("")))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ObjectStore:
    """Writes objects to ``storage_uri``, as in ``StoredObjects``. Creates a folder that does not exist.

    Raises ConfigError for a URI that cannot be opened, and for a store that cannot be written.
    """

    def __init__(self, storage_uri: str) -> None:
        self._shown = _shown(storage_uri)
        self._folder = _folder(storage_uri)
        with self._writing():
            self._folder.base_fs.create_dir(self._folder.base_path)

    def write(self, name: str, content: bytes) -> None:
        """Writes an object, or writes it again."""
        with self._writing(), self._folder.open_output_stream(name) as stream:
            stream.write(content)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(f"claim-check-storage-uri: cannot write into {self._shown}: {error}") from None


def _folder(storage_uri: str) -> fs.SubTreeFileSystem:
    if not urlsplit(storage_uri).scheme:
        return fs.SubTreeFileSystem(storage_uri, fs.LocalFileSystem())
    try:
        system, path = fs.FileSystem.from_uri(storage_uri)
    except (pa.ArrowException, OSError, ImportError) as error:
        raise ConfigError(
            f"claim-check-storage-uri: expected a folder of this machine or of /Volumes, or a URI that pyarrow opens "
            f"(s3, gs, abfss, hdfs), found {_shown(storage_uri)!r}: {str(error).replace(storage_uri, '…')}"
        ) from None
    return fs.SubTreeFileSystem(path, system)


def _shown(storage_uri: str) -> str:
    """Returns the URI without the key and secret that it may contain: before the host, where a secret may have a slash,
    and among the parameters, where TiCDC's own URIs have them."""
    address, _, parameters = storage_uri.partition("?")
    return re.sub("//.*@", "//…@", address) + ("?…" if parameters else "")


def _is_folder(store: fs.SubTreeFileSystem, name: str) -> bool:
    try:
        return bool(store.get_file_info(name).type is fs.FileType.Directory)
    except OSError:
        return False
