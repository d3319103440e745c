"""Names are compared as TiDB compares them: by Go's strings.ToLower, code point by code point."""

from __future__ import annotations

import pytest

from ticdc_codec.name_case import fold
from ticdc_lakehouse.schema.names import TableName, by_text, spark_names, table_named, texts_of

# Each group was one name for TiDB v8.5.6, and no two groups were.
SAME = [
    *("Ää", "Éé", "Åå\u212b", "Ωω\u2126", "Kk\u212a", "Яя", "Ａａ", "Ⅷⅷ", "Ǆǅǆ", "Ꭰꭰ", "Აა", "𐐀𐐨", "ẞß", "Ÿÿ", "Ⱥⱥ"),  # noqa: RUF001
    *("Ꞓꞓ", "Σσ", "İIi"),
]
APART = [("σ", "ς"), ("İ", "i\u0307"), ("I", "ı"), ("ß", "ss"), ("ſ", "s"), ("Θ", "ϑ"), ("\u1e9b", "ṡ"), ("ŉ", "ʼn")]  # noqa: RUF001
APART += [("\u00b5", "μ"), ("e", "é")]


@pytest.mark.parametrize("names", SAME)
def test_names_that_tidb_finds_as_one_are_equal(names: str) -> None:
    assert len({fold(f"a{name}") for name in names}) == 1
    assert len({TableName(f"d{name}", f"{name}t") for name in names}) == 1


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_that_tidb_tells_apart_differ(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert TableName("d", one) != TableName("d", other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # Spark 4.1 and Delta 4.4: CREATE TABLE with both columns, or a query of both, fails.
        *(("\u03c3", "\u03c2", (True, False)), ("i", "\u0131", (True, False)), ("s", "\u017f", (True, False))),
        *(("\u03bc", "\u00b5", (True, False)), ("İ", "\u0131", (True, False)), ("İ", "i\u0307", (False, True))),
        *(("a\u03a3", "a\u03c2", (True, True)), ("k", "\u212a", (True, True)), ("ß", "ẞ", (True, True))),
        ("ss", "ß", (False, False)),
    ],
)
def test_spark_takes_more_names_for_one(one: str, other: str, same: tuple[bool, bool]) -> None:
    capitals, small = zip(spark_names(one), spark_names(other), strict=True)
    assert (capitals[0] == capitals[1], small[0] == small[1]) == same


def test_sigma_at_the_end_of_a_word_is_no_final_sigma() -> None:
    assert fold("ΑΣ") == "ασ"  # noqa: RUF001


def test_table_name_keeps_its_spelling_and_unpacks_like_a_pair() -> None:
    name = TableName("Shop", "Orders")
    database, table = name
    assert (database, table, str(name)) == ("Shop", "Orders", "Shop.Orders")
    assert {name: 1}[TableName("sHOP", "oRDERS")] == 1
    assert min(TableName("b", "x"), TableName("A", "x")).database == "A"


def test_names_that_would_be_one_text_stand_in_backquotes() -> None:
    names = [TableName("a", "b"), TableName("A.b", "c"), TableName("a", "B.c"), TableName("x.y", "z`")]
    assert by_text(names) == dict(zip(["a.b", "`A.b`.`c`", "`a`.`B.c`", "x.y.z`"], names, strict=True))


def test_every_table_has_a_text_of_its_own_by_which_it_is_known() -> None:
    names = [TableName("a", "b"), TableName("A.b", "c"), TableName("a", "B.c")]
    names += [TableName("`a", "b`.`C`"), TableName("a", "b`.`c")]  # what the second looks like in backquotes
    texts = texts_of(names)
    assert [*texts] == names
    assert len({*map(fold, texts.values())}) == len(names)
    assert [table_named(text.upper(), names) for text in texts.values()] == names
    assert table_named("a.b.c", names) is None, "two tables have this text"
    assert table_named("a.d", names) is None
