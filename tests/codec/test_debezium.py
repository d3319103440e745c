"""Debezium against the bytes of both of TiCDC's encoders, and what is written against what was read."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from vectors import FOLDER, Case, as_expected, cases, definitions, header

from ticdc_codec.batch import NO_CONTEXT
from ticdc_codec.debezium import encode
from ticdc_codec.event import Ddl, Event, RowChange, events_of
from ticdc_codec.message import decompress
from ticdc_codec.options import Compression, SinkOptions, sink_options
from ticdc_codec.protocols import Decoder

FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*-debezium*.jsonl.gz"))
CASES = [case for file in FILES for case in cases(file)]
WITH_SCHEMA = [file for file in FILES if not header(file)["options"].get("debezium-disable-schema")]


def options_of(file: str, **more: object) -> SinkOptions:
    head = header(file)
    return sink_options("debezium", head["options"] | {"time-zone": head["time_zone"]} | more)


@cache
def decode(case: Case, *, declared: bool = True) -> list[Event]:
    """The events of a case, with the tables' definitions or without. No test may change them."""
    context = definitions(case) if declared else NO_CONTEXT
    batch = Decoder("debezium", options_of(case.file), context).decode(case.keys, case.values)
    return [event for _, event in events_of(batch)]


def comparable(case: Case, found: dict[str, Any], expected: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What this wire can tell: no DDL type, no columns that the writer falsified."""
    lossy = {*case.content.get("lossy", ()), *expected.get("lossy", ())}
    pair = [
        {name: value for name, value in event.items() if name not in ("type", "lossy")} for event in (found, expected)
    ]
    for event in pair:
        for image in ("before", "after"):
            if event.get(image):
                event[image] = {name: value for name, value in event[image].items() if name not in lossy}
    return pair[0], pair[1]


def test_all_files_are_here() -> None:
    assert len(FILES) == 11
    assert len(CASES) == 2885


@pytest.mark.parametrize("file", FILES)
def test_decodes_to_the_values_that_sql_reads(file: str) -> None:
    """With the tables' definitions, every value as it was."""
    found = {}
    for case in cases(file):
        for at, (event, expected) in enumerate(zip(decode(case), case.expect, strict=True)):
            found[case.name, at] = comparable(case, as_expected(event, expected), expected)
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}


def written(value: bytes | None, compression: Compression) -> dict[str, Any]:
    """A message as JSON, without what an event does not have: the wall clock, a DDL's table, defaults, start_ts."""
    message: dict[str, Any] = json.loads(decompress(value or b"", compression), parse_float=Decimal, parse_int=Decimal)
    payload = message["payload"]
    payload.pop("ts_ms", None)
    payload.pop("tableChanges", None)
    payload.get("source", {}).pop("start_ts", None)
    names = (payload.get("after") or payload.get("before") or payload).keys()
    for part in message.get("schema", {}).get("fields", ()):
        if part.get("field") in ("before", "after"):
            part["fields"] = [plain(field) for field in part["fields"] if field["field"] in names]
        if part.get("field") == "source":
            part["fields"] = [f for f in part["fields"] if f["field"] not in ("commit_ts", "cluster_id", "start_ts")]
    return message


def plain(field: dict[str, Any]) -> dict[str, Any]:
    """Whether a column may be NULL, and its default, are in no event."""
    return {name: value for name, value in field.items() if name not in ("optional", "default")}


@pytest.mark.parametrize("file", FILES)
def test_encodes_to_the_same_json(file: str) -> None:
    options = options_of(file, **{"debezium-include-start-ts": False})
    compression = options.large_message_handle_compression
    found = {}
    for case in cases(file):
        if "defaults" in case.name:  # tiflow writes a NULL of some types as no other value
            continue
        for key, value, event in zip(case.keys, case.values, decode(case), strict=True):
            (message,) = encode([event], options)
            found[case.name, "value"] = written(message.value, compression), written(value, compression)
            found[case.name, "key"] = written(message.key, compression), written(key, compression)
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("file", FILES)
def test_decodes_again_what_it_wrote(file: str) -> None:
    """Also with types that the message alone tells."""
    options = options_of(file, **{"debezium-include-start-ts": False})
    for declared in (True, False):
        for case in cases(file):
            events = decode(case, declared=declared)
            if any(column.type == "unknown" for event in events for column in getattr(event, "columns", ())):
                continue
            messages = encode(events, options)
            batch = Decoder("debezium", options, definitions(case) if declared else NO_CONTEXT).decode(
                [message.key for message in messages], [message.value for message in messages]
            )
            again = [event for _, event in events_of(batch)]
            assert [without_defects(event) for event in again] == [without_defects(event) for event in events], case.id


def without_defects(event: Event) -> Event:
    """No defaults are written, so no column is suspect; a DDL has no columns."""
    match event:
        case RowChange(columns=columns):
            return replace(event, columns=tuple(replace(column, defect=None) for column in columns))
        case Ddl():
            return replace(event, type=None, columns=())
        case _:
            return event


def test_a_table_keeps_one_layout() -> None:
    for file in ("bench-debezium-ext", "bench-debezium-no-schema"):
        (case,) = cases(file)
        batch = Decoder("debezium", options_of(file)).decode(case.keys, case.values)
        assert batch["kind"].unique().to_pylist() == ["row"]
        assert len(batch["columns"].unique()) == 1


@pytest.mark.parametrize("file", FILES)
def test_a_batch_decodes_as_its_messages_do(file: str) -> None:
    """Twice, so that all tables are known: rows are read together then, and alone when decoded case by case."""
    alone = [event for case in cases(file) for event in decode(case, declared=False)]
    decoder = Decoder("debezium", options_of(file))
    for _ in range(2):
        batch = decoder.decode(
            [key for case in cases(file) for key in case.keys], [value for case in cases(file) for value in case.values]
        )
        assert [event for _, event in events_of(batch)] == alone
