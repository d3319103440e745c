"""The bundle as a value: ``databricks.yml`` and the files it includes, for one target, with every ``${…}`` resolved.

It reads what this project's bundle uses and refuses the rest by name; it is not a second Databricks. What the platform
adds when it deploys (development mode's name prefixes and pauses) is not added here.
Source: https://docs.databricks.com/dev-tools/bundles/settings
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.reference import STATIC, substitute
from ticdc_local.runner.yaml_file import Definition, read_as, read_yaml

FILE = "databricks.yml"


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


class _Included(Definition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    resources: dict[Literal["jobs", "schemas", "volumes"], dict[str, dict[str, Any]]]


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
        """Raises: ConfigError when there is none."""
        for resource in self.resources:
            if (resource.kind, resource.key) == (kind, key):
                return resource
        known = ", ".join(r.key for r in self.resources if r.kind == kind) or "none"
        raise ConfigError(f"{self.root / FILE}: no {kind} named {key!r}; there are: {known}")


def load_bundle(root: Path, target: str | None = None, variables: Mapping[str, Any] | None = None) -> Bundle:
    """The bundle in folder ``root``; ``target`` None is the default one; ``variables`` go before targets' and defaults.

    Raises: ConfigError naming file and key.
    """
    main = read_as(_Main, read_yaml(root / FILE), FILE)
    targets = {name: read_as(_Target, values, f"{FILE}: targets.{name}") for name, values in main.targets.items()}
    target = _default(targets) if target is None else target
    if target not in targets:
        raise ConfigError(f"{FILE}: targets: no target {target!r}; there are: {', '.join(targets)}")
    chosen = _variables(main.variables, {**targets[target].variables, **(variables or {})})
    found = _with_additions(tuple(_resources(root, main.include)), targets[target], f"{FILE}: targets.{target}")
    references = _References(
        tree={
            "bundle": {"name": main.bundle.name, "target": target},
            "var": chosen,
            # On a laptop the project's folder is where the bundle's files lie.
            "workspace": {**targets[target].workspace, "root_path": str(root), "file_path": str(root)},
            "resources": _by_kind(found),
        }
    )
    return Bundle(
        root=root,
        name=main.bundle.name,
        target=target,
        variables=references.resolve(chosen, f"{FILE}: variables"),
        resources=tuple(references.resource(resource, root) for resource in found),
    )


def _default(targets: Mapping[str, _Target]) -> str:
    defaults = [name for name, settings in targets.items() if settings.default]
    if len(defaults) != 1:
        raise ConfigError(f"{FILE}: targets: expected one with default: true, found {defaults or 'none'}")
    return defaults[0]


def _variables(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Each declared variable's value: the given one, else its default."""
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


def _resources(root: Path, patterns: list[str]) -> Iterator[Resource]:
    """The resources of every included file. Raises: ConfigError for a key that two of them have."""
    seen: dict[str, Path] = {}
    for file in (file for pattern in patterns for file in _included(root, pattern)):
        for kind, resources in read_as(_Included, read_yaml(file), str(file)).resources.items():
            for key, definition in resources.items():
                if key in seen:
                    raise ConfigError(f"{file}: resources.{kind}.{key}: {seen[key]} has a resource of this key too")
                seen[key] = file
                yield Resource(kind=kind, key=key, file=file, definition=definition)


def _with_additions(resources: tuple[Resource, ...], target: _Target, where: str) -> tuple[Resource, ...]:
    """The resources with the keys that the target adds to them. Raises: ConfigError for a key that it replaces."""
    definitions = {(resource.kind, resource.key): dict(resource.definition) for resource in resources}
    for kind, additions in target.resources.items():
        for key, added in additions.items():
            if (kind, key) not in definitions:
                raise ConfigError(f"{where}.resources.{kind}.{key}: no such resource")
            if both := added.keys() & definitions[kind, key].keys():
                raise ConfigError(f"{where}.resources.{kind}.{key}: expected new keys, found {', '.join(sorted(both))}")
            definitions[kind, key] |= added
    return tuple(replace(resource, definition=definitions[resource.kind, resource.key]) for resource in resources)


def _included(root: Path, pattern: str) -> list[Path]:
    try:
        matches = sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:  # such as a**, or an absolute path
        raise ConfigError(f"{root / FILE}: include: expected patterns of files in this folder: {error}") from None
    if not matches:
        raise ConfigError(f"{root / FILE}: include: {pattern!r} matches no file")
    return matches


def _by_kind(resources: tuple[Resource, ...]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """What ``${resources.…}`` reads. The ``id`` that the platform gives a resource is its key here."""
    kinds: dict[str, dict[str, Mapping[str, Any]]] = {}
    for resource in resources:
        kinds.setdefault(resource.kind, {})[resource.key] = {"id": resource.key, **resource.definition}
    return kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    tree: Mapping[str, Any]

    def resource(self, resource: Resource, root: Path) -> Resource:
        where = f"{resource.file.relative_to(root)}: resources.{resource.kind}.{resource.key}"
        return replace(resource, definition=self.resolve(resource.definition, where))

    def resolve(self, value: Any, where: str, trail: tuple[str, ...] = ()) -> Any:
        """``trail`` is the references being followed, to see a circle."""
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
