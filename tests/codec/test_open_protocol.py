"""Open Protocol against the bytes of both of TiCDC's encoders, and what is written against what was read."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import pytest
from vectors import FOLDER, Case, as_expected, cases, header

from ticdc_lakehouse.codec import Decoder
from ticdc_lakehouse.codec.known import Known
from ticdc_lakehouse.codec.options import SinkOptions, sink_options
from ticdc_lakehouse.event import Event, events_of

FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("t*-open_protocol*.jsonl.gz"))
CASES = [case for file in FILES for case in cases(file)]


def options_of(case: Case) -> SinkOptions:
    return sink_options("open_protocol", header(case.file)["options"])


def stored_of(case: Case) -> dict[str, bytes]:
    """The claim-check objects by location, as the messages name them."""
    place = header(case.file)["options"].get("claim-check-storage-uri")
    objects = case.content.get("claim_check", {})
    return {f"{place}/{name}": base64.b64decode(content) for name, content in objects.items()}


def decode(case: Case) -> list[Event]:
    batch = Decoder("open_protocol", options_of(case), Known(objects=stored_of(case))).decode(case.keys, case.values)
    return [event for _, event in events_of(batch)]


def test_all_files_are_here() -> None:
    assert len(FILES) == 20
    assert len(CASES) == 3254


def differing(pairs: Iterable[tuple[str, Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Found and expected of each case in which they differ."""
    return {name: (found, expected) for name, found, expected in pairs if found != expected}


@pytest.mark.parametrize("file", FILES)
def test_decodes_as_sql_had_it(file: str) -> None:
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
    decoder = Decoder("open_protocol", options_of(some[0]), Known(objects=stored))
    alone = [event for case in some for event in decode(case)]
    for _ in range(2):
        batch = decoder.decode(keys, values)
        assert [event for _, event in events_of(batch)] == alone
