"""YAML texts: every mistake is a YAML error with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from feed_file import RIGHT, mistakes, written

from ticdc_lakehouse.config.document import read_document, reason

_TENFOLD = ", ".join(f"&a{n + 1} [{', '.join([f'*a{n}'] * 10)}]" for n in range(9))
BILLIONS = f"[&a0 [x], {_TENFOLD}]"
# name of the mistake -> the text of a value, and what the error says.
BROKEN = {
    "template": ("{{topic}}", "expected a key that is text, found brackets; {{…}} needs quotes around it"),
    "list as key": ("{[a, b]: c}", "expected a key that is text"),
    "date": ("2020-99-99", "expected a value of YAML's type timestamp; what is text needs quotes"),
    "whole number": ("0x_", "expected a value of YAML's type int"),
    "empty number": ('!!int ""', "expected a value of YAML's type int"),
    "whole number in base 8": ("010", "expected a number without leading zeros and colons; what is text needs quotes"),
    "negative number in base 8": ("-0_17", "expected a number without leading zeros and colons"),
    "whole number in base 60": ("10:00", "expected a number without leading zeros and colons"),
    "small number in base 60": ("1:30.5", "expected a number without leading zeros and colons"),
    "number in base 60": (":".join(["59"] * 200) + ".5", "expected a value of YAML's type float"),
    "number of thousands of digits": ("9" * 5000, "expected a value of YAML's type int"),
    "number of thousands of digits in base 16": ("0x" + "f" * 5000, "expected a value of YAML's type int"),
    "tag of a truth value": ("!!bool maybe", "expected a value of YAML's type bool"),
    "tag of a time": ("!!timestamp soon", "expected a value of YAML's type timestamp"),
    "tag of Python": ("!!python/object:os.system a", "could not determine a constructor for the tag"),
    "deep": ("[" * 3000 + "]" * 3000, "it nests too deeply"),
    "aliases of aliases": (BILLIONS, "aliases (*) make more than 100,000 values of it"),
    "control character": ("a\x07", "unacceptable character #x0007"),
    "half of a pair": ('"\\ud800"', "expected a value of YAML's type str"),
    "tab": ("a\n\tb: c", "found character '\\t' that cannot start any token"),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_broken_value_is_a_yaml_error(mistake: str) -> None:
    value, expected = BROKEN[mistake]
    with pytest.raises(yaml.YAMLError) as caught:
        read_document(f"a:\n  b: {value}\n")
    assert expected in reason(caught.value)


def test_yaml_error_names_line_and_column_without_showing_the_text(tmp_path: Path) -> None:
    security = "  security: {ssl.key.password: hunter2, sasl.jaas.config: {{secrets/kafka/jaas}}}\n"
    path = written(tmp_path, RIGHT + security)
    (said,) = mistakes(path)
    assert said.startswith(f"{path}: expected a readable YAML file: expected a key that is text")
    assert said.endswith("(line 8, column 60)")
    assert "hunter2" not in said


def test_repeated_keys_are_listed_with_their_paths() -> None:
    document = read_document("a: {b: [{c: 1, c: 2}]}\nd: &x {e: 1, e: 2, f: *x}\na: *x\n")
    assert document.repeated == (
        ("a.b.c", "repeated key (line 1); expected once"),
        ("d.e", "repeated key (line 2); expected once"),
        ("a", "repeated key (line 3); expected once"),
    )


def test_numbers_as_a_person_reads_them_are_right() -> None:
    assert read_document("[0, -5, 1_000, 0x10, 0.5, 0b1, '010', true]").values == [0, -5, 1000, 16, 0.5, 1, "010", True]


def test_empty_text_has_no_values() -> None:
    assert read_document("# nothing\n").values is None


def test_key_that_overrides_a_merged_one_is_not_repeated() -> None:
    document = read_document("a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\n")
    assert document.values == {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}}
    assert document.repeated == ()
