"""The bundle as a value: ``databricks.yml`` and the files it includes, for one target, with every ``${…}`` resolved.

It reads what this project's bundle uses and refuses the rest by name; it is not a second Databricks. What the platform
adds when it deploys (development mode's name prefixes and pauses) is not added here.
Source: https://docs.databricks.com/dev-tools/bundles/settings
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_local.runner.reference import STATIC, substitute
from ticdc_local.runner.yaml_file import Definition, read_as, read_yaml

FILE = "databricks.yml"
OBSERVING = ("dashboards", "alerts")
"""Kinds of resources that only one target may have; a laptop has none of them."""


class _Settings(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    engine: Any = None
    databricks_cli_version: Any = None


class _Variable(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: str = ""
    default: Any = UNSET
    type: Literal["complex"] | UnsetType = UNSET


class _Target(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: Any = None
    default: bool = False
    presets: Any = None
    workspace: dict[str, Any] = field(default_factory=dict)
    run_as: Any = None
    permissions: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


class _Main(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bundle: _Settings
    targets: dict[str, Any]
    include: list[str] = field(default_factory=list)
    artifacts: Any = None
    sync: Any = None
    variables: dict[str, Any] = field(default_factory=dict)


class _Additions(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an included file adds to a target: values of variables, keys of resources, or dashboards and alerts that
    only this target has."""

    variables: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


class _Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """A task, of which only the key is looked at."""

    task_key: str


