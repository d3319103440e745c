"""Recorded change streams with TiDB's answers: ``stream.json``, message files and ``answers.jsonl.gz``."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import option_names
from ticdc_codec.protocols import PROTOCOLS
from ticdc_lakehouse.schema.script import tables_from_sql
from ticdc_lakehouse.sql.text import quoted

_DESCRIPTION = "stream.json"
_ANSWERS = "answers.jsonl.gz"
_SOUND = {"simple": {"simple-column-order": "trust"}}
"""Defects of the writers (docs/defects.md) that the recordings do not have: their writer was fixed."""
_FAULTS = {"late-bootstrap-after-rows"}
"""What stream.json lists among a file's options and no sink has: what was done to the messages afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStream:
    """One workload, written in one protocol."""

    folder: Path
    file: str
    protocol: str
    options: Mapping[str, Any]
    """Sink-uri options that the file was written with."""
    time_zone: str
    partitions: int
    watermarks: int
    """Messages that are watermarks; none where the file was written without."""
    ddl_time_zone: str | None = None
    """Zone of the sessions that ran DDL; None if unknown: stream.json has the zone of the server."""

    def __str__(self) -> str:
        return f"{self.folder.name}/{self.file}"

    @property
    def messages(self) -> Path:
        """The file of messages in arrival order."""
        return self.folder / self.file

    def create_statements(self) -> str:
        """Returns CREATE TABLE statements of the tables that existed before the feed: those of the first answer if none
        are recorded."""
        described = _described(self.folder)
        start = described.tables_at_start
        if start is None and "create table" not in described.ddl_kinds:
            start = {name: table["create"] for name, table in next(answers(self.folder)).tables.items()}
        return "".join(_in_its_database(name, create) for name, create in (start or {}).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What TiDB held at a watermark."""

    watermark: int
    tables: Mapping[str, Any]
    """``database.table`` to ``{"create", "columns": [{"name", "type", "nullable", "key"}], "rows": [[value, …],
    …]}``."""


def _in_its_database(name: str, create: str) -> str:
    """Returns a CREATE TABLE statement after the USE of its database: what ``name`` has before the table's own, which
    the statement has. Both may have dots."""
    tables = tables_from_sql(create, "", f"CREATE TABLE of {name}")
    return "".join(f"USE {quoted(name[: -len(table.name.table) - 1])};\n{create};\n" for table in tables)


def recorded_stream(folder: Path, file: str, options: Mapping[str, str]) -> RecordedStream:
    """Returns the stream of one message file; ``options`` are added to those recorded. Raises ConfigError for an
    unknown file."""
    described = _described(folder)
    entry = next((entry for entry in described.files if entry.file == file), None)
    if entry is None:
        names = ", ".join(entry.file for entry in described.files)
        raise ConfigError(f"{folder}: expected one of {names}, found {file!r}")
    return RecordedStream(
        folder=folder,
        file=file,
        protocol=entry.protocol,
        options={
            **_SOUND.get(entry.protocol, {}),
            **{name: entry.options[name] for name in entry.options.keys() - _FAULTS},
            **options,
        },
        time_zone=described.time_zone,
        partitions=described.topics[0].partitions if isinstance(described.topics, list) else described.partitions,
        watermarks=entry.counts.get("watermark_messages", 0),
    )


def recorded_streams(folder: Path, options: Mapping[str, str]) -> list[RecordedStream]:
    """Returns the streams of all message files of a recorded workload, or of all workloads in a folder.

    Each takes those of ``options`` that its protocol has. Raises ConfigError for a folder without one, and for an
    option that no protocol has.
    """
    for name in options:
        if not any(name in option_names(protocol) for protocol in PROTOCOLS):
            raise ConfigError(f"{name}: unknown sink-uri option")
    folders = (
        [folder] if (folder / _DESCRIPTION).is_file() else sorted(p.parent for p in folder.glob(f"*/{_DESCRIPTION}"))
    )
    if not folders:
        raise ConfigError(f"{folder}: expected a folder with {_DESCRIPTION}, or a folder of such folders")
    streams = [
        recorded_stream(each, entry.file, {n: v for n, v in options.items() if n in option_names(entry.protocol)})
        for each in folders
        for entry in _described(each).files
        if (each / entry.file).is_file()
    ]
    for each in folders:
        if not (each / _ANSWERS).is_file():
            raise ConfigError(f"{each}: expected {_ANSWERS} beside {_DESCRIPTION}, found none")
    return streams


def answers(folder: Path) -> Iterator[Answer]:
    """Yields the recorded answers, by ascending watermark. Raises ConfigError for a missing or damaged file."""
    file = folder / _ANSWERS
    for number, line in enumerate(gzipped_lines(file), start=1):
        try:
            yield msgspec.json.decode(line, type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: line {number}: expected an answer: {error}") from None


def gzipped_lines(file: Path) -> Iterator[bytes]:
    """Yields the lines of a gzipped file. Raises ConfigError for a missing or damaged file."""
    try:
        with gzip.open(file) as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{file}: expected gzipped lines: {error}") from None


def write_gzipped(file: Path, lines: Iterable[str]) -> None:
    """Writes a file of these lines, which have no line ends; inverse of ``gzipped_lines``."""
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=1) as out:
        out.writelines(f"{line}\n" for line in lines)


def base64_text(data: bytes | None) -> str | None:
    """Returns a message's key or value as the files have it."""
    return None if data is None else base64.b64encode(data).decode()


def base64_bytes(text: str | None) -> bytes | None:
    """Inverse of `base64_text`."""
    return None if text is None else base64.b64decode(text)


class _Topic(msgspec.Struct):
    partitions: int


class _File(msgspec.Struct):
    file: str
    protocol: str
    options: dict[str, Any]
    counts: dict[str, int]


class _Described(msgspec.Struct):
    """The parts of ``stream.json`` that are looked at."""

    files: list[_File]
    time_zone: str
    topics: Annotated[list[_Topic], msgspec.Meta(min_length=1)] | int = 1
    partitions: int = 1
    """Number of partitions of each topic, unless `topics` has its own."""
    tables_at_start: dict[str, str] | None = None
    ddl_kinds: dict[str, int] = {}


def _described(folder: Path) -> _Described:
    file = folder / _DESCRIPTION
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Described)
    except OSError as error:
        raise ConfigError(f"{folder}: expected a folder with {_DESCRIPTION}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: expected the description of a recorded stream: {error}") from None
