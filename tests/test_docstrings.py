"""Docstrings of functions have one grammar: "Adds …", "Returns …", and "True if …" where they return a bool."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parent.parent / "src"
REFUSED = (
    *("Whether", "Do", "Put", "Let", "Give", "Gives", "Make", "Create", "Add", "Write", "Drop"),
    *("Of", "Those", "The same"),
)
"""Beginnings of other grammars: questions, imperatives, fragments, and "gives" for "returns"."""

_REFUSED_PHRASES = re.compile(r"\b(?:go|goes|going|went) on\b|\b(?:came|come|comes) late\b")
"""A table or a run continues; rows and DDLs are late."""


def test_docstrings_of_functions_begin_as_sentences_in_the_third_person() -> None:
    wrong = [place for place, text in docstrings() if begins_wrong(text)]
    assert not wrong, "\n".join(["expected Adds …, Returns …, True if … in", *wrong])


def test_each_refused_beginning_is_found_whatever_follows_it() -> None:
    assert all(begins_wrong(f"{word} x.") and begins_wrong(f"{word}.") for word in REFUSED)
    assert not any(map(begins_wrong, ("Adds x.", "Dropped x.", "True if x.", "Offsets of x.")))


def test_texts_say_continues_and_late_rows() -> None:
    texts = [(path, " ".join(text.split())) for path, text in constants()]
    wrong = [f"{path}: {text}" for path, text in texts if _REFUSED_PHRASES.search(text)]
    assert not wrong, "\n".join(["expected continues, late rows or DDLs in", *wrong])


def test_texts_name_numbers_and_say_what_is_missing_in_plain_words() -> None:
    texts = [(path, " ".join(text.split())) for path, text in constants()]
    wrong = [f"{path}: {text}" for path, text in texts if re.search(r"\bso many\b|\bas good without\b", text)]
    assert not wrong, "\n".join(["expected the number's name, or what is missing, in", *wrong])


def constants() -> Iterator[tuple[str, str]]:
    """The texts of all modules, docstrings and messages alike."""
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield file.relative_to(SRC).as_posix(), node.value


def docstrings() -> Iterator[tuple[str, str]]:
    for file in sorted(SRC.rglob("*.py")):
        path = file.relative_to(SRC).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                yield f"{path}:{node.lineno} {node.name}: {text.splitlines()[0]}", text


def begins_wrong(text: str) -> bool:
    return any(text.startswith(word) and not text[len(word) : len(word) + 1].isalnum() for word in REFUSED)
