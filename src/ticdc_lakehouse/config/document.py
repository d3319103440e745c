"""One YAML document as plain values. What PyYAML silently accepts, or fails on, is a mistake with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from ticdc_codec.errors import ConfigError

_OTHER_BASE = re.compile(r"[-+]?0[0-7_]+|.*:.*")
"""Whole numbers that YAML 1.1 reads in base 8 or 60, others than a person reads: ``010`` is 8, ``10:00`` is 600."""
_MOST_NODES = 100_000
"""Values of a document with its aliases written out: a few lines of aliases of aliases can be billions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The values of a YAML text."""

    values: object
    """None for an empty text."""
    repeated: tuple[tuple[str, str], ...]
    """The path of each key that occurs twice, and where; of its values the last one counts."""


def document_of(file: Path) -> Document:
    """Returns the document of a YAML file. Raises ConfigError for a file that cannot be read, or that is no YAML
    document."""
    try:
        return read_document(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: expected a readable YAML file: {reason(error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}; expected a YAML file in UTF-8") from None


def read_document(text: str) -> Document:
    """Returns the document of a YAML text. Raises yaml.YAMLError for invalid YAML, and for several documents."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is not None and _size(node, {}) > _MOST_NODES:
            raise _mistake(f"aliases (*) make more than {_MOST_NODES:,} values of it", node)
        repeated = tuple(_repeated(node, "", set()))
        return Document(values=None if node is None else loader.construct_document(node), repeated=repeated)
    except RecursionError:
        raise yaml.YAMLError("it nests too deeply") from None


def reason(error: yaml.YAMLError) -> str:
    """Returns what is wrong, with line and column. The text itself is not shown: it may contain a secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    position = f"(line {mark.line + 1}, column {mark.column + 1})" if mark else None
    return " ".join(part for part in (error.context, error.problem, position) if part)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader; a value on which its constructors fail is a mistake with its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                str(value)  # ValueError for one of thousands of digits, which no message could show
            if isinstance(value, str):
                value.encode()  # UnicodeEncodeError, a ValueError, for half of a pair: "\ud800"
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # Most are PyYAML's own, of 2020-99-99, 0x_, !!bool maybe and the like.
            kind = node.tag.rpartition(":")[2]
            raise _mistake(f"expected a value of YAML's type {kind}; what is text needs quotes", node) from None
        if (isinstance(value, int) and _OTHER_BASE.fullmatch(node.value)) or (
            isinstance(value, float) and ":" in node.value
        ):
            raise _mistake("expected a number without leading zeros and colons; what is text needs quotes", node)
        return value


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Returns the number of values in a node, its aliases written out; ``known`` by the nodes' ids."""
    if id(node) not in known:
        known[id(node)] = 1  # for an alias inside the node that it names
        children = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        inner = () if isinstance(node, yaml.ScalarNode) else children
        known[id(node)] = 1 + sum(_size(child, known) for child in inner)
    return known[id(node)]


def _repeated(node: yaml.Node | None, path: str, passed: set[int]) -> Iterator[tuple[str, str]]:
    """Yields the repeated keys in a node, each with its path. Raises ConstructorError for a key that is no text."""
    if id(node) in passed:  # an alias, which may even be inside the node that it names
        return
    passed.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated(value, path, passed)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _mistake("expected a key that is text, found brackets; {{…}} needs quotes around it", key)
            if key.value in seen:
                yield f"{path}{key.value}", f"repeated key (line {key.start_mark.line + 1}); expected once"
            seen.add(key.value)
            yield from _repeated(value, f"{path}{key.value}.", passed)


def _mistake(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
