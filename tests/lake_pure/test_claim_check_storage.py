"""Stored objects, wherever the changefeed laid them."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ticdc_codec.claim_check_storage import ObjectStore, StoredObjects
from ticdc_codec.errors import ConfigError

OBJECT = bytes(range(256)) * 100
"""Larger than what is read at once of a name."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a b.json").write_bytes(OBJECT)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_objects_are_read_from_a_folder(folder: Path, scheme: str) -> None:
    objects = StoredObjects(f"{scheme}{folder}")
    assert objects["s3://elsewhere/cdc/a b.json"] == OBJECT
    assert sorted(objects) == ["a b.json", "folder"]


@pytest.mark.parametrize(
    "location", ["b.json", "", "/", ".", "..", "a/..", "a\0b", "n" * 256, "é" * 200, "folder", "s3://bucket/b.json"]
)
def test_a_missing_object_raises_key_error(folder: Path, location: str) -> None:
    for objects in (StoredObjects(str(folder)), StoredObjects(None)):
        with pytest.raises(KeyError):
            objects[location]


def test_without_a_uri_there_are_no_objects() -> None:
    assert dict(StoredObjects(None)) == {}


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_objects_are_written_into_a_folder_that_is_made_for_them(tmp_path: Path, scheme: str) -> None:
    uri = f"{scheme}{tmp_path}/new/folder"
    store = ObjectStore(uri)
    for content in (b"first", OBJECT):
        store.write("a b.json", content)
    assert dict(StoredObjects(uri)) == {"a b.json": OBJECT}


def test_a_store_that_cannot_be_written_is_named(folder: Path) -> None:
    file = folder / "a b.json"
    with pytest.raises(ConfigError, match=f"claim-check-storage-uri: cannot write into {file}/new: "):
        ObjectStore(f"{file}/new")
    with pytest.raises(ConfigError, match=f"claim-check-storage-uri: cannot write into {folder}: "):
        ObjectStore(str(folder)).write("folder", OBJECT)


@pytest.mark.parametrize("uri", ["ftp://host/cdc", "http://host/cdc"])
def test_a_uri_that_cannot_be_opened_is_named(uri: str) -> None:
    with pytest.raises(ConfigError, match=f"claim-check-storage-uri: expected a folder .* found '{uri}'"):
        StoredObjects(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/cdc?access-key=key&secret-access-key=hidden",  # as TiCDC's own storage URIs
        "s3://key:hid/den@bucket/cdc",
        "s3://key:hidden@buck et/cdc",
        "azure://account:hidden@container/cdc",
        "abfss://c@account.dfs.core.windows.net/cdc?sas-token=hidden",
    ],
)
def test_a_uri_that_cannot_be_opened_is_named_without_its_secrets(uri: str) -> None:
    for opened in (StoredObjects, ObjectStore):
        with pytest.raises(ConfigError) as error:
            opened(uri)
        assert "hid" not in str(error.value)


class Bucket(BaseHTTPRequestHandler):
    """An object store with one object that anybody may read, and one that nobody may."""

    def do_HEAD(self) -> None:
        status = {"/bucket/cdc/a.json": 200, "/bucket/cdc/closed.json": 403}.get(self.path, 404)
        self.send_response(status)
        self.send_header("Content-Length", str(len(OBJECT) if status == 200 else 0))
        self.end_headers()

    def do_GET(self) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = OBJECT[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        yield f"s3://key:secret@bucket/cdc?endpoint_override={address}&scheme=http&region=here"
        server.shutdown()


def test_objects_are_read_from_an_object_store(bucket: str) -> None:
    objects = StoredObjects(bucket)
    assert objects["cdc/a.json"] == OBJECT
    with pytest.raises(KeyError):
        objects["cdc/b.json"]


def test_a_store_that_cannot_be_read_is_not_taken_for_an_empty_one(bucket: str) -> None:
    with pytest.raises(ConfigError, match=r"claim-check-storage-uri: cannot read closed\.json in s3://…@bucket/cdc"):
        StoredObjects(bucket)["cdc/closed.json"]
