"""A mapping of a YAML file, converted key by key into the msgspec Struct that defines its keys.

msgspec stops at the first mistake; converted one by one, the keys show all of them at once. The Struct is the one
definition of a key: its type, limits, default and description, from which `config.reference` also makes the page and
the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET
from msgspec.structs import FieldInfo

from ticdc_codec.errors import ConfigError, suggestion
from ticdc_codec.options import allows_null, bare, typed

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a file, and the mistakes that were found in the whole file."""

    file: Path
    mistakes: list[tuple[str, str]]
    """The path of a key and what is wrong there. All keys of a file share the list."""
    path: str = ""
    """The keys that lead here, joined by dots; empty for the file itself."""

    def __truediv__(self, name: object) -> Key:
        path = f"{self.path}.{name}" if self.path else str(name)
        return Key(file=self.file, mistakes=self.mistakes, path=path)

    def note(self, mistake: object) -> None:
        """Adds what is wrong here and what is expected."""
        self.mistakes.append((self.path, str(mistake)))

    def stop_on_mistakes(self, order: Sequence[str]) -> None:
        """Raises one ConfigError that lists all mistakes, one a line, in this order of the file's own keys."""
        ranks = {name: rank for rank, name in enumerate(order)}
        listed = sorted(self.mistakes, key=lambda mistake: ranks.get(mistake[0].partition(".")[0], -1))
        if listed:
            raise ConfigError("\n".join(": ".join(filter(None, (str(self.file), *mistake))) for mistake in listed))


def read_struct(kind: type[S], value: object, key: Key) -> S:
    """Reads the mapping as a Struct. A key with a mistake, which is noted, has its default, or None where it has
    none."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given = _mapping(value, key)
    for name in (each for each in given if each not in fields):
        (key / name).note(f"unknown key; {suggestion(name, fields)}")
    return kind(**{field.name: _field(field, given.get(name, UNSET), key / name) for name, field in fields.items()})


def default_of(field: FieldInfo) -> Any:
    """Returns the default of a Struct's field; None where it has none."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _field(field: FieldInfo, value: object, key: Key) -> Any:
    if value is UNSET or (value is None and _null_is_absent(field)):
        if field.required:
            key.note("required key is missing")
        return default_of(field)
    if value == [] and _is_list(field) and _metadata(field).type.min_length:
        key.note("expected a list of texts, found an empty one; remove the key, or give it a text")
        return default_of(field)
    converted = _convert(field.type, value, key)
    return default_of(field) if converted is UNSET else converted


def _null_is_absent(field: FieldInfo) -> bool:
    """True if a key without a value is as one that is not given. A list without one is not, unless its metadata says
    so: where all its lines are comments, its default, which may be all tables, is not meant."""
    if not _is_list(field):
        return not allows_null(field.type)
    return "null" in (_metadata(field).extra or {})


def _metadata(field: FieldInfo) -> Any:
    """Returns what the annotation of a list says of it."""
    return msgspec.inspect.type_info(field.type)


def _is_list(field: FieldInfo) -> bool:
    return get_origin(bare(field.type)) is tuple


def _convert(kind: Any, value: object, key: Key) -> Any:
    """Converts the value to ``kind``; UNSET where it is not one, which is noted."""
    plain = bare(kind)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return read_struct(plain, value, key)
    if get_origin(plain) is dict:
        return _dict(get_args(plain), _mapping(value, key), key)
    if get_origin(plain) is tuple:
        return _tuple(get_args(plain)[0], value, key)
    try:
        return value if plain is Any else typed(kind, value)
    except ConfigError as error:
        key.note(error)
        return UNSET


def _dict(kinds: tuple[Any, ...], given: Mapping[str, object], key: Key) -> dict[Any, Any]:
    items = {
        _convert(kinds[0], name, key / name): _convert(kinds[1], value, key / name) for name, value in given.items()
    }
    return {name: value for name, value in items.items() if UNSET not in (name, value)}


def _tuple(kind: Any, value: object, key: Key) -> Any:
    if not isinstance(value, list):
        found = "nothing; remove the key, or give it a text" if value is None else repr(value)
        key.note(f"expected a list of texts, found {found}")
        return UNSET
    items = tuple(_convert(kind, item, key) for item in value)
    return UNSET if UNSET in items else items


def _mapping(value: object, key: Key) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    if value is not None:
        key.note(f"expected a mapping of keys to values, found {value!r}")
    return {}
