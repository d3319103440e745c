"""Docstrings of functions have one grammar: "Adds …", "Returns …", and "True if …" where they return a bool."""

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parent.parent / "src"
REFUSED = (
    *("Whether", "Do", "Put", "Let", "Give", "Gives", "Make", "Create", "Add", "Write", "Drop"),
    *("Of", "Those", "The same"),
)
"""Beginnings of other grammars: questions, imperatives, fragments, and "gives" for "returns"."""


def test_docstrings_of_functions_begin_as_sentences_in_the_third_person() -> None:
    wrong = [place for place, text in docstrings() if begins_wrong(text)]
    assert not wrong, "\n".join(["expected Adds …, Returns …, True if … in", *wrong])


def test_each_refused_beginning_is_found_whatever_follows_it() -> None:
    assert all(begins_wrong(f"{word} x.") and begins_wrong(f"{word}.") for word in REFUSED)
    assert not any(map(begins_wrong, ("Adds x.", "Dropped x.", "True if x.", "Offsets of x.")))


def docstrings() -> Iterator[tuple[str, str]]:
    for file in sorted(SRC.rglob("*.py")):
        path = file.relative_to(SRC).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                yield f"{path}:{node.lineno} {node.name}: {text.splitlines()[0]}", text


def begins_wrong(text: str) -> bool:
    return any(text.startswith(word) and not text[len(word) : len(word) + 1].isalnum() for word in REFUSED)
