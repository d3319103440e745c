"""Claim-check objects: the large messages that TiCDC laid beside Kafka
(``large-message-handle-option=claim-check``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ticdc_lakehouse.errors import ConfigError


class StoredObjects(Mapping[str, bytes]):
    """The objects of a folder by the location that messages name. A location's last part is the file's name.

    ``storage_uri`` is ``claim-check-storage-uri``, as this machine sees it: a folder or ``file://`` URI,
    ``/Volumes/…`` on Databricks. None is a store that has nothing.
    """

    def __init__(self, storage_uri: str | None) -> None:
        self._folder = None if storage_uri is None else _folder(storage_uri)

    def __getitem__(self, location: str) -> bytes:
        """The object's bytes; KeyError if it is not there."""
        if self._folder is None:
            raise KeyError(location)
        try:
            return (self._folder / location.rstrip("/").rpartition("/")[2]).read_bytes()
        except OSError:
            raise KeyError(location) from None

    def __iter__(self) -> Iterator[str]:
        return iter(()) if self._folder is None else (path.name for path in self._folder.iterdir())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _folder(storage_uri: str) -> Path:
    parts = urlsplit(storage_uri)
    if parts.scheme not in ("", "file"):
        raise ConfigError(
            f"claim-check-storage-uri: expected a folder of this machine or of /Volumes, found {storage_uri!r}: "
            "mount the bucket and name the folder"
        )
    return Path(parts.path)
