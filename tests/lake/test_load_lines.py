"""Rows of Dumpling's files in every dialect, in whatever batches Spark hands them over. Without Spark."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from dumpling_export import Value, csv_line, sql_line
from hypothesis import given
from hypothesis import strategies as st

from ticdc_codec.errors import ConfigError
from ticdc_codec.message import compress
from ticdc_codec.options import Compression
from ticdc_lakehouse.ops.dumpling import contents
from ticdc_lakehouse.ops.dumpling.dialect import CSV, SQL, Dialect, DumplingOptions
from ticdc_lakehouse.ops.dumpling.export import ExportedTable
from ticdc_lakehouse.ops.dumpling.rows import RowReader
from ticdc_lakehouse.schema.script import tables_from_sql

(TABLE,) = tables_from_sql('CREATE TABLE `t` (id INT, `a"b` TEXT, raw BLOB)', "shop")
NAMES = tuple(column.name for column in TABLE.columns)
EXPORTED = ExportedTable(definition=TABLE, columns=TABLE.columns)
READER = RowReader(dialect=CSV, table=EXPORTED)
NO_BACKSLASH = replace(CSV, backslash=False)
DIALECTS = (
    CSV,
    NO_BACKSLASH,
    replace(CSV, quote=b"'", separator=b"\t", null=b"NULL"),
    replace(CSV, quote=b"@@", separator=b"|+|", null=b""),
    replace(CSV, quote=b""),
    replace(CSV, quote=b"", separator=b"||"),
    replace(NO_BACKSLASH, quote=b"'", separator=b";", null=b""),
    replace(CSV, header=False),
)
AWKWARD = st.text(st.sampled_from("\0\n\r\t\\\",'@|+;abnqrzZNPQ0()x é😀\x1a"), max_size=8)
ROW = st.tuples(
    st.integers(-9, 9),
    st.none() | AWKWARD,
    st.none() | st.binary(max_size=4) | AWKWARD.map(str.encode),
)
ROWS = st.lists(ROW, max_size=9)
OF_A_FILE = st.lists(ROW, min_size=1, max_size=9)
Row = tuple[Value, ...]


def batches(*splits: tuple[str, int, Sequence[bytes]], size: int) -> list[pa.RecordBatch]:
    """Lines of splits of files, some at a time."""
    lines = [{"line": line, "file": file, "start": start} for file, start, split in splits for line in split]
    schema = pa.schema({"line": pa.binary(), "file": pa.string(), "start": pa.int64()})
    return [pa.RecordBatch.from_pylist(lines[at : at + size], schema) for at in range(0, len(lines), size)]


def rows(found: Sequence[pa.RecordBatch]) -> list[Row]:
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def read(*splits: tuple[str, int, Sequence[bytes]], size: int = 100) -> list[Row]:
    return rows([*READER.read_lines(batches(*splits, size=size))])


def expected(written: Sequence[Row]) -> list[Row]:
    return [(str(number), *rest) for number, *rest in written]


@given(ROWS, ROWS, st.integers(1, 5))
def test_what_was_written_is_read(first: list[Row], second: list[Row], size: int) -> None:
    """Two files, the first in two splits: a header begins a file, not a split."""
    lines, others = ([csv_line(row) for row in rows] for rows in (first, second))
    header, half = csv_line(NAMES), len(lines) // 2
    splits = ("a", 0, [header, *lines[:half]]), ("a", 4096, lines[half:]), ("b", 0, [header, *others])
    assert read(*splits, size=size) == expected([*first, *second])


@given(st.sampled_from(DIALECTS), OF_A_FILE, st.sampled_from((b"\n", b"\r\n")), st.integers(1, 40))
def test_every_dialect_is_read_back(dialect: Dialect, written: list[Row], end: bytes, piece: int) -> None:
    """Of a whole file, in pieces of a few bytes."""
    header = [dialect.header_line(NAMES)] if dialect.header else []
    content = b"".join(line + end for line in [*header, *(csv_line(row, dialect) for row in written)])
    assert whole(content, dialect, piece) == expected(written)


@given(st.booleans(), OF_A_FILE, st.integers(1, 5), st.integers(1, 40))
def test_insert_statements_are_read(backslash: bool, written: list[Row], size: int, piece: int) -> None:
    """In statements of some rows each, with and without the columns' names."""
    dialect = replace(SQL, backslash=backslash)
    lines = [b"/*!40014 SET FOREIGN_KEY_CHECKS=0*/;", b"/*!40101 SET NAMES binary*/;"]
    for at in range(0, len(written), size):
        *some, last = written[at : at + size]
        lines.append((b"INSERT INTO `t` VALUES", b'INSERT INTO `t` (`id`,`a"b`,`raw`) VALUES')[at % 2])
        lines += [*(sql_line(row, dialect) for row in some), sql_line(last, dialect, b";")]
    digits = [(str(n), text, raw if raw is None else raw.hex().encode()) for n, text, raw in map(as_bytes, written)]
    assert whole(b"".join(line + b"\n" for line in lines), dialect, piece) == digits


