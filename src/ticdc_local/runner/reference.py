"""References in the bundle's texts: ``${…}``, known before a run, and ``{{…}}``, known while it runs.

Of the second kind there are ``{{job.parameters.NAME}}``, ``{{tasks.KEY.result_state}}`` and, in a for-each task,
``{{input}}``.
Source: https://docs.databricks.com/dev-tools/bundles/variables and https://docs.databricks.com/jobs/dynamic-value-references
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ticdc_codec.errors import ConfigError

STATIC = re.compile(r"\$\{([^}]*)\}")
DYNAMIC = re.compile(r"\{\{([^}]*)\}\}")
INPUT = "input"

Lookup = Callable[[str, str], Any]
"""Returns the value of a reference (its name, where it stands). Raises: ConfigError when it is not known."""


def substitute(value: Any, pattern: re.Pattern[str], lookup: Lookup, where: str) -> Any:
    """Returns ``value`` with every reference replaced, in texts at any depth.

    A text that is one reference and nothing else becomes its value with the value's type; in a longer text the value
    must be a text, number or boolean. Raises: ConfigError naming ``where``.
    """
    match value:
        case str():
            return _in_text(value, pattern, lookup, where)
        case list():
            return [substitute(item, pattern, lookup, f"{where}[{i}]") for i, item in enumerate(value)]
        case dict():
            return {key: substitute(item, pattern, lookup, f"{where}.{key}") for key, item in value.items()}
        case _:
            return value


def _in_text(text: str, pattern: re.Pattern[str], lookup: Lookup, where: str) -> Any:
    whole = pattern.fullmatch(text)
    if whole is not None:
        return lookup(whole.group(1).strip(), where)
    return pattern.sub(lambda match: _scalar(lookup(match.group(1).strip(), where), match.group(0), where), text)


def _scalar(value: Any, reference: str, where: str) -> str:
    """Returns a value within a text, as the platform writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            raise ConfigError(f"{where}: {reference} is a {type(value).__name__} and cannot stand inside a text")


def parameter(name: str) -> str:
    """Returns how ``{{…}}`` names a job parameter."""
    return f"job.parameters.{name}"


def result_state(task: str) -> str:
    """Returns how ``{{…}}`` names the way a task ended."""
    return f"tasks.{task}.result_state"


def check_references(texts: Iterable[str], known: Collection[str], where: str) -> None:
    """Raises ConfigError for a ``{{…}}`` that is not known."""
    for name in names_in(list(texts), DYNAMIC):
        if name not in known:
            supported = ", ".join(sorted(known)) or "none"
            raise ConfigError(f"{where}: {{{{{name}}}}} is not a reference the local runner knows here: {supported}")


def filled(template: str, values: Mapping[str, str]) -> str:
    """Returns ``template`` with every ``{{…}}`` replaced; `check_references` has checked that each is known."""
    return DYNAMIC.sub(lambda match: values[match.group(1).strip()], template)


def names_in(value: Any, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yields the name of every reference in the texts of ``value``, at any depth."""
    match value:
        case str():
            yield from (name.strip() for name in pattern.findall(value))
        case list():
            for item in value:
                yield from names_in(item, pattern)
        case dict():
            yield from names_in(list(value.values()), pattern)
