"""Why a table is blocked: stored whole, and one sentence for people."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason


@pytest.mark.parametrize("kind", StopKind)
def test_stop_reason_is_stored_whole(kind: StopKind) -> None:
    stop = StopReason(kind=kind, detail="a 'text'", commit_ts=1 << 62, query="DROP …", can_skip=True)
    assert StopReason.from_json(stop.to_json()) == stop


@pytest.mark.parametrize("kind", StopKind)
def test_sentence_is_one_line(kind: StopKind) -> None:
    sentence = str(StopReason(kind=kind, detail="why", commit_ts=5, query="ALTER\nTABLE t"))
    assert sentence
    assert "\n" not in sentence
