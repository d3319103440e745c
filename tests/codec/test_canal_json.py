"""Canal-JSON against the bytes of both of TiCDC's encoders, and what is written against what was read."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from content import content_of
from vectors import FOLDER, Case, as_expected, cases, differing, header, stored_of
from well_typed import handle_key_text

from ticdc_codec.batch import DecoderContext
from ticdc_codec.canal_json import encode
from ticdc_codec.event import Ddl, Event, Resolved, RowChange, events_of
from ticdc_codec.message import Message
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder

FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*-canal_json*.jsonl.gz"))
CASES = [case for file in FILES for case in cases(file)]


def options_of(case: Case) -> SinkOptions:
    return sink_options("canal_json", header(case.file)["options"])


@cache
def decode(case: Case) -> list[Event]:
    """The events of a case. No test may change them."""
    batch = Decoder("canal_json", options_of(case), DecoderContext(objects=stored_of(case))).decode(
        case.keys, case.values
    )
    return [event for _, event in events_of(batch)]


def carried(expected: dict[str, Any]) -> dict[str, Any]:
    """What this wire can tell of an expected event: of a DDL's type, a word (README: only Open has TiDB's number)."""
    return {name: value for name, value in expected.items() if name != "type"}


def test_all_files_are_here() -> None:
    assert len(FILES) == 23
    assert len(CASES) == 3980


def cases_of(file: str) -> list[Case]:
    return list(cases(file))


@pytest.mark.parametrize("file", FILES)
def test_decodes_to_the_values_that_sql_reads(file: str) -> None:
    def found(case: Case) -> list[dict[str, Any]]:
        return [carried(as_expected(*pair)) for pair in zip(decode(case), case.expect, strict=True)]

    expected = [(case.name, found(case), [carried(event) for event in case.expect]) for case in cases_of(file)]
    assert differing(expected) == {}


@pytest.mark.parametrize("file", FILES)
def test_types_are_those_of_show_columns(file: str) -> None:
    """content-compatible tells the whole type, the default dialect its words without brackets."""
    for case in cases_of(file):
        if "tables" in case.content or "BINARY" in (case.content["create"] or ""):
            continue
        types = {column["name"]: column["type"] for column in case.content["columns"] or []}
        for row in decode(case):
            if isinstance(row, RowChange) and row.table in (case.content["create"] or ""):
                words = {column.name: column.type.partition("(")[0].split()[0] for column in row.columns}
                assert all(types[name].startswith(word) for name, word in words.items()), case.id


@pytest.mark.parametrize("file", [file for file in FILES if "row-key" not in file])
def test_encodes_to_the_same_json(file: str) -> None:
    """All but ``ts``, the writer's wall clock, and the random order of ``mysqlType``."""
    options = sink_options("canal_json", header(file)["options"])

    def written(event: Event) -> Any:
        (message,) = encode([event], options)
        return content_of("canal_json", message, options)

    def recorded(value: bytes | None) -> Any:
        return content_of("canal_json", Message(key=None, value=value), options)

    assert differing(
        (case.name, written(event), recorded(value))
        for case in cases_of(file)
        for value, event in zip(case.values, decode(case), strict=True)
        # A stored row of a table without a primary key does not say what its handle key is.
        if not (case.content.get("claim_check") and case.name.startswith("large_uk."))
    ) == {}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_decodes_again_what_it_wrote(file: str) -> None:
    options = sink_options("canal_json", {"enable-tidb-extension": header(file)["options"]["enable-tidb-extension"]})
    events = [event for case in cases(file) for event in decode(case)]
    messages = encode(events, options)
    batch = Decoder("canal_json", options).decode([m.key for m in messages], [m.value for m in messages])
    again = [event for _, event in events_of(batch)]
    assert [without_brackets(event) for event in again] == [without_brackets(event) for event in events]


def without_brackets(event: Event) -> Any:
    if not isinstance(event, RowChange):
        return event
    columns = [(column.name, re.sub(r"\(.*\)", "", column.type), column.key) for column in event.columns]
    return (event.op, event.table, event.commit_ts, event.before, event.after, event.handle_key, columns)


def test_a_table_keeps_one_layout() -> None:
    values = [value for case in cases("bench-canal_json-ext") for value in case.values]
    batch = Decoder("canal_json", sink_options("canal_json", {"enable-tidb-extension": True})).decode(
        [None] * len(values), values
    )
    assert batch["kind"].unique().to_pylist() == ["row"]
    assert len(batch["columns"].unique()) == 1


@pytest.mark.parametrize("file", FILES)
def test_a_batch_decodes_as_its_messages_do(file: str) -> None:
    """Twice, so that all tables are known: rows are read together then, and alone when decoded case by case."""
    some = cases_of(file)
    stored = {place: content for case in some for place, content in stored_of(case).items()}
    values = [value for case in some for value in case.values]
    decoder = Decoder("canal_json", options_of(some[0]), DecoderContext(objects=stored))
    alone = [event for case in some for event in decode(case)]
    for _ in range(2):
        batch = decoder.decode([None] * len(values), values)
        assert [event for _, event in events_of(batch)] == alone


def test_ddl_has_the_words_of_the_wire() -> None:
    words = {event.type for case in cases("ticdc-canal_json-ext") for event in decode(case) if isinstance(event, Ddl)}
    assert words == {"ALTER", "CREATE", "CINDEX", "DINDEX", "ERASE", "QUERY", "RENAME", "TRUNCATE"}


def test_watermarks_are_read_up_to_the_largest_tso() -> None:
    events = [event for case in cases("ticdc-canal_json-ext") for event in decode(case) if isinstance(event, Resolved)]
    assert {1, 2**63 - 1} < {event.commit_ts for event in events}


def test_a_row_says_that_it_has_only_its_handle_key() -> None:
    rows = [event for case in cases("ticdc-canal_json-handle-key-only") for event in decode(case)]
    alone = [row for row in rows if isinstance(row, RowChange) and row.handle_only]
    assert len(alone) == 8
    keys = {handle_key_text(row.after or row.before or {}) for row in alone}
    assert {row.handle_key for row in alone if row.handle_key is not None} < keys
