"""JSON texts with gaps."""

from __future__ import annotations

from ticdc_codec.json_text import JSON, NUMBER, template


def test_gaps_of_a_template_are_filled_in_order() -> None:
    members = {"name": "a", "times": [NUMBER, 1, NUMBER], "image": JSON}
    assert template(members) % (7, -8, b"{}") == b'{"name":"a","times":[7,1,-8],"image":{}}'


def test_what_looks_like_a_gap_is_text() -> None:
    assert template({"%d": "100%b\0d", "at": NUMBER}) % (7,) == b'{"%d":"100%b\\u0000d","at":7}'
