"""Dumpling's CSV files, as its source writes them (tidb dumpling/export: sql_type.go, writer_util.go, metadata.go)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Number(str):
    """A number's text, which stands without quotes."""


Value = int | Number | str | bytes | None
_ESCAPES = {0: b"\\0", 10: b"\\n", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


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


def csv_line(values: Sequence[Value]) -> bytes:
    """One line without its end."""
    return b",".join(map(_field, values))


def _field(value: Value) -> bytes:
    match value:
        case None:
            return b"\\N"
        case int() | Number():
            return str(value).encode()
        case str():
            value = value.encode()
    return b'"' + b"".join(_ESCAPES.get(byte, bytes([byte])) for byte in value) + b'"'
