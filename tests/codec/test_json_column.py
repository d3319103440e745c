"""Columns as JSON: what many texts at a time come to is what one at a time does."""

from __future__ import annotations

import orjson
import pyarrow as pa

from ticdc_codec.json_text import escaped

LONG = "é" * 40_000
"""More bytes than are looked at together."""


def test_texts_are_escaped_at_any_offset() -> None:
    texts = ['"', LONG, "", "back\\slash", LONG + "\x00", "plain", LONG + 'a "quoted" word', "\n\u2028/", LONG]
    assert escaped(pa.array(texts)).to_pylist() == [orjson.dumps(text).decode()[1:-1] for text in texts]


def test_texts_that_need_no_escapes_are_the_same() -> None:
    texts = pa.array([LONG, "", "a'b"])
    assert escaped(texts) is texts
