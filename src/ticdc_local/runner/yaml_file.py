"""The bundle's YAML files, read by type. What is wrong in one is an error that names file and key."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.document import document_of


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping of the YAML of which every key is known; a key typed ``Any`` matters only on the platform."""


_T = TypeVar("_T")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_PLACE = re.compile(r"(.*) - at (?:`key` in )?`\$\.?(.*)`", re.DOTALL)


def read_as(kind: type[_T], values: object, where: str) -> _T:
    """Reads ``values`` as a ``kind`` (a `Definition`, mostly). Raises: ConfigError naming ``where`` and the key."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        message, place = str(error), ""
        if found := _PLACE.fullmatch(message):
            message, place = found.groups()
        if unknown := _UNKNOWN.fullmatch(message):
            message, place = "the local runner does not support this", ".".join(filter(None, (place, unknown[1])))
        raise ConfigError(f"{'.'.join(filter(None, (where, place)))}: {message}") from None


def read_yaml(file: Path) -> dict[str, Any]:
    """Reads a YAML file's mapping; a date is text, as for the platform. Raises: ConfigError for what is not one, and
    for a repeated key."""
    document = document_of(file)
    if document.repeated:
        raise ConfigError(f"{file}: {'; '.join(': '.join(repeated) for repeated in document.repeated)}")
    if not isinstance(document.values, dict):
        raise ConfigError(f"{file}: expected a mapping, found {type(document.values).__name__}")
    return {_key(name): _plain(value, f"{file}: {_key(name)}", ()) for name, value in document.values.items()}


def _plain(value: Any, where: str, around: tuple[Any, ...]) -> Any:
    """Returns the value with texts as keys; ``around`` are the mappings and lists that contain it."""
    if any(value is each for each in around):
        raise ConfigError(f"{where}: an alias is inside what it names")
    match value:
        case dict():
            return {_key(name): _plain(item, f"{where}.{_key(name)}", (*around, value)) for name, item in value.items()}
        case list():
            return [_plain(item, f"{where}[{i}]", (*around, value)) for i, item in enumerate(value)]
        case date():
            return value.isoformat()
        case _:
            return value


def _key(name: object) -> str:
    return str(name).lower() if isinstance(name, bool) else str(name)
