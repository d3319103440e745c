"""MySQL type texts taken apart."""

from __future__ import annotations

import pytest

from ticdc_codec.mysql_type import (
    Family,
    family_of,
    is_known,
    parse_type,
    quoted_element,
    same_type,
    whole_digits,
    whole_range,
)

F = Family


@pytest.mark.parametrize(
    ("text", "name", "family", "size", "unsigned"),
    [
        ("bigint(20) unsigned", "bigint", F.INTEGER, (20,), True),
        ("INT", "int", F.INTEGER, (), False),
        ("int(5) unsigned zerofill", "int", F.INTEGER, (5,), True),
        ("int zerofill", "int", F.INTEGER, (), True),
        ("tinyint(1)", "tinyint", F.INTEGER, (1,), False),
        ("decimal(10,2)", "decimal", F.DECIMAL, (10, 2), False),
        ("numeric ( 10 , 2 ) unsigned", "numeric", F.DECIMAL, (10, 2), True),
        ("double(10,4)", "double", F.DOUBLE, (10, 4), False),
        ("double precision", "double", F.DOUBLE, (), False),
        ("float", "float", F.FLOAT, (), False),
        ("bit(64)", "bit", F.BIT, (64,), False),
        ("datetime(6)", "datetime", F.DATETIME, (6,), False),
        ("timestamp", "timestamp", F.TIMESTAMP, (), False),
        ("varbinary(300)", "varbinary", F.BINARY, (300,), False),
        ("mediumtext", "mediumtext", F.TEXT, (), False),
        ("json", "json", F.JSON, (), False),
        ("vector(3)", "vector", F.VECTOR, (3,), False),
        ("vector<float>", "vector", F.VECTOR, (), False),
        ("VECTOR < FLOAT > (3)", "vector", F.VECTOR, (3,), False),
        ("geometry", "geometry", F.OTHER, (), False),
        ("", "", F.OTHER, (), False),
        ("(3)", "(3)", F.OTHER, (), False),
    ],
)
def test_a_type_text_is_parsed_into_its_parts(
    text: str, name: str, family: Family, size: tuple[int, ...], unsigned: bool
) -> None:
    kind = parse_type(text)
    assert (kind.text, kind.name, kind.family, kind.size, kind.unsigned) == (text, name, family, size, unsigned)
    assert family_of(text) is family


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("enum('a','b,c','d''e','ü','x\"y','')", ("a", "b,c", "d'e", "ü", 'x"y', "")),
        ("set('a)','(b')", ("a)", "(b")),
        (r"enum('a\'b','c\\d','e\nf')", ("a'b", "c\\d", "e\nf")),
        ("ENUM ( 'unsigned' )", ("unsigned",)),
        ("enum", ()),
    ],
)
def test_names_of_an_enum_or_set_are_unquoted(text: str, elements: tuple[str, ...]) -> None:
    assert parse_type(text).elements == elements
    assert parse_type(text).unsigned is False


def test_quoted_names_are_read_back() -> None:
    names = ("a", "", "b,c", "d'e", "''", 'x"y', "a)", "(b", "c\\d", "\\", "\\'", "\\n", "e\nf", "ü")
    for kind in ("enum", "set"):
        assert parse_type(f"{kind}({','.join(map(quoted_element, names))})").elements == names


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("int", True), ("bigint(20) unsigned", True), ("int(5) unsigned zerofill", True), ("enum('a)','b')", True),
        ("vector<float>", True), ("vector<float>(3)", True), ("null", True), ("unspecified", True),
        ("INT", False), ("int8x", False), ("int5", False), ("int signed", False), ("geometry", False), ("", False),
        ("varchar(999999999)", True), (f"varchar({'9' * 19})", False), (f"decimal({'9' * 5000},2)", False),
    ],
)  # fmt: skip
def test_types_of_tidb_are_known_and_others_are_not(text: str, known: bool) -> None:
    assert is_known(text) is known


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("INT", "int(11)", True), ("integer", "int(11)", True), ("int", "int unsigned", False),
        ("decimal(10)", "DECIMAL(10,0)", True), ("decimal", "decimal(10,0)", True),
        ("decimal(9)", "decimal(9,1)", False), ("geometry", "GEOMETRY", True), ("geometry", "point", False),
        ("enum('a')", "enum('b')", False),
    ],
)  # fmt: skip
def test_two_texts_may_mean_one_type(one: str, other: str, same: bool) -> None:
    assert same_type(parse_type(one), parse_type(other)) is same


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("boolean", -128, 127),
        ("smallint unsigned", 0, 65535),
        ("integer", -(2**31), 2**31 - 1),
        ("bigint(20) unsigned", 0, 2**64 - 1),
        ("bit(4)", 0, 15),
        ("bit", 0, 2**64 - 1),
    ],
)
def test_whole_numbers_have_a_range(text: str, low: int, high: int) -> None:
    assert whole_range(parse_type(text)) == (low, high)


@pytest.mark.parametrize(
    ("text", "digits"), [("decimal(5,2)", 3), ("decimal(5)", 5), ("decimal", 400), ("float(4,1)", 3), ("float", 400)]
)
def test_a_type_of_unknown_size_holds_any_number(text: str, digits: int) -> None:
    """Messages call a DECIMAL(20,2) ``decimal``."""
    assert whole_digits(parse_type(text)) == digits
