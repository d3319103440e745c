"""The bundle as a value: ``databricks.yml`` and the files it includes, for one target, with every ``${…}`` resolved.

What the platform adds when it deploys (development mode's name prefixes and pauses) is not added here. Settings that
only matter on the platform are accepted; a setting that is not understood is an error.
Source: https://docs.databricks.com/dev-tools/bundles/settings
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ticdc_codec.errors import ConfigError
from ticdc_local.reference import STATIC, substitute
from ticdc_local.yaml_file import read_yaml

FILE = "databricks.yml"
_TOP_KEYS = {
    "bundle",
    "include",
    "artifacts",
    "sync",
    "variables",
    "targets",
    "workspace",
    "run_as",
    "permissions",
    "resources",
}
_INCLUDED_KEYS = {"resources", "variables"}
_TARGET_KEYS = {"mode", "default", "presets", "workspace", "run_as", "permissions", "variables"}
_VARIABLE_KEYS = {"description", "default", "type"}
_BUNDLE_KEYS = {"name", "engine", "databricks_cli_version", "uuid"}
_KINDS = {"jobs", "schemas", "volumes"}
_USER = {"userName": "local", "short_name": "local"}


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
    settings: Mapping[str, Any]
    """The chosen target's settings."""
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
    files = _read_files(root)
    main = files[root / FILE]
    name = _name(main, root)
    target, settings = _target(_mapping(main, "targets", FILE), target)
    values = _variables(
        _definitions(files, root),
        _mapping(settings, "variables", f"{FILE}: targets.{target}"),
        variables or {},
    )
    found = tuple(_resources(files))
    tree = {
        "bundle": {**main["bundle"], "target": target},
        "var": values,
        "workspace": _workspace(root, settings),
        "resources": _by_kind(found),
    }
    references = _References(tree=tree)
    return Bundle(
        root=root,
        name=name,
        target=target,
        settings=references.resolve(settings, f"{FILE}: targets.{target}"),
        variables=references.resolve(values, f"{FILE}: variables"),
        resources=tuple(references.resource(resource, root) for resource in found),
    )


def _read_files(root: Path) -> dict[Path, dict[str, Any]]:
    files = {root / FILE: read_yaml(root / FILE)}
    _only(files[root / FILE], _TOP_KEYS, FILE)
    patterns = files[root / FILE].get("include") or []
    if not isinstance(patterns, list):
        raise ConfigError(f"{root / FILE}: include: expected a list of patterns, found {patterns!r}")
    for pattern in patterns:
        files |= {file: read_yaml(file) for file in _included(root, pattern)}
    for file in list(files)[1:]:
        _only(files[file], _INCLUDED_KEYS, str(file))
    return files


def _included(root: Path, pattern: object) -> list[Path]:
    expected = f"{root / FILE}: include: expected patterns of files in this folder, found {pattern!r}"
    if not isinstance(pattern, str) or not pattern or Path(pattern).is_absolute():
        raise ConfigError(expected)
    try:
        matches = sorted(root.glob(pattern))
    except ValueError as error:  # such as a**
        raise ConfigError(f"{expected}: {error}") from None
    if not matches:
        raise ConfigError(f"{root / FILE}: include: {pattern!r} matches no file")
    return matches


def _name(main: Mapping[str, Any], root: Path) -> str:
    bundle = _mapping(main, "bundle", FILE)
    _only(bundle, _BUNDLE_KEYS, f"{FILE}: bundle")
    if not isinstance(bundle.get("name"), str):
        raise ConfigError(f"{root / FILE}: bundle.name: expected a text, found {bundle.get('name')!r}")
    return str(bundle["name"])


def _target(targets: Mapping[str, Any], name: str | None) -> tuple[str, Mapping[str, Any]]:
    if name is None:
        defaults = [key for key in targets if _mapping(targets, key, f"{FILE}: targets").get("default")]
        if len(defaults) != 1:
            raise ConfigError(f"{FILE}: targets: expected one with default: true, found {defaults or 'none'}")
        name = defaults[0]
    if name not in targets:
        raise ConfigError(f"{FILE}: targets: no target {name!r}; there are: {', '.join(targets)}")
    settings = _mapping(targets, name, f"{FILE}: targets")
    _only(settings, _TARGET_KEYS, f"{FILE}: targets.{name}")
    return name, settings


