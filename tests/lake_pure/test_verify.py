"""Comparison with TiDB without either side: addresses, chunks, SQL texts, and what of two rows differs."""

from __future__ import annotations

import re
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from ticdc_codec.errors import ApplyError, ConfigError
from ticdc_codec.event import Column
from ticdc_codec.mysql_type import parse_type
from ticdc_lakehouse.ops.verify.chunk import Chunk, has_common_order, key_ranges, range_number_sql
from ticdc_lakehouse.ops.verify.compared_table import Checksum, ComparedTable, compared_table
from ticdc_lakehouse.ops.verify.comparison import (
    DifferentRows,
    bucket_digits,
    bucket_groups,
    quantiles,
    without_moved,
)
from ticdc_lakehouse.ops.verify.differences import Differences, column_differences
from ticdc_lakehouse.ops.verify.results import Result, TableResult, Verified
from ticdc_lakehouse.ops.verify.row_differences import Difference, DifferenceKind, row_differences
from ticdc_lakehouse.ops.verify.verification import VerifySettings, _unrepairable, _verify_table
from ticdc_lakehouse.planning.planning_input import GoldConfig
from ticdc_lakehouse.planning.published_state import Definition, Origin, Published, TableState
from ticdc_lakehouse.schema.definition import Table, table_from_wire
from ticdc_lakehouse.schema.names import TableName
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.tidb.columns import SourceColumn, source_columns, source_literal
from ticdc_lakehouse.tidb.session import Address, NoSuchTableError, Snapshot, SnapshotReader, address_of


def secret(scope: str, key: str) -> str:
    return f"{scope}+{key}"


def table(create: str, collation: str = "utf8mb4_bin", **more: str) -> ComparedTable:
    """Of a CREATE TABLE, with TiDB's columns as it says."""
    (defined,) = tables_from_sql(f"USE d; {create};", source="test")
    types = {column.name: column.type for column in defined.sent} | {n: parse_type(t) for n, t in more.items()}
    columns = [
        SourceColumn(name=n, type=t, character_set="utf8mb4", collation=collation if "char" in t.name else None)
        for n, t in types.items()
    ]
    return compared_table(defined, "lake.t VERSION AS OF 3", columns)[0]


def test_a_dsn_refers_to_its_password() -> None:
    found = address_of("mysql://the%20reader@db.example/?secret=lake/tidb&ca=/ca.pem", secret)
    assert found == Address(host="db.example", port=4000, user="the reader", password="lake+tidb", ca="/ca.pem")
    assert "lake+tidb" not in repr(found)
    assert address_of("mysql://root@127.0.0.1:4001", secret).password == ""
    assert [address_of(f"mysql://root@db/?tls={text}", secret).tls for text in ("TRUE", "false")] == [True, False]


