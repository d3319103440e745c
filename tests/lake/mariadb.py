"""A MariaDB server of a test's own: what there is of TiDB's SQL without TiDB."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql

from ticdc_local.broker import free_ports

PROGRAMS = ("mariadbd", "mariadb-install-db")
_SECONDS = 60


def missing() -> str | None:
    """What of MariaDB is not on this machine."""
    absent = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin") is None]
    return f"{' and '.join(absent)} not found: apt-get install mariadb-server" if absent else None


@contextmanager
def mariadb(folder: Path) -> Iterator[int]:
    """A running server with its data in ``folder``; gives its port. User root has no password."""
    data, port = folder / "data", free_ports(1)[0]
    own = ("--no-defaults", f"--datadir={data}", "--user=root")
    install = [_program("mariadb-install-db"), *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True)
    more = (f"--port={port}", f"--socket={folder}/s", f"--pid-file={folder}/pid", "--bind-address=127.0.0.1")
    small = ("--innodb-buffer-pool-size=64M", "--skip-log-bin", "--character-set-server=utf8mb4")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([_program("mariadbd"), *own, *more, *small], stdout=log, stderr=log)
    try:
        _wait(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(_SECONDS)


def connect(port: int, user: str = "root") -> Any:
    """A session with the settings that a session in TiDB gets."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user=user, autocommit=True, charset="utf8mb4")
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = ''")
    return connection


def _program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    assert found is not None
    return found


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            connect(port).close()
        except pymysql.err.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("mariadbd did not start")
