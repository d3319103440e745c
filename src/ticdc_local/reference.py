"""References in the bundle's texts: ``${…}``, known before a run, and ``{{…}}``, known while it runs.

Source: https://docs.databricks.com/dev-tools/bundles/variables and https://docs.databricks.com/jobs/dynamic-value-references
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from ticdc_codec.errors import ConfigError

STATIC = re.compile(r"\$\{([^}]*)\}")
DYNAMIC = re.compile(r"\{\{([^}]*)\}\}")
_PART = re.compile(r"`([^`]+)`|([^.`]+)")

JOB_FACTS = frozenset(
    f"job.{fact}"
    for fact in (
        "id",
        "name",
        "run_id",
        "repair_count",
        "start_time.iso_date",
        "start_time.iso_datetime",
        "start_time.timestamp_ms",
        "trigger.type",
    )
)
TASK_FACTS = frozenset(("task.name", "task.run_id", "task.execution_count"))

Lookup = Callable[[str, str], Any]
"""Gives the value of a reference (its name, where it stands). Raises: ConfigError when it is not known."""


def substitute(value: Any, pattern: re.Pattern[str], lookup: Lookup, where: str) -> Any:
    """``value`` with every reference replaced, in texts at any depth.

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
    return pattern.sub(lambda found: _scalar(lookup(found.group(1).strip(), where), found.group(0), where), text)


def _scalar(value: Any, reference: str, where: str) -> str:
    text = scalar_text(value)
    if text is None:
        raise ConfigError(f"{where}: {reference} is a {type(value).__name__} and cannot stand inside a text")
    return text


def scalar_text(value: Any) -> str | None:
    """A text, number or boolean as the platform makes a text of it; None for anything else."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            return None


def names_in(value: Any, pattern: re.Pattern[str]) -> Iterator[str]:
    """The name of every reference in the texts of ``value``, at any depth."""
    match value:
        case str():
            yield from (name.strip() for name in pattern.findall(value))
        case list():
            for item in value:
                yield from names_in(item, pattern)
        case dict():
            yield from names_in(list(value.values()), pattern)


def parts_of(name: str) -> list[str]:
    """A reference's name in its parts; names with other than letters, digits and ``_`` stand in backticks."""
    return [quoted or plain for quoted, plain in _PART.findall(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a ``{{…}}`` in one task may name."""

    facts: Set[str]
    """Names such as ``job.name`` and ``job.parameters.catalog``."""
    upstream: Set[str]
    """Keys of the tasks that are done before this one starts."""
    loop: bool = False
    """Whether the task is nested in a for-each, and so has an ``input``."""

    def check(self, name: str, where: str) -> None:
        """Raises: ConfigError when the reference is not one that this scope knows."""
        match parts_of(name):
            case ["tasks", task, *_] if task not in self.upstream:
                raise ConfigError(f"{where}: {{{{{name}}}}}: this task does not depend on a task {task!r}")
            case ["tasks", _, "values", _] | ["tasks", _, "result_state"]:
                return
            case ["input", *_] if self.loop:
                return
            case parts if ".".join(parts) not in self.facts:
                known = ", ".join(sorted(self.facts))
                raise ConfigError(f"{where}: {{{{{name}}}}} is not a reference the local runner knows: {known}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of the references in one attempt of one task."""

    facts: Mapping[str, str]
    task_values: Mapping[tuple[str, str], Any]
    """By task key and value key: what ``dbutils.jobs.taskValues.set`` was given."""
    states: Mapping[str, str]
    """How the tasks before this one ended, by task key."""
    item: Any = None
    """The for-each iteration's input."""

    def text(self, template: str, where: str) -> str:
        """``template`` with every ``{{…}}`` replaced; a value that is no text is written as JSON."""
        return DYNAMIC.sub(lambda found: as_text(self._find(found.group(1).strip(), where)), template)

    def _find(self, name: str, where: str) -> Any:
        match parts_of(name):
            case ["tasks", task, "values", key]:
                if (task, key) not in self.task_values:
                    raise ConfigError(f"{where}: {{{{{name}}}}}: task {task!r} set no value {key!r}")
                return self.task_values[task, key]
            case ["tasks", task, "result_state"]:
                return self.states[task]
            case ["input", *path]:
                return _member(self.item, path, name, where)
            case parts:
                return self.facts[".".join(parts)]


def _member(item: Any, path: list[str], name: str, where: str) -> Any:
    for key in path:
        if not isinstance(item, dict) or key not in item:
            raise ConfigError(f"{where}: {{{{{name}}}}}: the input {item!r} has no member {key!r}")
        item = item[key]
    return item


def as_text(value: Any) -> str:
    """A value as a notebook parameter: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