def test_an_insert_statement_spells_the_table_as_the_command_did() -> None:
    """``dumpling -T shop.ÄPFEL`` of a table `Äpfel`."""
    (table,) = tables_from_sql("CREATE TABLE `Äpfel` (id INT)", "shop")
    reader = RowReader(dialect=SQL, table=ExportedTable(definition=table, columns=table.columns))
    for insert in ("INSERT INTO `ÄPFEL` VALUES", "INSERT INTO `äpfel` (`id`) VALUES"):
        assert rows([*reader.read_file(f"{insert}\n(1);\n".encode(), "a.sql")]) == [("1",)]


def as_bytes(row: Row) -> tuple[Value, Value, bytes | None]:
    number, text, raw = row
    assert raw is None or isinstance(raw, bytes)
    return number, text, raw


def whole(content: bytes, dialect: Dialect, piece: int) -> list[Row]:
    """A file's rows, read in pieces of this many bytes."""
    reader = RowReader(dialect=dialect, table=EXPORTED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contents, "PIECE", piece)
        return rows([*reader.read_file(content, "shop.t.000000000.csv")])


@pytest.mark.parametrize("piece", [3, 99])
@pytest.mark.parametrize(
    ("dialect", "cut", "rest"),
    [
        (CSV, b'"id","a\\"b","raw"\r\n1,"x","abc', b'"\r\n'),
        (CSV, b'"id","a\\"b","raw"\r\n1,"x","abc"\r', b"\n"),
        (NO_BACKSLASH, b'"id","a""b","raw"\r\n1,"x","\n', b'"\r\n'),
        (SQL, b"INSERT INTO `t` VALUES\n(1,'x',NULL),\n", b"(2,'x',NULL);\n"),
        (SQL, b"INSERT INTO `t` VALUES\n", b"(1,'x',NULL);\n"),
        (SQL, b"INSERT INTO `t` VALUES\n(1,'x',NULL);", b"\n"),
    ],
)
def test_a_file_that_is_cut_off(dialect: Dialect, cut: bytes, rest: bytes, piece: int) -> None:
    assert whole(cut + rest, dialect, piece)
    with pytest.raises(ConfigError, match=r"shop\.t\.000000000\.csv is cut off"):
        whole(cut, dialect, piece)


def test_escapes_that_are_taken_for_quotes_look_like_a_file_that_is_cut_off() -> None:
    with pytest.raises(ConfigError, match=r"is cut off.*; or was it without --escape-backslash=false"):
        whole(b'"id","a""b","raw"\n1,"\\"",""\n', NO_BACKSLASH, 99)


@pytest.mark.parametrize(
    ("data", "name"),
    [(b"", "a.csv"), (gzip.compress(b""), "a.csv.gz"), (pa.compress(b"", "zstd", asbytes=True), "a.sql.zst")],
)
def test_a_file_that_holds_nothing(data: bytes, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} holds nothing"):
        [*contents.lines(data, name, CSV)]


