"""The fuzzer finds nothing in ten thousand messages of each wire, and what it once found stays as it is."""

from __future__ import annotations

import pytest
from fuzz import BATCH, Fuzzer, again, kept, main, outcome
from wires import WIRES, Wire

MESSAGES = 10_000
_ALL = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


@_ALL
@pytest.mark.long
def test_ten_thousand_changed_messages_break_no_rule(wire: Wire) -> None:
    fuzzer = Fuzzer(wire, seed=1)
    for number in range(MESSAGES // BATCH + 1):
        assert fuzzer.batch(number) == []
    assert fuzzer.messages >= MESSAGES
    # events and errors of many kinds: the changes are neither too coarse nor too fine
    assert len(fuzzer.outcomes) > 20
    assert any("Row" in found for found in fuzzer.outcomes)


@_ALL
def test_kept_messages_have_the_outcome_that_they_were_kept_for(wire: Wire) -> None:
    """And what is encoded of their events is those events."""
    messages = kept(wire)
    events = {name: wire.decode([pair])[0] for name, (pair, _) in messages.items()}
    assert {name: outcome(found) for name, found in events.items()} == {
        name: why for name, (_, why) in messages.items()
    }
    assert [name for name, found in events.items() if again(wire, found) is not None] == []


def test_a_mistake_is_printed_and_kept(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that cannot bear a byte in what is not recorded."""
    decode = Wire.decode
    recorded = {*WIRES["craft"].messages}
    kept_messages = []

    def sensitive(wire: Wire, messages: list[tuple[bytes | None, bytes | None]], *_: object) -> object:
        if any(b"~" in (pair[1] or b"") for pair in messages if pair not in recorded):
            raise ZeroDivisionError("~")
        return decode(wire, messages)

    fuzzed = Wire(name="craft", protocol="craft", files=("tiflow-craft",), given={"craft-float": "trust"}, json=False)
    monkeypatch.setattr(Wire, "decode", sensitive)
    monkeypatch.setitem(WIRES, "craft", fuzzed)
    monkeypatch.setattr("fuzz.keep", lambda _, pair, __: kept_messages.append(pair) or "an-id")
    assert main(["craft", "--count", "1024", "--seed", "5"]) == 1
    assert kept_messages
    assert all(b"~" in (value or b"") for _, value in kept_messages)
    assert 'make fuzz PROTOCOL=craft ARGS="--again an-id"' in capsys.readouterr().out
