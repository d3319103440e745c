"""TiDB as a source of rows: sessions that read at one exact TSO and write nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import pymysql
from pymysql.connections import Connection

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.tso import with_time


class NoSuchTableError(ApplyError):
    """TiDB has no table of a name."""


Secret = Callable[[str, str], str]
"""Text of the secret with a scope and a key."""
Row = tuple[Any, ...]

DSN_FORM = "mysql://USER@HOST:4000/?secret=SCOPE/KEY"
_EXPECTED = {
    "secret": (re.compile(r"[^/\s]+/[^/\s]+"), "SCOPE/KEY"),
    "tls": (re.compile("true|false", re.IGNORECASE), "true or false"),
    "ca": (re.compile(".+"), "the file of a certificate authority"),
}
"""Form of each option's value, and what it is."""
_SESSION = (
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = %(zone)s, sql_mode = '', tidb_read_staleness = ''",
    "SET SESSION tidb_snapshot = %(tso)s",
)
"""Without them TIMESTAMPs are in the server's zone, zero dates are NULL in conditions, and tidb_snapshot is refused."""
_UTC = "+00:00"
"""Every server knows it by this name."""
_READ_SECONDS = 900
"""Until TiDB sends anything: a checksum of many rows takes minutes, and one that never answers must not hold gold."""
_NO_SUCH_VARIABLE, _GC = 1193, 8055
_NO_SUCH_TABLE = (1146, 1049)
"""No such table; no such database."""
_MISTAKES = (1044, 1045, 1142, 1143, 2003)
"""Access denied, to the database, a table or a column; no connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The parts of a DSN."""

    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    ca: str | None = None
    """File of the certificate authority; given, or with ``tls=true``, the connection is encrypted."""
    tls: bool = False

    def connect(self) -> Connection[Any]:
        """Opens a new connection, of which nothing is set yet."""
        ssl = {"ca": self.ca} if self.ca else {"check_hostname": False} if self.tls else None
        password = self.password.encode()  # of text PyMySQL sends Latin-1
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=password,
            ssl=ssl,
            connect_timeout=20,
            read_timeout=_READ_SECONDS,
            write_timeout=60,
        )


def address_of(dsn: str, secret: Secret) -> Address:
    """Returns the address that a DSN names, with the password from the secret that it refers to.

    >>> address_of("mysql://reader@tidb:4000/?secret=lake/tidb", lambda scope, key: f"{scope}'s {key}").password
    "lake's tidb"

    Raises ConfigError for one of another form, and for a password in plain text.
    """
    parts, port = _parts(dsn)
    if parts.scheme != "mysql" or not parts.hostname or not parts.username:
        raise ConfigError(f"dsn: expected {DSN_FORM}, found host {parts.hostname!r} and user {parts.username!r}")
    if parts.password is not None:
        raise ConfigError(f"dsn: expected a reference to the password, {DSN_FORM}, found a password")
    if parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(f"dsn: expected {DSN_FORM}, which names no database and has no #, found more after the host")
    options = _options(parts.query)
    reference = options.get("secret")
    return Address(
        host=parts.hostname,
        port=port or 4000,
        user=unquote(parts.username),
        password="" if reference is None else secret(*reference.split("/")),
        ca=options.get("ca"),
        tls=options.get("tls", "false").lower() == "true",
    )


def _parts(dsn: str) -> tuple[SplitResult, int | None]:
    """Returns the DSN's parts, and its port."""
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:  # the text is not shown: what is in place of the port may be a password
        raise ConfigError(f"dsn: expected {DSN_FORM}, found an invalid host or port")
    return parts, port


