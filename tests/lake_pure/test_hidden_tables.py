"""Tables of which TiDB's information_schema shows no columns: missing, or hidden from a user without a privilege.

A scripted server has what TiDB answers then: no rows, and an error for the SELECT.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_lakehouse.ops.verify.results import Result
from ticdc_lakehouse.ops.verify.row_differences import DifferenceKind
from ticdc_lakehouse.ops.verify.verification import VerifySettings, _verify_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.columns import source_columns
from ticdc_lakehouse.tidb.session import Address, SnapshotReader

NAME = TableName("d", "t")
SELECT = "SELECT 1 FROM `d`.`t` LIMIT 0"
DENIED = "SELECT command denied to user 'reader'@'%' for table 't'"


def packets(first: int, *payloads: bytes) -> bytes:
    """What a server sends, its packets numbered from ``first`` on."""
    return b"".join(len(p).to_bytes(3, "little") + bytes([first + at]) + p for at, p in enumerate(payloads))


OK, EOF = b"\0\0\0\2\0\0\0", b"\xfe\0\0\2\0"


def error(code: int, state: str, text: str) -> list[bytes]:
    return [b"\xff" + code.to_bytes(2, "little") + b"#" + state.encode() + text.encode()]


def no_rows(columns: int) -> list[bytes]:
    """An answer without rows, all of whose columns are texts."""
    names = (f"c{number}".encode() for number in range(columns))
    texts = (b"\x03def", b"\0", b"\0", b"\0")
    kind = b"\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0"
    return [
        bytes([columns]),
        *(b"".join((*texts, bytes([len(name)]) + name, b"\0", kind)) for name in names),
        EOF,
        EOF,
    ]


def serve(server: socket.socket, selected: Sequence[bytes], asked: list[str]) -> None:
    """Answers what clients ask, one client after another, until the server closes."""
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            greeting = b"\x0a8.0.11-TiDB\0" + bytes(4) + b"saltsalt\0" + (0x8200).to_bytes(2, "little")
            greeting += b"\x21\2\0\x08\0\x15" + bytes(10) + b"saltsaltsalt\0" + b"mysql_native_password\0"
            client.sendall(packets(0, greeting))
            client.recv(1000)
            client.sendall(packets(2, OK))
            while (said := client.recv(10_000)[4:]) and said[:1] == b"\x03":
                query = said[1:].decode().strip()
                if query.startswith("SELECT"):
                    asked.append(query)
                    client.sendall(packets(1, *(selected if query == SELECT else no_rows(5))))
                else:
                    client.sendall(packets(1, OK))


@contextmanager
def tidb(*selected: bytes) -> Iterator[tuple[SnapshotReader, list[str]]]:
    """A session in a server that shows no columns, and answers the SELECT with ``selected``; and what was asked."""
    asked: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        server = socket.create_server(("127.0.0.1", 0))
        pool.submit(serve, server, selected, asked)
        try:
            address = Address(host="127.0.0.1", port=server.getsockname()[1], user="reader")
            with closing(SnapshotReader(connect=address.connect)) as source:
                yield source, asked
        finally:
            server.shutdown(socket.SHUT_RDWR)
            server.close()


@pytest.mark.parametrize(
    ("code", "state", "text"),
    [(1146, "42S02", "Table 'd.t' doesn't exist"), (1049, "42000", "Unknown database 'd'")],
)
def test_a_table_that_does_not_exist_is_missing(code: int, state: str, text: str) -> None:
    with tidb(*error(code, state, text)) as (source, asked):
        assert source_columns(source, NAME) is None
    assert asked[-1] == SELECT


@pytest.mark.parametrize(
    ("code", "text"), [(1142, DENIED), (1044, "Access denied for user 'reader'@'%' to database 'd'")]
)
def test_a_table_that_the_user_may_not_read_is_not_missing(code: int, text: str) -> None:
    with tidb(*error(code, "42000", text)) as (source, _), pytest.raises(ConfigError) as found:
        source_columns(source, NAME)
    assert str(found.value) == f"TiDB: {text}: {SELECT}"


def test_a_table_that_can_be_read_has_columns() -> None:
    with tidb(*no_rows(1)) as (source, _), pytest.raises(ApplyError, match="does not show its columns"):
        source_columns(source, NAME)


def test_only_a_table_that_is_missing_is_a_difference() -> None:
    (defined,) = tables_from_sql("CREATE TABLE d.t (k int PRIMARY KEY);", source="test")
    state = TableState(lake_name="t", stable_id="t", version=3, applied_tso=7)
    definition = Definition(table=defined, commit_ts=0, origin=Origin.FILE, lake_name="t", stable_id="t")
    before = Published(tso=7, tables={NAME: state}, definitions={"t": definition})
    config, settings = GoldConfig(feed="f", time_zone="UTC"), VerifySettings()
    with tidb(*error(1146, "42S02", "Table 'd.t' doesn't exist")) as (source, _):
        result, work = _verify_table(None, config, source, before, NAME, settings)  # type: ignore[arg-type]
    assert (result.result, work, [each.kind for each in result.differences]) == (
        Result.DIFFERENT,
        None,
        [DifferenceKind.TABLE],
    )
    with tidb(*error(1142, "42000", DENIED)) as (source, _), pytest.raises(ConfigError, match=DENIED):
        _verify_table(None, config, source, before, NAME, settings)  # type: ignore[arg-type]
