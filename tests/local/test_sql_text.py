"""SQL texts are split into statements as a notebook and the prompt run them."""

import pytest

from ticdc_local.sql_text import outside_quotes, sql_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("a;b", ["a", "b"]),
        ("a;;\n;", ["a"]),
        ("a /* ; */; -- end;", ["a /* ; */"]),
        ("""a ';' ";" `;` '\\';' ; b""", ["""a ';' ";" `;` '\\';'""", "b"]),
        ("BEGIN a; b; END;", ["BEGIN a; b; END"]),
        ("-- why\n/* how */ BEGIN a; b; END;", ["-- why\n/* how */ BEGIN a; b; END"]),
        ("a - b / c", ["a - b / c"]),
    ],
)
def test_sql_is_parted_into_statements(text: str, statements: list[str]) -> None:
    assert list(sql_statements(text)) == statements


def test_outside_quotes_nothing_of_a_comment_is_left_and_of_a_quoted_text_its_quote() -> None:
    assert outside_quotes("""a ':x' + "y" /* :z */ `b;`:c -- ':d'\n;""") == """a ' + "  `:c \n;"""