def _options(query: str) -> dict[str, str]:
    """Returns the options. Raises ConfigError for an unknown one or a wrong value."""
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    given = [(unquote(name), unquote(value)) for name, _, value in pairs]  # not parse_qsl, which reads + as a space
    options = dict(given)
    if unknown := options.keys() - _EXPECTED.keys():
        raise ConfigError(f"dsn: {', '.join(sorted(unknown))}: unknown option; there are secret, tls and ca")
    for name, value in given:
        if not _EXPECTED[name][0].fullmatch(value):
            found = "something else" if name == "secret" else repr(value)  # it may be the secret itself
            raise ConfigError(f"dsn: {name}: expected {_EXPECTED[name][1]}, found {found}")
    if len(options) < len(given):
        raise ConfigError("dsn: an option is given twice: expected secret, tls and ca once each")
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Opens sessions that read the database at one TSO."""

    address: Address
    tso: int
    time_zone: str = "UTC"
    """The zone of TIMESTAMP texts."""

    def connect(self) -> Connection[Any]:
        """Opens a session at the TSO. Raises ConfigError if TiDB has no versions that old, or does not know the TSO,
        and ApplyError if it is at another one."""
        connection = _connected(self.address)
        try:
            with connection.cursor() as cursor:
                zone = _UTC if self.time_zone == "UTC" else self.time_zone
                for statement in _SESSION:
                    cursor.execute(statement, {"zone": zone, "tso": self.tso})
                # After an error the session would continue and read the newest data.
                cursor.execute("SELECT @@tidb_snapshot")
                answer = cursor.fetchone()
        except pymysql.err.MySQLError as error:
            connection.close()
            raise _refusal(error, self.tso) from None
        if answer is None or str(answer[0]) != str(self.tso):
            connection.close()
            raise ApplyError(f"TiDB: tidb_snapshot: expected {self.tso}, found {answer}: nothing is read")
        return connection


SnapshotAt = Callable[[int], Snapshot]
"""Returns the snapshot at a TSO."""


def _connected(address: Address) -> Connection[Any]:
    try:
        return address.connect()
    except (pymysql.err.MySQLError, OSError, UnicodeError) as error:  # UnicodeError: no host can have that name
        what = f"{address.user}@{address.host}:{address.port}" + (f" with ca={address.ca}" if address.ca else "")
        raise ConfigError(f"dsn: {what}: cannot connect: {_message(error)}") from None


def _refusal(error: pymysql.err.MySQLError, tso: int) -> ConfigError:
    code = error.args[0] if error.args else None
    if code == _GC:
        return ConfigError(
            f"TiDB has no versions of {with_time(tso)} any more: run gold, or let TiDB keep them longer "
            "(tidb_gc_life_time)"
        )
    if code == _NO_SUCH_VARIABLE:
        return ConfigError("dsn: expected a TiDB, which reads at a TSO, found another server")
    return ConfigError(f"TiDB cannot read at {with_time(tso)}: {_message(error)}")


def _message(error: Exception) -> str:
    return str(error.args[-1]) if error.args else str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReader:
    """Reads a database at one point in time, with several threads."""

    connect: Callable[[], Connection[Any]]
    threads: int = 4
    sleep: float = 0.0
    """Seconds that a thread rests after each query."""
    _idle: list[Connection[Any]] = field(default_factory=list)
    """Connections that no thread uses; appending and popping are atomic."""

    def query(self, query: str) -> list[Row]:
        """Returns the rows of a query's answer. Raises ConfigError where the user may not read, NoSuchTableError where
        there is nothing to read, ApplyError for all else."""
        with _errors(query):
            connection = self._idle.pop() if self._idle else self.connect()
            try:
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    rows = list(cursor.fetchall())
            except (pymysql.err.MySQLError, UnicodeDecodeError):
                connection.close()
                raise
        self._idle.append(connection)
        time.sleep(self.sleep)
        return rows

    def query_all(self, queries: Sequence[str]) -> list[list[Row]]:
        """Returns the answers to queries, in their order."""
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(self.query, queries))

    def close(self) -> None:
        """Closes the connections."""
        while self._idle:
            self._idle.pop().close()


@contextmanager
def _errors(query: str) -> Iterator[None]:
    try:
        yield
    except pymysql.err.MySQLError as error:
        code = error.args[0] if error.args else None
        kind = ConfigError if code in _MISTAKES else NoSuchTableError if code in _NO_SUCH_TABLE else ApplyError
        raise kind(f"TiDB: {_message(error)}: {query[:200]}") from None
    except UnicodeDecodeError as error:
        raise ApplyError(f"TiDB: a text that is not UTF-8, {error.object[:40]!r}: {query[:200]}") from None


def text_of(value: object) -> str | None:
    """Returns a value of an answer as text."""
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)
