"""The lock and the cache of jars; nothing is fetched here but from a stand-in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local import jars
from ticdc_local.jars import Group, Jar, jar_files, locked, missing
from ticdc_local.java import Java

CONTENT = b"not really a jar"
ONE = Jar(
    organisation="org.example",
    name="one",
    version="1.0",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    group=Group.SPARK,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a lock of one jar."""
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "find_java", lambda: Java(executable=Path("java"), version=17, source="PATH"))
    return tmp_path


def serve(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[list[str]]:
    """A resolver that gives every jar this content; returns what it was asked for."""
    asked: list[list[str]] = []

    def resolve(coordinates: Sequence[str], folder: Path, _: Java) -> None:
        asked.append(list(coordinates))
        (folder / "jars").mkdir()
        (folder / "jars" / ONE.file_name).write_bytes(content)

    monkeypatch.setattr(jars, "locked", lambda _: (ONE,))
    monkeypatch.setattr(jars, "resolve", resolve)
    return asked


def test_the_lock_names_all_jars_exactly() -> None:
    assert [len(locked(group)) for group in Group] == [6, 46]
    for group in Group:
        assert len({jar.path for jar in locked(group)}) == len(locked(group))
        assert all(len(jar.sha256) == 64 for jar in locked(group))


def test_scala_library_is_pysparks_own() -> None:
    scala = [jar for jar in locked(Group.BROKER) if jar.name == "scala-library"]
    assert missing(scala) == []
    assert scala[0].path.parent == jars.pyspark_folder() / "jars"


def test_what_is_missing_is_fetched_once(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    asked = serve(monkeypatch, CONTENT)
    assert jar_files(Group.SPARK) == (cache / "jars" / "org.example_one-1.0.jar",)
    assert jar_files(Group.SPARK)[0].read_bytes() == CONTENT
    assert asked == [["org.example:one:1.0"]]
    assert [path.name for path in cache.iterdir()] == ["jars"]


def test_a_fetched_file_with_another_checksum_does_not_enter_the_cache(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    serve(monkeypatch, b"something else")
    with pytest.raises(ConfigError, match=r"org\.example:one:1\.0"):
        jar_files(Group.SPARK)
    assert list((cache / "jars").iterdir()) == []


def test_a_cached_file_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, CONTENT)
    jar_files(Group.SPARK)
    ONE.path.write_bytes(b"changed")
    with pytest.raises(ConfigError) as caught:
        jar_files(Group.SPARK)
    for part in (str(ONE.path), ONE.sha256, hashlib.sha256(b"changed").hexdigest(), "Delete the file"):
        assert part in str(caught.value)