class _Included(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    resources: dict[Literal["jobs", "schemas", "volumes"], dict[str, dict[str, Any]]] = field(default_factory=dict)
    targets: dict[str, _Additions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of the bundle."""

    kind: str
    """As in the YAML: ``jobs``, ``schemas``, ``volumes``."""
    key: str
    file: Path
    """Where it is defined; its relative paths start from this file's folder."""
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle for one target."""

    root: Path
    name: str
    target: str
    variables: Mapping[str, Any]
    resources: tuple[Resource, ...]

    def resource(self, kind: str, key: str) -> Resource:
        """Returns the resource of this kind and key. Raises: ConfigError when it does not exist."""
        for resource in self.resources:
            if (resource.kind, resource.key) == (kind, key):
                return resource
        known = (resource.key for resource in self.resources if resource.kind == kind)
        raise ConfigError(f"{self.root / FILE}: no {kind} named {key!r}; {suggestion(key, known)}")


def load_bundle(root: Path, target: str | None = None, variables: Mapping[str, Any] | None = None) -> Bundle:
    """Loads the bundle in folder ``root``; ``target`` None is the default one; ``variables`` override targets' and
    defaults.

    Raises: ConfigError naming file and key.
    """
    main = read_as(_Main, read_yaml(root / FILE), FILE)
    targets = {name: read_as(_Target, values, f"{FILE}: targets.{name}") for name, values in main.targets.items()}
    target = _target_name(targets, target)
    files = {file: read_as(_Included, read_yaml(file), str(file)) for file in _files(root, main.include)}
    additions = {file: each.targets[target] for file, each in files.items() if target in each.targets}
    given = [targets[target].variables, *(each.variables for each in additions.values()), dict(variables or {})]
    chosen = _variables(main.variables, reduce(or_, given))
    resources = _with_additions(tuple(_resources(files)), targets[target].resources, f"{FILE}: targets.{target}")
    for file, each in additions.items():
        resources = _with_file(resources, each, file, target)
    references = _References(
        tree={
            "bundle": {"name": main.bundle.name, "target": target},
            "var": chosen,
            "workspace": {**targets[target].workspace, "root_path": str(root), "file_path": str(root)},
            "resources": _by_kind(resources),
        }
    )
    return Bundle(
        root=root,
        name=main.bundle.name,
        target=target,
        variables=references.resolve(chosen, f"{FILE}: variables"),
        resources=tuple(references.resource(resource, root) for resource in resources),
    )


def _target_name(targets: Mapping[str, _Target], name: str | None) -> str:
    """Returns the target of this name, the default one for None."""
    defaults = [name for name, settings in targets.items() if settings.default]
    if name is None and len(defaults) != 1:
        raise ConfigError(f"{FILE}: targets: expected one with default: true, found {defaults or 'none'}")
    chosen = defaults[0] if name is None else name
    if chosen not in targets:
        raise ConfigError(f"{FILE}: targets: no target {chosen!r}; there are: {', '.join(targets)}")
    return chosen


def _variables(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns each declared variable's value: the given one, else its default."""
    for name in given:
        if name not in declared:
            raise ConfigError(f"{FILE}: a value for variable {name!r}, which is not declared")
    values = {}
    for name, definition in declared.items():
        where = f"{FILE}: variables.{name}"
        variable = read_as(_Variable, definition, where)
        values[name] = given.get(name, variable.default)
        if values[name] is UNSET:
            raise ConfigError(f"{where}: has no value for this target and no default")
        if isinstance(values[name], dict | list) != (variable.type is not UNSET):
            raise ConfigError(f"{where}: lists and mappings, and only they, need type: complex; found {values[name]!r}")
    return values


def _files(root: Path, patterns: list[str]) -> list[Path]:
    return [file for pattern in patterns for file in _included(root, pattern)]


def _resources(files: Mapping[Path, _Included]) -> Iterator[Resource]:
    """Yields the resources of every included file. Raises: ConfigError for a key that two of them have."""
    seen: dict[str, Path] = {}
    for file, included in files.items():
        for kind, resources in included.resources.items():
            for key, definition in resources.items():
                if key in seen:
                    raise ConfigError(f"{file}: resources.{kind}.{key}: {seen[key]} has a resource of this key too")
                seen[key] = file
                yield Resource(kind=kind, key=key, file=file, definition=definition)


def _with_file(resources: tuple[Resource, ...], added: _Additions, file: Path, target: str) -> tuple[Resource, ...]:
    """Returns the resources with what an included file adds to them for a target."""
    new = tuple(
        Resource(kind=kind, key=key, file=file, definition=definition)
        for kind in OBSERVING
        for key, definition in added.resources.get(kind, {}).items()
    )
    known = {kind: each for kind, each in added.resources.items() if kind not in OBSERVING}
    return _with_additions(resources, known, f"{file}: targets.{target}") + new


def _with_additions(
    resources: tuple[Resource, ...], added: Mapping[str, Mapping[str, Mapping[str, Any]]], where: str
) -> tuple[Resource, ...]:
    """Returns the resources with the keys that a target adds to them. Raises: ConfigError for a key that it
    replaces."""
    definitions = {(resource.kind, resource.key): resource.definition for resource in resources}
    for kind, additions in added.items():
        for key, addition in additions.items():
            place = f"{where}.resources.{kind}.{key}"
            if (kind, key) not in definitions:
                raise ConfigError(f"{place}: no such resource")
            definitions[kind, key] = _merged(definitions[kind, key], addition, place)
    return tuple(replace(resource, definition=definitions[resource.kind, resource.key]) for resource in resources)


def _merged(given: Mapping[str, Any], added: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Returns a mapping with what another one adds to it, at any depth; tasks are identified by ``task_key``."""
    merged = dict(given)
    for name, value in added.items():
        match merged.get(name), value:
            case None, _:
                merged[name] = value
            case dict() as own, dict():
                merged[name] = _merged(own, value, f"{where}.{name}")
            case list() as tasks, list() if name == "tasks":
                merged[name] = _merged_tasks(tasks, value, f"{where}.{name}")
            case own, _ if name != "task_key" or own != value:
                raise ConfigError(f"{where}: expected new keys, found {name}")
    return merged


def _merged_tasks(tasks: list[Any], added: list[Any], where: str) -> list[Any]:
    additions = {read_as(_Keyed, task, where).task_key: task for task in added}
    keys = [read_as(_Keyed, task, where).task_key for task in tasks]
    for key in additions.keys() - set(keys):
        raise ConfigError(f"{where}[{key}]: no such task")
    return [_merged(task, additions.get(key, {}), f"{where}[{key}]") for key, task in zip(keys, tasks, strict=True)]


def _included(root: Path, pattern: str) -> list[Path]:
    try:
        matches = sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:  # such as a**, or an absolute path
        raise ConfigError(f"{root / FILE}: include: expected patterns of files in this folder: {error}") from None
    if not matches:
        raise ConfigError(f"{root / FILE}: include: {pattern!r} matches no file")
    return matches


def _by_kind(resources: tuple[Resource, ...]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Returns what ``${resources.…}`` reads. The ``id`` that the platform assigns to a resource is its key here."""
    kinds: dict[str, dict[str, Mapping[str, Any]]] = {}
    for resource in resources:
        kinds.setdefault(resource.kind, {})[resource.key] = {"id": resource.key, **resource.definition}
    return kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    tree: Mapping[str, Any]
    """The values of ``${bundle.…}``, ``${var.…}``, ``${workspace.…}`` and ``${resources.…}``. The workspace's folder of
    the bundle's files is the project's."""

    def resource(self, resource: Resource, root: Path) -> Resource:
        where = f"{resource.file.relative_to(root)}: resources.{resource.kind}.{resource.key}"
        return replace(resource, definition=self.resolve(resource.definition, where))

    def resolve(self, value: Any, where: str, trail: tuple[str, ...] = ()) -> Any:
        """Resolves the references in a value. ``trail``: the references being followed, to detect a cycle."""
        return substitute(value, STATIC, lambda name, at: self._find(name, at, trail), where)

    def _find(self, name: str, where: str, trail: tuple[str, ...]) -> Any:
        if name in trail:
            raise ConfigError(f"{where}: references go in a circle: {' -> '.join((*trail, name))}")
        value: Any = self.tree
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                known = ", ".join(value) if isinstance(value, Mapping) else "nothing"
                raise ConfigError(f"{where}: ${{{name}}} is not known: no {part!r} among {known or 'nothing'}")
            value = value[part]
        return self.resolve(value, where, (*trail, name))