def test_row_that_looks_like_the_header_is_read() -> None:
    (table,) = tables_from_sql("CREATE TABLE t (v TEXT)", "shop")
    reader = RowReader(dialect=CSV, table=ExportedTable(definition=table, columns=table.columns))
    (batch,) = reader.read_lines(batches(("a", 0, [b'"v"', b'"v"']), size=9))
    assert batch.to_pylist() == [{"v": "v"}]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ([b'"id","raw"'], 'a: expected the header "id","a\\\\"b","raw", found "id","raw": give load'),
        ([csv_line(NAMES), b'1,"x"'], "a: expected 3 values, found 2"),
        ([csv_line(NAMES), b'1,"x","","",'], "a: expected 3 values, found 5"),
        ([csv_line(NAMES), b'1,"x'], "a: expected 1 rows, found 0: a value is not closed"),
        ([csv_line(NAMES), b'1,"x"y"",""'], "a: column a\"b: the value's quotes are not as dumpling sets them"),
        ([csv_line(NAMES), b'1,x"y","",'], "a: "),
        ([csv_line(NAMES), b'1,"\xff",""'], 'a: column a"b: expected UTF-8'),
        ([csv_line(NAMES), b'1,"\0",""'], "a: a NUL byte: .*--escape-backslash=false"),
        ([csv_line(NAMES), b'1,"x\ry",""'], "a: a CR within a line without an escape: .*--escape-backslash=false"),
        ([csv_line(NAMES), rb'1,"\q",""'], "a: a backslash that escapes nothing: .*--escape-backslash=false"),
        ([csv_line(NAMES), b'NULL,"",""'], "a: column id: found 'NULL' without quotes.*--csv-null-value"),
        ([csv_line(NAMES), b'1,NULL,""'], "a: column a\"b: found 'NULL' without quotes.*--csv-null-value"),
    ],
)
def test_a_line_that_these_files_cannot_have(split: list[bytes], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(("a", 0, split))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"1,NULL,NULL,NULL", "column d: found 'NULL' without quotes.*--csv-null-value"),
        (b"1,x,2024-01-01,none", "column at: found 'none' without quotes.*--csv-null-value"),
        (b"1,x,,-838:59:59.5", "column d: found '' without quotes.*--csv-null-value"),
        (b"1,NULL,0000-00-00,-838:59:59.5", None),
        (b"1,\\N,\\N,\\N", None),
    ],
)
def test_another_null_shows_in_times_where_texts_have_no_quotes(line: bytes, found: str | None) -> None:
    (table,) = tables_from_sql("CREATE TABLE t (id INT, name VARCHAR(9), d DATE, at TIME(1))", "shop")
    dialect = replace(CSV, quote=b"", header=True)
    reader = RowReader(dialect=dialect, table=ExportedTable(definition=table, columns=table.columns))
    lines = batches(("a", 0, [b"id,name,d,at", b"2,x,2024-01-01,12:00:00.5", line]), size=9)
    if found is None:
        assert sum(batch.num_rows for batch in reader.read_lines(lines)) == 2
        return
    with pytest.raises(ConfigError, match=found):
        [*reader.read_lines(lines)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"INSERT INTO `u` VALUES"], "expected INSERT INTO `t` VALUES or INSERT INTO `t` .*, found INSERT INTO `u`"),
        ([b"INSERT INTO `t` (`raw`,`id`) VALUES"], "expected INSERT INTO `t` VALUES or"),
        ([b"(1,'x',NULL)"], "a row that does not end"),
        ([b"(1,'x',_binary'1');"], "column raw: the value's quotes are not as dumpling sets them"),
        ([b"(1,'x',0x31);"], "column raw: found '0x31' without quotes"),
        ([b"(1,'say \"x\"',NULL);"], "a double quote without an escape: .*--escape-backslash=false"),
        ([b"DELETE FROM t;"], "found DELETE FROM t"),
    ],
)
def test_a_statement_that_these_files_cannot_have(lines: list[bytes], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        whole(b"\n".join(lines) + b"\n", SQL, 99)


def test_json_with_escapes_is_not_of_files_without_them() -> None:
    """Its first quote shows it; within a text a backslash may be the text's own."""
    (table,) = tables_from_sql("CREATE TABLE t (j JSON)", "shop")
    reader = RowReader(
        dialect=replace(SQL, backslash=False), table=ExportedTable(definition=table, columns=table.columns)
    )

    def of(value: bytes) -> list[Row]:
        return rows([*reader.read_file(b"INSERT INTO `t` VALUES\n('" + value + b"'),\n(NULL);\n", "a.sql")])

    own = b'{"a": "a \\"quoted\\" word"}'
    assert of(own) == [(own.decode(),), (None,)]
    for escaped in (b'{\\"a\\": 1}', b'[[\\"a\\"]]', b'\\"a\\"'):
        with pytest.raises(ConfigError, match=r"column j: JSON with escaped quotes: .*without --esc"):
            of(escaped)


def test_header_in_files_without_one_is_refused() -> None:
    reader = RowReader(dialect=replace(CSV, header=False), table=EXPORTED)
    lines = [csv_line(NAMES), csv_line((1, "x", b"y"))]
    with pytest.raises(ConfigError, match="a: begins with a header: load it without --no-header"):
        [*reader.read_lines(batches(("a", 0, lines), size=9))]
    with pytest.raises(ConfigError, match="a: begins with a header"):
        [*reader.read_file(b"\n".join(lines), "a")]
    assert len(rows([*reader.read_lines(batches(("a", 0, lines[1:]), ("a", 99, lines[1:]), size=9))])) == 2


@pytest.mark.parametrize(
    ("kind", "lines", "found"),
    [
        ("DATETIME", [rb'"2024-01-01 00:00:00"', rb"\N"], "every value in quotes.*--csv-delimiter"),
        ("TEXT", [b'"x"', rb"\N", b'""'], "column v: found '\"x\"', every value in quotes"),
        ("ENUM('x')", [b"'x'", b"'x'"], "every value in quotes"),
        ("TEXT", [b'"x"', b"x"], None),
        ("TEXT", [b'"x"'], None),
        ("JSON", [b'"x"', b'"y"'], None),
        ("DATETIME", [rb"\N"], None),
        ("INT", [b"1"], None),
    ],
)
@pytest.mark.parametrize("header", [False, True])
def test_quotes_that_no_header_tells_of(kind: str, lines: list[bytes], found: str | None, header: bool) -> None:
    """``--no-header --csv-delimiter ''`` for an export that has quotes."""
    (table,) = tables_from_sql(f"CREATE TABLE t (id INT, v {kind})", "shop")
    exported = ExportedTable(definition=table, columns=table.columns)
    reader = RowReader(dialect=replace(CSV, quote=b"", header=header), table=exported)
    split = [*([b"id,v"] if header else []), *(b"1," + line for line in lines)]
    if found is None or header:
        assert len(rows([*reader.read_lines(batches(("a", 0, split), size=9))])) == len(lines)
    else:
        with pytest.raises(ConfigError, match=found):
            [*reader.read_lines(batches(("a", 0, split), size=9))]


def test_a_quote_that_is_doubled_apart_is_no_quote() -> None:
    with pytest.raises(ConfigError, match="column a\"b: the value's quotes"):
        whole(b'"id","a""b","raw"\n1,"a"b"c",""\n', NO_BACKSLASH, 99)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DumplingOptions(csv_separator=""), "--csv-separator"),
        (DumplingOptions(csv_separator='"|'), "none in both"),
        (DumplingOptions(csv_delimiter="", csv_null_value="NULL"), "--csv-null-value without --csv-delimiter"),
        (DumplingOptions(csv_null_value="0"), "NULL and that number cannot be distinguished"),
        (DumplingOptions(csv_null_value="-1.5e3"), "NULL and that number cannot be distinguished"),
        (DumplingOptions(csv_null_value='""'), "--csv-null-value with --csv-delimiter in it"),
        (DumplingOptions(csv_null_value="'", csv_delimiter="'"), "--csv-null-value with --csv-delimiter in it"),
        (DumplingOptions(csv_delimiter="", escape_backslash=False), "--escape-backslash=false without"),
        (DumplingOptions(csv_delimiter="@@", escape_backslash=False), "of several bytes"),
    ],
)
def test_settings_whose_files_cannot_be_read_back_are_refused(options: DumplingOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options.csv(None, ())


@pytest.mark.parametrize("null", ["", "NULL", "-", "nan", "\\N"])
def test_what_stands_for_null_may_be_anything_else(null: str) -> None:
    assert DumplingOptions(csv_null_value=null).csv(None, ()).null == null.encode()


@pytest.mark.parametrize(
    ("dialect", "value", "message"),
    [
        ("snowflake", b"xyz", "column raw: expected values of BLOB in hex"),
        ("snowflake", b"0AF", "in hex"),  # raw bytes, by chance digits
        ("bigquery", b"plain", "in base64"),
        ("bigquery", b"a-b_", "in base64"),
        ("snowflake", b"SGVsbG8=", "in hex"),  # base64
    ],
)
def test_bytes_that_are_not_written_as_the_options_say(dialect: str, value: bytes, message: str) -> None:
    given = DumplingOptions(csv_output_dialect=dialect, no_header=True).csv(None, ())
    with pytest.raises(ConfigError, match=message):
        whole(b'1,"a","' + value + b'"\n', given, 99)


def test_a_binary_column_shows_digits_that_are_no_base64() -> None:
    (table,) = tables_from_sql("CREATE TABLE t (id BINARY(16))", "shop")
    exported = ExportedTable(definition=table, columns=table.columns)
    given = DumplingOptions(csv_output_dialect="bigquery", no_header=True).csv(None, ())
    reader = RowReader(dialect=given, table=exported)
    encoded = b64encode(b"0123456789abcdef")
    assert rows([*reader.read_file(b'"' + encoded + b'"\n\\N\n', "t.csv")]) == [(encoded,), (None,)]
    with pytest.raises(ConfigError, match=r"a value of 32 bytes in BINARY\(16\)"):
        [*reader.read_file(b'"' + b"0123456789abcdef".hex().encode() + b'"\n', "t.csv")]


def frame(*chunks: tuple[int, bytes]) -> bytes:
    """A snappy frame of chunks of these kinds, without checksums."""
    parts = (bytes([kind]) + len(data).to_bytes(3, "little") + data for kind, data in chunks)
    return b"".join(parts)


MAGIC = (0xFF, b"sNaPpY")
BLOCK = (0x00, b"\0\0\0\0" + compress(b"some text " * 99, Compression.SNAPPY))


def test_compressed_files_are_read_in_pieces() -> None:
    text = b"some text " * 99
    stored, padding = (0x01, b"\0\0\0\0and more"), (0xFE, b"\0\0")
    assert contents.content(frame(MAGIC, BLOCK, padding, stored), "a.csv.snappy") == text + b"and more"
    assert contents.content(gzip.compress(text), "a.csv.gz") == text
    assert contents.content(pa.compress(text, "zstd", asbytes=True), "a.csv.zst") == text


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (frame(MAGIC, BLOCK)[:-1], "a.csv.snappy"),
        (frame(MAGIC, (0x02, b"")), "a.csv.snappy"),
        (frame(MAGIC, (0x00, b"\0\0\0\0\x05\xff")), "a.csv.snappy"),
        (b"no gzip", "a.csv.gz"),
        (gzip.compress(b"x" * 99, mtime=0)[:-9], "a.csv.gz"),
        (b"no zstd", "a.csv.zst"),
    ],
    ids=[
        "snappy cut short",
        "snappy without a block",
        "snappy with a broken block",
        "not gzip",
        "gzip cut short",
        "not zstd",
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(data: bytes, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: cannot be decompressed"):
        contents.content(data, name)
