"""Why a table is blocked: stored whole, and one sentence for people."""

from __future__ import annotations

import pytest

from ticdc_lakehouse.planning.stop_reason import StopKind, StopReason, WayOut


@pytest.mark.parametrize("kind", StopKind)
def test_stop_reason_is_stored_whole(kind: StopKind) -> None:
    stop = StopReason(kind=kind, detail="a 'text'", commit_ts=1 << 62, query="DROP …", ways_out=tuple(WayOut))
    assert StopReason.from_json(stop.to_json()) == stop


@pytest.mark.parametrize("kind", StopKind)
def test_sentence_is_one_line(kind: StopKind) -> None:
    stop = StopReason(kind=kind, detail="why", ways_out=(WayOut.RECREATE,), commit_ts=5, query="ALTER\nTABLE t")
    assert str(stop) == f"{stop.cause}; ways out: DROP and CREATE in TiDB starts the table anew"
    assert stop.cause
    assert "\n" not in stop.cause


def test_every_way_out_has_a_text() -> None:
    stop = StopReason(kind=StopKind.LATE_ROWS, detail="why", ways_out=tuple(WayOut))
    assert len(set(str(stop).removeprefix("why; ways out: ").split("; "))) == len(WayOut)


@pytest.mark.parametrize("way_out", WayOut)
def test_only_a_ddl_that_may_be_skipped_says_so(way_out: WayOut) -> None:
    assert StopReason(kind=StopKind.UNSUPPORTED_DDL, ways_out=(way_out,)).can_skip is (way_out is WayOut.SKIP_DDL)