def _definitions(files: Mapping[Path, Mapping[str, Any]], root: Path) -> dict[str, Mapping[str, Any]]:
    definitions: dict[str, Mapping[str, Any]] = {}
    for file, content in files.items():
        declared, where = _mapping(content, "variables", str(file)), f"{file.relative_to(root)}: variables"
        for name in declared:
            if name in definitions:
                raise ConfigError(f"{where}.{name}: is declared twice")
            definitions[name] = _mapping(declared, name, where)
            _only(definitions[name], _VARIABLE_KEYS, f"{where}.{name}")
    return definitions


def _variables(
    definitions: Mapping[str, Mapping[str, Any]], of_target: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    for name in (*of_target, *given):
        if name not in definitions:
            raise ConfigError(f"{FILE}: a value for variable {name!r}, which is not declared")
    chosen = {name: definition["default"] for name, definition in definitions.items() if "default" in definition}
    chosen |= {name: _value_of_target(value) for name, value in of_target.items()} | dict(given)
    for name, definition in definitions.items():
        _check_variable(name, definition, chosen)
    return chosen


def _value_of_target(value: Any) -> Any:
    """A target gives a variable's value, or its definition with another default."""
    is_definition = isinstance(value, Mapping) and "default" in value and value.keys() <= _VARIABLE_KEYS
    return value["default"] if is_definition else value


def _check_variable(name: str, definition: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    where = f"{FILE}: variables.{name}"
    if name not in values:
        raise ConfigError(f"{where}: has no value for this target and no default")
    if definition.get("type", "complex") != "complex":
        raise ConfigError(f"{where}.type: expected complex, found {definition['type']!r}")
    if isinstance(values[name], dict | list) != ("type" in definition):
        raise ConfigError(f"{where}: lists and mappings, and only they, need type: complex; found {values[name]!r}")


def _resources(files: Mapping[Path, Mapping[str, Any]]) -> Iterator[Resource]:
    seen: dict[str, Path] = {}
    for file, content in files.items():
        kinds = _mapping(content, "resources", str(file))
        _only(kinds, _KINDS, f"{file}: resources")
        for kind in kinds:
            for key in _mapping(kinds, kind, f"{file}: resources"):
                if key in seen:
                    raise ConfigError(f"{file}: resources.{kind}.{key}: {seen[key]} has a resource of this key too")
                seen[key] = file
                definition = _mapping(kinds[kind], key, f"{file}: resources.{kind}")
                yield Resource(kind=kind, key=key, file=file, definition=definition)


def _by_kind(resources: tuple[Resource, ...]) -> dict[str, dict[str, Mapping[str, Any]]]:
    kinds: dict[str, dict[str, Mapping[str, Any]]] = {}
    for resource in resources:
        kinds.setdefault(resource.kind, {})[resource.key] = resource.definition
    return kinds


def _workspace(root: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """On a laptop the project's folder is where the bundle's files lie."""
    here = {"root_path": str(root), "file_path": str(root), "current_user": _USER}
    return {**_mapping(settings, "workspace", FILE), **here}


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    tree: Mapping[str, Any]

    def resource(self, resource: Resource, root: Path) -> Resource:
        where = f"{resource.file.relative_to(root)}: resources.{resource.kind}.{resource.key}"
        definition = self.resolve(resource.definition, where)
        return Resource(kind=resource.kind, key=resource.key, file=resource.file, definition=definition)

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


def _mapping(parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """The mapping under ``key``, empty where the key is absent or has no value."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: {key}: expected a mapping, found {type(value).__name__}")
    return value


def _only(mapping: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in mapping:
        if key not in known:
            raise ConfigError(
                f"{where}: {key}: the local runner does not know this; it knows {', '.join(sorted(known))}"
            )
