"""Sink-uri options: which values they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_codec.options import CraftFloat, sink_options

PLACE = "claim-check-storage-uri"


def test_schemas_may_be_sent_never_or_at_the_start() -> None:
    """wire.md 1.3.5: 0 turns bootstraps off."""
    given = {"send-bootstrap-in-msg-count": "0", "send-bootstrap-interval-in-sec": 0}
    options = sink_options("simple", given | {"send-all-bootstrap-at-start": "true"})
    assert (options.send_bootstrap_in_msg_count, options.send_bootstrap_interval_in_sec) == (0, 0)
    assert options.send_all_bootstrap_at_start


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("send-bootstrap-in-msg-count", -1, "0 or a positive whole number"),
        ("send-bootstrap-interval-in-sec", "1.5", "0 or a positive whole number"),
        ("max-batch-size", 0, "a positive whole number"),
    ],
)
def test_numbers_that_an_option_cannot_have(name: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected {expected}, found {value!r}"):
        sink_options("simple", {name: value})


@pytest.mark.parametrize("value", [None, "null"])
def test_null_of_yaml_is_the_word_null(value: object) -> None:
    assert sink_options("craft", {"craft-float": value}).craft_float is CraftFloat.NULL


def test_null_is_no_word_of_other_options() -> None:
    with pytest.raises(ConfigError, match="encoding-format: expected one of json, avro, found None"):
        sink_options("simple", {"encoding-format": None})


@pytest.mark.parametrize("value", [None, ["a"], 5, "", " "])
def test_a_text_option_takes_only_text(value: object) -> None:
    with pytest.raises(ConfigError, match=f"{PLACE}: expected text, found "):
        sink_options("simple", {PLACE: value})


@pytest.mark.parametrize("value", ["s3://bucket/claims", Path("/Volumes/claims")])
def test_a_text_option_may_be_a_path(value: object) -> None:
    assert sink_options("simple", {PLACE: value}).claim_check_storage_uri == str(value)
