"""Spark's classes are read from the archive that set-up makes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ticdc_local import launch
from ticdc_local.java import Java
from ticdc_local.launch import archive_file, reading_options, writing_options
from ticdc_local.set_up import make_archive

START = """
import sys
from pathlib import Path
from ticdc_local.session import local_session
print(local_session(Path(sys.argv[1])).range(3).count())
"""


@pytest.fixture
def java(tmp_path: Path) -> Java:
    executable = tmp_path / "java"
    executable.touch()
    return Java(executable=executable, version=17, source="PATH")


@pytest.mark.long
def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    archive = make_archive()
    log = tmp_path / "classes.log"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": f"-Xlog:class+load:file={log}"}
    command = [sys.executable, "-c", START, str(tmp_path / "lake")]
    started = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert archive.is_file()
    assert started.stdout == "3\n"
    lines = log.read_text().splitlines()
    loaded = [line for line in lines if " org.apache.spark." in line and "$$Lambda" not in line]
    shared = [line for line in loaded if line.endswith("source: shared objects file (top)")]
    assert len(shared) > 0.9 * len(loaded) > 1000


def test_another_java_and_other_jars_need_another_archive(java: Java) -> None:
    first = archive_file(java, "one.jar")
    assert archive_file(java, "one.jar") == first
    assert archive_file(java, "two.jar") != first
    os.utime(java.executable, (1, 1))
    assert archive_file(java, "one.jar") != first


def test_a_missing_archive_is_done_without(tmp_path: Path) -> None:
    assert reading_options(tmp_path / "classes.jsa") == ()


def test_a_folder_may_have_spaces_in_its_name(tmp_path: Path) -> None:
    archive = tmp_path / "my project" / "classes.jsa"
    archive.parent.mkdir()
    archive.touch()
    assert shlex.split(" ".join(reading_options(archive)))[0] == f"-XX:SharedArchiveFile={archive}"
    assert shlex.split(" ".join(writing_options(archive)))[0] == f"-XX:ArchiveClassesAtExit={archive}"


def test_an_archive_lies_in_the_python_environment(java: Java, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch.sys, "prefix", str(tmp_path / "environment"))
    assert archive_file(java, "one.jar").is_relative_to(tmp_path / "environment")
