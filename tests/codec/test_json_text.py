"""What all JSON protocols share of reading objects."""

from __future__ import annotations

import time

import pytest

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import names_of, text_of


def test_a_name_twice_after_very_many_is_found_at_once() -> None:
    # a message of 16 MB has a million names; one by one against all others that is hours
    value = b"{%s}" % b",".join(b'"c%d":1' % number for number in (*range(100_000), 99_999))
    begin = time.process_time()
    with pytest.raises(DecodeError, match="found 'c99999' again") as refused:
        names_of(value)
    assert refused.value.reason == "duplicate_name"
    assert time.process_time() - begin < 5


def test_half_a_pair_of_surrogates_is_no_json() -> None:
    with pytest.raises(DecodeError) as refused:
        names_of(b'{"a":"\xed\xa0\x80"}')
    assert refused.value.reason == "bad_json"
    with pytest.raises(DecodeError) as refused:
        text_of({"a": "\ud800"})
    assert refused.value.reason == "bad_json"
