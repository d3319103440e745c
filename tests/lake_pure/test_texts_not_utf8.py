"""A text in TiDB that is not UTF-8 (it takes any bytes with ``tidb_skip_utf8_check``), as PyMySQL reads it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread
from typing import Any

import pytest
from pymysql.connections import Connection

from ticdc_codec.errors import ApplyError
from ticdc_lakehouse.tidb.session import Address, SnapshotReader

_GREETING = (
    b"\x0a8.0.11-TiDB\0" + bytes(4) + b"saltsalt\0\0\x82\x21\2\0\x08\0\x15" + bytes(10) + b"saltsaltsalt\0"
    b"mysql_native_password\0"
)
_OK, _EOF = b"\0\0\0\2\0\0\0", b"\xfe\0\0\2\0"
_COLUMN = (
    b"\3def" + bytes(3) + b"\1v\0\x0c" + (45).to_bytes(2, "little") + (100).to_bytes(4, "little") + b"\xfd" + bytes(5)
)
"""A VARCHAR in utf8mb4."""


@contextmanager
def tidb(text: bytes) -> Iterator[Address]:
    """A server whose SELECTs have one row with this text, and whose ``SELECT 1`` has the number."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        Thread(target=_serve, args=(server, text), daemon=True).start()
        yield Address(host="127.0.0.1", port=server.getsockname()[1], user="reader")


def _serve(server: socket.socket, text: bytes) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:  # the test has ended
            return
        with client, suppress(ConnectionError):  # the reader closes it in the middle of an answer
            _answer(client, text)


def _answer(client: socket.socket, text: bytes) -> None:
    _send(client, 0, _GREETING)
    client.recv(1000)
    _send(client, 2, _OK)
    while query := client.recv(1000):
        value = b"1" if query.endswith(b"SELECT 1") else text
        answer = [b"\1", _COLUMN, _EOF, bytes([len(value)]) + value, _EOF]
        for number, packet in enumerate(answer if b"SELECT" in query else [_OK], start=1):
            _send(client, number, packet)


def _send(client: socket.socket, number: int, packet: bytes) -> None:
    client.sendall(len(packet).to_bytes(3, "little") + bytes([number]) + packet)


def test_a_text_that_is_not_utf_8_is_an_error_of_its_query_alone() -> None:
    """It blocks its table, or fails the comparison of it, and no other."""
    opened: list[Connection[Any]] = []

    def connect() -> Connection[Any]:
        opened.append(address.connect())
        return opened[-1]

    with tidb(b"caf\xe9") as address, closing(SnapshotReader(connect=connect)) as source:
        with pytest.raises(ApplyError, match=r"TiDB: a text that is not UTF-8, b'caf\\xe9': SELECT `v` FROM `d`\.`t`"):
            source.query("SELECT `v` FROM `d`.`t`")
        assert (source._idle, [each.open for each in opened]) == ([], [False])
        assert source.query("SELECT 1") == [("1",)]
