"""A TiDB server of a test's own with its embedded store, which ``make verify-test`` built from go.mod."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pymysql

from ticdc_lakehouse.tidb.session import Address, Snapshot
from ticdc_local.broker import free_ports

_SECONDS = 180
_NO_GC = "INSERT INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20200101-00:00:00.000 +0000', '')"
"""Without that row the embedded store refuses to read at a TSO."""


def server() -> Path | None:
    """The program, None where ``make verify-test`` has not built it."""
    path = os.environ.get("TIDB_SERVER")
    return Path(path).absolute() if path and Path(path).is_file() else None


def restorer() -> Path | None:
    """The program that writes SQL as TiCDC sends it, built beside the server; None where it is not."""
    path = (server() or Path()).with_name("restore")
    return path if path.is_file() else None


@dataclass(frozen=True, slots=True)
class TiDB:
    """A running server. User root has no password."""

    address: Address

    def connect(self) -> Any:
        """A session that writes."""
        connection = pymysql.connect(
            host=self.address.host, port=self.address.port, user="root", autocommit=True, charset="utf8mb4"
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = '', tidb_enable_clustered_index = ON")
        return connection

    def execute(self, *statements: str) -> int:
        """Run statements; gives the commit_ts of the last one that wrote rows."""
        connection = self.connect()
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            cursor.execute("SELECT @@tidb_last_txn_info")
            (info,) = cursor.fetchone()
        connection.close()
        return int(orjson.loads(info or "{}").get("commit_ts", 0))

    def tso(self) -> int:
        """A TSO that is after all that was committed."""
        connection = self.connect()
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT @@tidb_current_ts")
            (tso,) = cursor.fetchone()
        connection.close()
        return int(tso)

    def at(self, tso: int) -> Snapshot:
        """Sessions that read at a TSO."""
        return Snapshot(address=self.address, tso=tso)

    @property
    def dsn(self) -> str:
        """As ``verify-source`` takes it."""
        return f"mysql://root@{self.address.host}:{self.address.port}/"


@contextmanager
def tidb(program: Path, folder: Path) -> Iterator[TiDB]:
    """A running server with its data in ``folder``."""
    port = free_ports(1)[0]
    options = ["-store", "unistore", "-path", str(folder / "data"), "-host", "127.0.0.1", "-P", str(port)]
    quiet = ["-report-status=false", "-L", "error", "-log-file", str(folder / "log"), "-socket", str(folder / "s")]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([program, *options, *quiet], stdout=output, stderr=output, cwd=folder)
    try:
        running = TiDB(Address(host="127.0.0.1", port=port, user="root"))
        _wait(running, process, folder / "output")
        running.execute(_NO_GC)
        yield running
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _wait(running: TiDB, process: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            running.connect().close()
        except pymysql.err.OperationalError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"tidb-server did not start: {output.read_text()[-2000:]}")
