"""The page docs/types-by-protocol.md."""

from __future__ import annotations

from type_table import PAGE, Exactness, Found, page


def test_the_committed_page_is_what_the_vectors_show() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_a_loss_is_worse_than_a_size_and_stays() -> None:
    found = Found()
    found.note("1", "1", "1")
    assert found.exactness is Exactness.EXACT
    found.note("1", "x", "1")
    assert found.exactness is Exactness.DEFINED
    found.note("1", "x", "2")
    found.at_best(Exactness.NO_SIZE)
    assert (found.exactness, found.losses, found.defaults) == (Exactness.LOSSY, {("`1`", "`2`")}, False)


def test_a_null_read_as_the_default_is_shown_as_such() -> None:
    found = Found()
    found.note(None, "1", "1")
    assert (found.exactness, found.losses, found.defaults) == (Exactness.EXACT, set(), True)
