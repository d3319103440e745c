"""The recorded vectors, and decoded events in their form (``ticdc_local.cli.decode`` says what it is)."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Column, Event
from ticdc_local.cli.decode import canonical
from ticdc_testkit.recorded_streams import base64_bytes

FOLDER = Path(__file__).parent.parent / "data" / "vectors"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    file: str
    content: dict[str, Any]

    @property
    def name(self) -> str:
        return self.content["case"]

    @property
    def id(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def values(self) -> list[bytes | None]:
        return [base64_bytes(message["value"]) for message in self.content["messages"]]

    @property
    def keys(self) -> list[bytes | None]:
        return [base64_bytes(message["key"]) for message in self.content["messages"]]

    @property
    def expect(self) -> list[dict[str, Any]]:
        return self.content["expect"]


@lru_cache
def cases(file: str) -> list[Case]:
    """The cases of a vector file, named without its endings: read once, so that no test may change one."""
    with gzip.open(FOLDER / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        return [Case(file, json.loads(line)) for line in lines]


@lru_cache
def header(file: str) -> dict[str, Any]:
    """A vector file's first line: its writer and its options."""
    with gzip.open(FOLDER / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return json.loads(next(lines))  # type: ignore[no-any-return]


def stored_of(case: Case) -> dict[str, bytes]:
    """The claim-check objects by location, as the messages name them."""
    place = header(case.file)["options"].get("claim-check-storage-uri")
    objects = case.content.get("claim_check", {})
    return {f"{place}/{name}": base64.b64decode(content) for name, content in objects.items()}


def definitions(case: Case) -> DecoderContext:
    """The case's tables as SHOW COLUMNS has them."""
    tables = case.content.get("tables", {})
    names = {(event["schema"], event["table"]) for event in case.expect if event["kind"] == "row"}
    columns = {name: tables.get(".".join(name), case.content)["columns"] for name in names}
    return DecoderContext(
        schemas={
            (*name, 0): tuple(Column(name=column["name"], type=column["type"]) for column in columns[name])
            for name in names
        }
    )


def differing(pairs: Iterable[tuple[str, Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Found and expected of each case in which they differ."""
    return {name: (found, expected) for name, found, expected in pairs if found != expected}


def as_expected(event: Event, expected: dict[str, Any]) -> dict[str, Any]:
    """The event in the vectors' form, with what the wire does not tell taken from ``expected``.

    Of an ENUM or SET the wire has number or names; JSON is equal if it is so as JSON with exact numbers.
    """
    found = canonical(event)
    for image in ("before", "after"):
        if isinstance(found.get(image), dict) and isinstance(expected.get(image), dict):
            wanted = expected[image]
            found[image] = {name: _as_expected(value, wanted.get(name)) for name, value in found[image].items()}
    return found


def _as_expected(found: Any, wanted: Any) -> Any:
    if isinstance(found, dict) and isinstance(wanted, dict) and found and found.items() <= wanted.items():
        return wanted
    if isinstance(found, str) and isinstance(wanted, str) and found != wanted and _json(found) == _json(wanted):
        return wanted
    return found


def _json(text: str) -> Any:
    """The text as JSON with its numbers as texts; the text itself if it is none."""
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number)
    except ValueError:
        return _Number(text)


class _Number(str):
    """A number's text: never equal to a JSON string of the same text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and str(self) == str(other)

    __hash__ = str.__hash__
