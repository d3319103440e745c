"""``make setup`` and ``make jars``: what keeps them from their end is said, and the next run does without it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ticdc_local import set_up

PROJECT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
# A Python that can make environments, or does what Debian's does without python3-venv.
case "$*" in
  "-m venv .venv")
    mkdir -p .venv/bin && cp "$0" .venv/bin/python || exit 1
    if [ -e without-ensurepip ]; then echo "apt install python3.12-venv"; exit 1; fi
    touch .venv/has-pip ;;
  "-m pip"*) [ -e .venv/has-pip ] ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with what set-up reads, and a Python to set it up with."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make_setup(project: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "setup", f"PYTHON={project}/python"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_an_environment_that_cannot_be_made_is_not_left_behind(project: Path) -> None:
    (project / "without-ensurepip").touch()
    failed = make_setup(project)
    assert failed.returncode != 0
    assert "apt install python3.12-venv" in failed.stdout
    assert not (project / ".venv").exists()
    (project / "without-ensurepip").unlink()
    assert make_setup(project).returncode == 0
    assert (project / ".venv" / "ready").exists()


def test_an_environment_without_pip_is_made_again(project: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=project, check=True)
    made = make_setup(project)
    assert made.returncode == 0, made.stderr
    assert (project / ".venv" / "has-pip").exists()
    (project / ".venv" / "own").touch()
    os.utime(project / "requirements.lock", (time.time() + 10, time.time() + 10))
    assert make_setup(project).returncode == 0
    assert (project / ".venv" / "own").exists(), "one with pip is not"


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TICDC_LAKE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(sys, "argv", ["set_up"])
    assert set_up.main() == 2
    assert capsys.readouterr() == (
        "",
        f"{tmp_path}/file/cache: cannot be written: Not a directory; name another folder: TICDC_LAKE_CACHE=FOLDER\n",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_while_jars_are_fetched_is_one_line_and_leaves_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as proxy:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "TICDC_LAKE_CACHE": str(tmp_path),
            "HTTPS_PROXY": f"http://127.0.0.1:{proxy.getsockname()[1]}",
            "DEFAULT_ARTIFACT_REPOSITORY": "https://maven.invalid/",
        }
        command = [sys.executable, "-m", "ticdc_local.set_up"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            proxy.settimeout(60)
            with proxy.accept()[0]:  # the resolver waits for it now
                process.send_signal(number)
                said = process.communicate(timeout=30)[1]
    assert (process.returncode, said) == (130, "make jars: interrupted; run it again\n")
    assert not list(tmp_path.glob("resolve-*"))
