"""What is odd in a YAML file of the bundle is an error with file and line, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.yaml_file import read_yaml


def written(folder: Path, text: str) -> Path:
    (folder / "f.yml").write_text(text, encoding="utf-8")
    return folder / "f.yml"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("b: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}", {"b": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}),
        ("true: a\n2: {3: b}", {"true": "a", "2": {"3": "b"}}),
        ("a: [2026-01-31]", {"a": ["2026-01-31"]}),
        ("a: &a [1]\nb: *a", {"a": [1], "b": [1]}),
    ],
)
def test_yaml_is_read_as_the_platform_reads_it(text: str, content: object, tmp_path: Path) -> None:
    assert read_yaml(written(tmp_path, text)) == content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "expected a readable YAML file: while parsing a flow node"),
        ("- a", "expected a mapping, found list"),
        (
            "a:\n  b: {{job.run_id}}",
            "expected a key that is text, found brackets; {{…}} needs quotes around it (line 2",
        ),
        ("a: 1\nb: 2\na: 3", "a: repeated key (line 3)"),
        ("a: 2026-99-99", "expected a value of YAML's type timestamp; what is text needs quotes (line 1"),
        (f"a: {'1' * 5000}", "expected a value of YAML's type int"),
        ("a: " + "[" * 2000, "it nests too deeply"),
        ("r: &r\n  jobs: *r", "r.jobs: an alias is inside what it names"),
        ("a: &a [{b: *a}]", "a[0].b: an alias is inside what it names"),
    ],
)
def test_wrong_yaml_is_refused_with_file_and_place(text: str, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        read_yaml(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_yaml_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yml").write_bytes(b"a: \xe9")
    with pytest.raises(ConfigError, match=r"f\.yml: cannot be read: 'utf-8' codec can't decode"):
        read_yaml(tmp_path / "f.yml")
