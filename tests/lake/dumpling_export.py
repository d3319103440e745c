"""Dumpling's files, as its source writes them (tidb dumpling/export: sql_type.go, writer_util.go, metadata.go)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ticdc_lakehouse.ops.dumpling.dialect import CSV, Dialect


class Number(str):
    """A number's text, which stands without quotes."""


Value = int | Number | str | bytes | None


def write_metadata(folder: Path, tso: int, *, finished: bool = True) -> None:
    """Of an export of TiDB as of a TSO."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"Started dump at: 2023-11-14 22:13:20\nSHOW MASTER STATUS:\n\tLog: tidb-binlog\n\tPos: {tso}\n\tGTID:\n\n"
    (folder / "metadata").write_text(text + ("Finished dump at: 2023-11-14 22:13:21\n" if finished else ""))


def write_table(
    folder: Path,
    name: str,
    create: str,
    columns: Sequence[str],
    *files: Sequence[Sequence[Value]],
    compressed: str = "",
) -> None:
    """CREATE TABLE, and a file for each list of rows. ``name`` is ``database.table`` as it stands in names of files."""
    head = "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40101 SET NAMES binary*/;\n"
    (folder / f"{name}-schema.sql").write_text(f"{head}{create};\n", encoding="utf-8")
    for number, rows in enumerate(files):
        (folder / f"{name}.{number:09}.csv{compressed}").write_bytes(csv_bytes(columns, rows))


def csv_bytes(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> bytes:
    """A file: numbers as they are, NULL as \\N, all else in quotes."""
    return b"".join(csv_line(line) + b"\r\n" for line in (columns, *rows))


def csv_line(values: Sequence[Value], dialect: Dialect = CSV) -> bytes:
    """One line without its end."""
    return dialect.separator.join(written(value, dialect) for value in values)


def sql_line(values: Sequence[Value], dialect: Dialect, end: bytes = b",") -> bytes:
    """A row of an INSERT statement, without LF."""
    texts = (
        b"x'" + value.hex().encode() + b"'" if isinstance(value, bytes) else written(value, dialect) for value in values
    )
    return b"(" + b",".join(texts) + b")" + end


def written(value: Value, dialect: Dialect) -> bytes:
    """A value of CSV, or a text of SQL."""
    match value:
        case None:
            return dialect.null
        case int() | Number():
            return str(value).encode()
        case str():
            value = value.encode()
    if not dialect.backslash:
        return dialect.quote + value.replace(dialect.quote, dialect.quote * 2) + dialect.quote
    escapes = {character[0]: two for two, character in dialect.escapes.items()}
    return dialect.quote + b"".join(escapes.get(byte, bytes([byte])) for byte in value) + dialect.quote
