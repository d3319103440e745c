"""Open Protocol against the bytes of both of TiCDC's encoders, and what is written against what was read."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from content import content_of
from vectors import FOLDER, Case, as_expected, cases, differing, header, stored_of
from well_typed import handle_key_text

from ticdc_codec.batch import DecoderContext
from ticdc_codec.event import Ddl, Event, Resolved, RowChange, events_of
from ticdc_codec.message import Message
from ticdc_codec.open_protocol import encode
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder

FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*-open_protocol*.jsonl.gz"))
CASES = [case for file in FILES for case in cases(file)]


def options_of(case: Case) -> SinkOptions:
    return sink_options("open_protocol", header(case.file)["options"])


@cache
def decode(case: Case) -> list[Event]:
    """The events of a case. No test may change them."""
    batch = Decoder("open_protocol", options_of(case), DecoderContext(objects=stored_of(case))).decode(
        case.keys, case.values
    )
    return [event for _, event in events_of(batch)]


def test_all_files_are_here() -> None:
    assert len(FILES) == 20
    assert len(CASES) == 3254


@pytest.mark.parametrize("file", FILES)
def test_decodes_to_the_values_that_sql_reads(file: str) -> None:
    def found(case: Case) -> list[dict[str, Any]]:
        return [as_expected(*pair) for pair in zip(decode(case), case.expect, strict=True)]

    assert differing((case.name, found(case), case.expect) for case in cases(file)) == {}


@pytest.mark.parametrize("file", FILES)
def test_a_batch_decodes_as_its_messages_do(file: str) -> None:
    """Twice, so that all tables are known: rows are read together then, and alone when decoded case by case."""
    some = cases(file)
    stored = {place: content for case in some for place, content in stored_of(case).items()}
    keys = [key for case in some for key in case.keys]
    values = [value for case in some for value in case.values]
    decoder = Decoder("open_protocol", options_of(some[0]), DecoderContext(objects=stored))
    alone = [event for case in some for event in decode(case)]
    for _ in range(2):
        batch = decoder.decode(keys, values)
        assert [event for _, event in events_of(batch)] == alone


@pytest.mark.parametrize("file", FILES)
def test_encodes_to_the_same_json(file: str) -> None:
    """Message by message."""
    options = sink_options("open_protocol", header(file)["options"])
    found = []
    for case in cases(file):
        if "writer_bug" in case.content:
            continue
        for key, value in zip(case.keys, case.values, strict=True):
            batch = Decoder("open_protocol", options, DecoderContext(objects=stored_of(case))).decode([key], [value])
            (message,) = encode([event for _, event in events_of(batch)], options)
            theirs = content_of("open_protocol", Message(key=key, value=value), options)
            found.append((case.name, content_of("open_protocol", message, options), theirs))
    assert differing(found) == {}


@pytest.mark.parametrize("file", FILES)
def test_decodes_again_what_it_wrote(file: str) -> None:
    events = [event for case in cases(file) if "writer_bug" not in case.content for event in decode(case)]
    messages = encode(events, SinkOptions())
    batch = Decoder("open_protocol", SinkOptions()).decode([m.key for m in messages], [m.value for m in messages])
    assert [event for _, event in events_of(batch)] == events


def test_a_table_keeps_one_layout() -> None:
    (case,) = cases("bench-open_protocol")
    batch = Decoder("open_protocol", SinkOptions()).decode(case.keys, case.values)
    assert batch["kind"].unique().to_pylist() == ["row"]
    assert len(batch["columns"].unique()) == 1


@pytest.mark.parametrize("file", FILES)
def test_types_are_those_of_show_columns(file: str) -> None:
    """But for widths, lengths and names, which this wire does not have."""
    for case in cases(file):
        if "tables" in case.content or "seed" in case.name:
            continue
        types = {column["name"]: column["type"] for column in case.content["columns"] or []}
        for row in decode(case):
            if isinstance(row, RowChange) and row.table in (case.content["create"] or ""):
                words = {column.name: column.type.split() for column in row.columns}
                assert all(types[name].startswith(kind[0]) for name, kind in words.items()), case.id
                integers = {name: kind for name, kind in words.items() if "int" in kind[0]}
                assert all(("unsigned" in types[name]) == (len(kind) == 2) for name, kind in integers.items()), case.id


def test_ddl_has_tidbs_numbers() -> None:
    types = {event.type for case in cases("ticdc-open_protocol") for event in decode(case) if isinstance(event, Ddl)}
    assert {"1", "3", "14", "61"} < types


def test_watermarks_are_read_up_to_the_largest_tso() -> None:
    events = [event for case in cases("tiflow-open_protocol") for event in decode(case) if isinstance(event, Resolved)]
    assert {1, 2**64 - 1} < {event.commit_ts for event in events}


@pytest.mark.parametrize("file", ["ticdc-open_protocol-handle-key-only", "tiflow-open_protocol-large-handle-key-only"])
def test_a_row_says_that_it_has_only_its_handle_key(file: str) -> None:
    rows = [event for case in cases(file) for event in decode(case) if isinstance(event, RowChange)]
    alone = [row for row in rows if row.handle_only]
    assert 0 < len(alone) < len(rows)
    assert all(row.handle_key == handle_key_text(row.after or row.before or {}) for row in alone)


def test_lost_column_name_is_a_writer_defect() -> None:
    """wire.md 8.3: all that is known is type and flags of the column, which is NULL now."""
    cases_with = [case for case in cases("ticdc-open_protocol-only-updated-columns") if "writer_bug" in case.content]
    assert len(cases_with) == 9
    for case in cases_with:
        rows = [event for event in decode(case) if isinstance(event, RowChange)]
        suspects = [(row, column) for row in rows for column in row.columns if column.defect == "open-lost-name"]
        assert suspects
        assert all((row.after or {})[c.name] is None and c.name not in (row.before or {}) for row, c in suspects)