def test_the_options_of_a_dsn_are_read_as_those_of_an_address() -> None:
    """Of which only forms have spaces as +."""
    found = address_of("mysql://root@db/?secret=a+b/c%2Bd&&ca=/etc/a+b%20%26%3d.pem", "{} {}".format)
    assert (found.ca, found.password) == ("/etc/a+b &=.pem", "a+b c+d")


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("mysql://root:hunter2@db/", "a reference"),
        ("postgres://root@db/", "mysql://USER@HOST"),
        ("mysql://db:4000/", "mysql://USER@HOST"),
        ("mysql://root@db/?secret=hunter2", "SCOPE/KEY"),
        ("mysql://root@db/?password=hunter2", "unknown option"),
        ("mysql://root:hunter2#@db/", "host or port"),
        ("mysql://root@db:70000/", "host or port"),
        ("mysql://root@db:0/", "host or port"),
        ("mysql://root@db/crm", "names no database"),
        ("mysql://root@a/hunter2@db/", "names no database"),
        ("mysql://root@db/?secret=lake/tidb#hunter2", "has no #"),
        ("mysql://root@[::1/", "host or port"),
        ("mysql://root@db/?tls=yes", "tls: expected true or false, found 'yes'"),
        ("mysql://root@db/?tls=1", "tls: expected true or false"),
        ("mysql://root@db/?ca=", "ca: expected the file"),
        ("mysql://root@db/?ca", "ca: expected the file"),
        ("mysql://root@db/?=x", "unknown option"),
        ("mysql://root@db/?tls=true;ca=/a.pem", "tls: expected true or false"),
        ("mysql://root@db/?secret=one/two&secret=one/three", "twice"),
    ],
)
def test_other_dsns_are_refused_without_showing_a_password(dsn: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        address_of(dsn, secret)
    assert "hunter2" not in str(error.value)


def test_a_server_without_tls_gets_no_login_where_tls_is_required() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server, ThreadPoolExecutor(1) as pool:
        told = pool.submit(_answer_to_greeting, server)
        address = Address(host="127.0.0.1", port=server.getsockname()[1], user="reader", password="hunter2", tls=True)
        with pytest.raises(ConfigError, match="cannot connect: SSL is required"):
            Snapshot(address=address, tso=1).connect()
        assert told.result() == b""


def _greet(client: socket.socket) -> bytes:
    """What a client says to a server that offers no TLS (protocol 41, secure connection, plugin authentication)."""
    begin, more = b"\x0a8.0.11-TiDB\0" + bytes(4) + b"saltsalt\0", b"\x21\2\0\x08\0\x15" + bytes(10) + b"saltsaltsalt\0"
    greeting = begin + (0x0200 | 0x8000).to_bytes(2, "little") + more + b"mysql_native_password\0"
    client.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
    return client.recv(1000)


def _answer_to_greeting(server: socket.socket) -> bytes:
    client, _ = server.accept()
    with client:
        return _greet(client)


def test_a_server_that_stops_answering_ends_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ticdc_lakehouse.tidb.session._READ_SECONDS", 0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as server, ThreadPoolExecutor(1) as pool:
        address = Address(host="127.0.0.1", port=server.getsockname()[1], user="reader")
        pool.submit(_silent_after_settings, server)
        source = SnapshotReader(connect=address.connect)
        with pytest.raises(ApplyError, match=r"TiDB: Lost connection .*timed out.*: SELECT 1"):
            source.query("SELECT 1")


def _silent_after_settings(server: socket.socket) -> None:
    """Lets a client in, answers its SET statements with OK, and never its SELECT; ends when the client has gone."""
    client, _ = server.accept()
    with client:
        _greet(client)
        number = 2
        while True:
            client.sendall(b"\x07\0\0" + bytes([number]) + b"\0\0\0\2\0\0\0")
            if b"SELECT" in client.recv(1000):
                break
            number = 1
        client.settimeout(5)
        client.recv(1000)


def test_a_password_is_utf_8_and_what_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address(host="127.0.0.1", port=1, user="reader", password="pä€", ca="/no/ca.pem")
    with pytest.raises(ConfigError, match=r"reader@127\.0\.0\.1:1 with ca=/no/ca\.pem: cannot connect: No such file"):
        Snapshot(address=address, tso=1).connect()
    impossible = Address(host="db..example", port=4000, user="reader")
    with pytest.raises(ConfigError, match=r"dsn: reader@db\.\.example:4000: cannot connect: .*label"):
        Snapshot(address=impossible, tso=1).connect()
    given: dict[str, object] = {}
    monkeypatch.setattr("pymysql.connect", given.update)
    address.connect()
    assert given["password"] == "pä€".encode()


@pytest.mark.parametrize(
    ("kind", "collation", "ordered"),
    [
        ("bigint unsigned", "", True),
        ("decimal(38,4)", "", True),
        ("decimal(39,4)", "", False),  # a STRING in the lake
        ("datetime(3)", "", True),
        ("varbinary(9)", "", True),
        ("varchar(9)", "utf8mb4_bin", True),
        ("varchar(9)", "utf8mb4_0900_bin", True),
        ("varchar(9)", "utf8mb4_general_ci", False),
        ("varchar(9)", "utf8mb4_0900_ai_ci", False),
        ("enum('b','a')", "", False),
        ("double", "", False),
        ("time", "", False),
    ],
)
def test_types_whose_keys_both_sides_sort_in_one_order(kind: str, collation: str, ordered: bool) -> None:
    (column,) = table(f"CREATE TABLE t (k {kind} PRIMARY KEY)", collation).key
    assert has_common_order(column) is ordered


def test_a_column_whose_types_differ_has_no_common_order() -> None:
    (column,) = table("CREATE TABLE t (k int PRIMARY KEY)", k="varchar(9)").key
    assert not has_common_order(column)


def test_ranges_of_a_composite_key_meet_without_a_gap() -> None:
    key = table("CREATE TABLE t (a int, b varchar(9), PRIMARY KEY (a, b))").key
    first, second = key_ranges(key, [("7", "it's")], Chunk())
    after = "(`a` > 7 OR (`a` = 7 AND (`b` >= 'it''s')))"
    assert (first.source, second.source) == (f"NOT {after}", after)
    assert first.lake == f"NOT {second.lake}"
    assert "rtrim(`b`)" in second.lake  # spaces at the end do not count in utf8mb4_bin


def test_range_is_divided_within_its_bounds() -> None:
    key = table("CREATE TABLE t (a int PRIMARY KEY)").key
    outer = key_ranges(key, [("5",)], Chunk())[1]
    assert key_ranges(key, [("9",)], outer)[0].source == "(`a` >= 5) AND NOT (`a` >= 9)"


def test_the_number_of_a_range_is_a_binary_search() -> None:
    key = table("CREATE TABLE t (a varbinary(2) PRIMARY KEY)").key
    found = range_number_sql(key, [("01",), ("02",), ("03",)])
    assert [found.count(f" {number}") for number in range(4)] == [1, 1, 1, 1]
    assert found.startswith("IF((`a` >= unhex('02'))")
    assert source_literal(key[0].source, "02ff") == "x'02ff'"


@pytest.mark.parametrize(
    ("kind", "by_name", "text"),
    [
        ("int", True, "1 OR 1=1"),
        ("int", True, "0 UNION SELECT user, 1 FROM mysql.user"),
        ("decimal(9,2)", True, "1.5.5"),
        ("bit(8)", True, ""),
        ("enum('a')", False, "1)--"),
        ("varbinary(9)", True, "00' OR '1"),
        ("varbinary(9)", True, "0"),
    ],
)
def test_what_is_no_value_of_its_type_never_becomes_sql(kind: str, by_name: bool, text: str) -> None:
    column = SourceColumn(name="id", type=parse_type(kind))
    with pytest.raises(ApplyError, match=f"^column id: expected a value of {re.escape(kind)}, found "):
        source_literal(column, text, by_name=by_name)


def test_bounds_are_quantiles_of_a_sample() -> None:
    sample = [(str(number),) for number in range(100)]
    assert quantiles(sample, 4) == [("25",), ("50",), ("75",)]
    assert quantiles([("1",)] * 9, 3) == [("1",)]
    assert quantiles([], 3) == []


def test_rows_are_compared_in_buckets_of_limited_size() -> None:
    assert [bucket_digits(rows, 100) for rows in (0, 1600, 1601, 10**9)] == [1, 1, 2, 4]
    rows = {"a": 5, "b": 1, "c": 1}
    assert bucket_groups(["a", "b", "c"], rows, 3) == [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("float", "3.4028235e38", "340282350000000000000000000000000000000", True),
        ("time(3)", "-01:00:00.500", "-01:00:00.5", True),
        ("time", "-00:00:01", "00:00:01", False),
        ("json", '{"a": 1.50, "b": [true]}', '{"b": [true], "a": 1.5}', True),
        ("json", '{"a": true}', '{"a": 1}', False),
        ("json", "[false, 0]", "[0, 0]", False),
        ("json", '["1"]', "[1]", False),
        ("json", "null", None, False),
        ("text", "a", "a ", False),
    ],
)
def test_texts_of_one_value_compare_as_the_type_does(kind: str, one: str, other: str | None, same: bool) -> None:
    (column,) = table(f"CREATE TABLE t (v {kind})").columns
    assert column.same(one, other) is column.same(other, one) is same


