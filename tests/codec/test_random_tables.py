"""Tables with random columns of any type, unusual names and keys, written by TiCDC's own encoders in zones with summer
time: each value is the one that SQL reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vectors import FOLDER, Case, as_expected, cases, definitions, header

from ticdc_codec.batch import NO_CONTEXT
from ticdc_codec.event import Event, events_of
from ticdc_codec.options import SinkOptions, sink_options
from ticdc_codec.protocols import Decoder

FILES = sorted(str(path.relative_to(FOLDER)).removesuffix(".jsonl.gz") for path in FOLDER.glob("random_tables/*.gz"))
NUMBERS = {"float": np.float32, "double": np.float64}
ZONED = ("debezium", "simple")


def options_of(file: str) -> SinkOptions:
    head = header(file)
    zone = {"time-zone": head["time_zone"]} if head["protocol"] in ZONED else {}
    return sink_options(head["protocol"], head["options"] | zone)


def decode(case: Case) -> list[Event]:
    protocol = header(case.file)["protocol"]
    context = definitions(case) if protocol == "debezium" else NO_CONTEXT
    batch = Decoder(protocol, options_of(case.file), context).decode(case.keys, case.values)
    return [event for _, event in events_of(batch)]


def comparable(case: Case, event: dict[str, Any], lossy: list[str]) -> dict[str, Any]:
    """Numbers as numbers, and without what the wire does not tell: a DDL's type, values that the writer falsified."""
    found = {name: value for name, value in event.items() if name not in ("type", "lossy")}
    kinds = {column["name"]: column["type"].partition("(")[0].split()[0] for column in case.content["columns"]}
    for image in ("before", "after"):
        if found.get(image):
            texts = {name: text for name, text in found[image].items() if name not in lossy}
            found[image] = {
                name: NUMBERS[kinds[name]](text) if kinds[name] in NUMBERS and text is not None else text
                for name, text in texts.items()
            }
    return found


def test_all_files_are_here() -> None:
    assert len(FILES) == 11
    assert sum(len(case.expect) for file in FILES for case in cases(file)) == 3395


@pytest.mark.parametrize("file", FILES)
def test_decodes_to_the_values_that_sql_reads(file: str) -> None:
    different = {}
    for case in cases(file):
        for at, (event, expected) in enumerate(zip(decode(case), case.expect, strict=True)):
            lossy = expected.get("lossy", [])
            pair = [comparable(case, each, lossy) for each in (as_expected(event, expected), expected)]
            if pair[0] != pair[1]:
                different[case.name, at] = pair
    assert different == {}
