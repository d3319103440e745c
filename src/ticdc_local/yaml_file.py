"""The bundle's YAML files as plain values. What is odd in one is an error that names it, with the line."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.document import document_of
from ticdc_local.reference import scalar_text


def read_yaml(file: Path) -> dict[str, Any]:
    """A YAML file's mapping. As for the platform, keys and dates are texts. Raises: ConfigError for what is not one,
    and for a key that stands twice."""
    document = document_of(file)
    if document.repeated:
        raise ConfigError(f"{file}: {'; '.join(document.repeated)}")
    if not isinstance(document.values, dict):
        raise ConfigError(f"{file}: expected a mapping, found {type(document.values).__name__}")
    return {_key(name): _plain(value, f"{file}: {_key(name)}", ()) for name, value in document.values.items()}


def _plain(value: Any, where: str, around: tuple[Any, ...]) -> Any:
    """The value with texts as keys; ``around`` are the mappings and lists that it lies in."""
    if any(value is each for each in around):
        raise ConfigError(f"{where}: an alias stands within what it names")
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
    return scalar_text(name) or str(name)