def test_hashes_of_both_engines_are_compared_without_their_sign() -> None:
    assert Checksum.of(1, -1) == Checksum.of(1, 2**64 - 1)
    assert Checksum.of(2, "-2") == Checksum.of(2, 2**65 - 2)  # sums of rows without a key
    assert Checksum.of(0, None) == Checksum()


def test_rows_without_a_key_are_summed_because_equal_ones_cancel_out() -> None:
    keyless = table("CREATE TABLE t (a int)")
    assert "SUM(" in keyless.source_checksum_sql(Chunk())
    assert "sum(" in keyless.lake_checksums_sql("0", Chunk())
    assert not keyless.has_key_order


def test_rows_on_both_sides_of_a_bound_are_no_difference() -> None:
    one = DifferentRows(chunk=Chunk(), lake=Counter({("k", "r"): 1}), source=Counter({("only", "here"): 1}))
    other = DifferentRows(chunk=Chunk(), source=Counter({("k", "r"): 1}))
    (left,) = without_moved([one, other])
    assert (left.lake, left.source) == (Counter(), Counter({("only", "here"): 1}))


CELLS = [  # of a type: TiDB's text, the lake's, whether they mean the same
    ("float", "0.1", "0.10000000149011612", True),
    ("float", "0.1", "0.10000001", False),
    ("double", "1000000000000000000000", "1e+21", True),
    ("decimal(10,2)", "1.50", "1.5", True),
    ("datetime(3)", "2024-01-01 00:00:00.500", "2024-01-01 00:00:00.5", True),
    ("datetime(3)", "2024-01-01 00:00:00.500", "2024-01-01 00:00:00.05", False),
    ("json", '{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
    ("json", "[1, 2]", "[2, 1]", False),
    ("varchar(9)", "a ", "a", False),
    ("varchar(9)", "", None, False),
    ("int", None, None, True),
]


@pytest.mark.parametrize(("kind", "source", "lake", "same"), CELLS)
def test_cells_are_compared_by_value(kind: str, source: str | None, lake: str | None, same: bool) -> None:
    compared = table(f"CREATE TABLE t (k int PRIMARY KEY, v {kind})")
    found = list(row_differences(compared, [("1", source)], [("1", lake)]))
    changed = Difference(
        table=TableName("d", "t"), kind=DifferenceKind.CHANGED, key='["1"]', column="v", source=source, lake=lake
    )
    assert found == ([] if same else [changed])


def test_missing_and_extra_rows_are_differences() -> None:
    keyed, keyless = table("CREATE TABLE t (k int PRIMARY KEY, v int)"), table("CREATE TABLE t (v int, w int)")
    (missing,) = row_differences(keyed, [("1", "2")], [])
    (extra,) = row_differences(keyed, [], [("1", "2")])
    assert (missing.kind, extra.kind, extra.key) == (DifferenceKind.MISSING, DifferenceKind.EXTRA, '["1"]')
    found = list(row_differences(keyless, [("1", None)] * 3, [("1", None)]))
    assert [(each.kind, each.key) for each in found] == [(DifferenceKind.MISSING, '["1",null]')] * 2


def test_column_of_one_side_alone_is_a_difference() -> None:
    (defined,) = tables_from_sql("USE d; CREATE TABLE t (k int PRIMARY KEY, `Own` int);", source="test")
    there = [SourceColumn(name=name, type=parse_type("int")) for name in ("K", "more")]
    compared, only_lake, only_source = compared_table(defined, "t", there)
    assert [column.name for column in compared.columns] == ["k"]
    kinds = [(d.column, d.source, d.lake) for d in column_differences(defined.name, only_lake, only_source)]
    assert kinds == [("Own", None, "a column"), ("more", "a column", None)]


def test_a_verification_that_found_something_fails() -> None:
    result = TableResult(name=TableName("d", "t"), tso=7, version=1, result=Result.REPAIRED)
    Verified(feed="f", tso=7, tables=(result,)).raise_if_different()
    different = TableResult(name=TableName("d", "t"), tso=7, version=1, result=Result.DIFFERENT)
    failed = replace(result, result=Result.FAILED, detail="access denied")
    assert Verified(feed="f", tso=7, tables=(result, failed)).different == ["d.t"]
    with pytest.raises(ApplyError, match=r"d\.t"):
        Verified(feed="f", tso=7, tables=(result, different)).raise_if_different()


@dataclass(frozen=True)
class Answering:
    """A source that has one answer."""

    answer: list[tuple[str | None, ...]]

    def query(self, query: str) -> list[tuple[str | None, ...]]:
        if query == "SELECT 1 FROM `d`.`t` LIMIT 0":
            raise NoSuchTableError("Table 'd.t' doesn't exist")
        assert "information_schema.columns" in query
        return self.answer


VIRTUAL = ("v", "int(11)", None, None, "VIRTUAL GENERATED")


def test_a_table_of_virtual_columns_is_there() -> None:
    name = TableName("d", "t")
    assert source_columns(Answering([]), name) is None  # type: ignore[arg-type]
    assert source_columns(Answering([VIRTUAL]), name) == []  # type: ignore[arg-type]
    stored = ("s", "int(11)", None, None, "STORED GENERATED")
    found = source_columns(Answering([stored, VIRTUAL]), name)  # type: ignore[arg-type]
    assert [column.name for column in found or ()] == ["s"]


def test_a_table_whose_columns_are_all_virtual_is_not_compared() -> None:
    (defined,) = tables_from_sql("CREATE TABLE d.t (v int AS (1) VIRTUAL);", source="test")
    state = TableState(lake_name="t", stable_id="t", version=3, applied_tso=7)
    definition = Definition(table=defined, commit_ts=0, origin=Origin.FILE, lake_name="t", stable_id="t")
    before = Published(tso=7, tables={defined.name: state}, definitions={"t": definition})
    result, work = _verify_table(
        None,  # type: ignore[arg-type]
        GoldConfig(feed="f", time_zone="UTC"),
        Answering([VIRTUAL]),  # type: ignore[arg-type]
        before,
        defined.name,
        VerifySettings(repair=True),
    )
    assert (result.result, result.tso, work) == (Result.SKIPPED, 7, None)
    assert "virtual" in (result.detail or "")


def from_wire(*columns: tuple[str, str]) -> Table:
    return table_from_wire("d", "t", tuple(Column(name=n, type=t, key=n == "k", by=None) for n, t in columns))


@pytest.mark.parametrize(
    ("defined", "reason"),
    [
        (from_wire(("k", "int"), ("v", "datetime")), None),
        (from_wire(("k", "datetime"), ("v", "int")), "how the feed writes keys of datetime is not known"),
        (from_wire(("k", "timestamp"), ("v", "int")), "how the feed writes keys of timestamp is not known"),
        (from_wire(("k", "datetime"), ("v", "varchar(9)")), None),
        (from_wire(("v", "int")), "it has no handle key"),
    ],
    ids=["no moment in the key", "DATETIME", "TIMESTAMP", "messages tell sizes", "no key"],
)
def test_rows_whose_keys_cannot_be_written_are_not_repaired(defined: Table, reason: str | None) -> None:
    columns = [SourceColumn(name=column.name, type=column.type) for column in defined.sent]
    compared = compared_table(defined, "t", columns)[0]
    assert _unrepairable(GoldConfig(feed="f", time_zone="UTC"), compared, Differences(), ()) == reason
