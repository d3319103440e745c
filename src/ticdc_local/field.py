"""A mapping of the YAML, read by type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from ticdc_codec.errors import ConfigError
from ticdc_local.reference import scalar_text

_T = TypeVar("_T")
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A mapping of the YAML, read by type. Every method raises ConfigError naming the key."""

    values: Mapping[str, Any]
    where: str

    def only(self, known: set[str]) -> None:
        """Nothing; raises for a key that is not ``known``."""
        for key in self.values:
            if key not in known:
                raise ConfigError(f"{self.where}.{key}: the local runner does not support this")

    def text(self, key: str, default: str | None = None) -> str:
        """A text; a number or boolean becomes one, as on the platform."""
        value = self.values.get(key, default)
        text = scalar_text(value)
        if text is None:
            raise ConfigError(f"{self.where}.{key}: expected a text, found {value!r}")
        return text

    def integer(self, key: str, default: int = 0) -> int:
        """A whole number, 0 or more."""
        value = self._typed(key, int, "a whole number", default)
        if isinstance(value, bool) or value < 0:
            raise ConfigError(f"{self.where}.{key}: expected a whole number, 0 or more, found {value!r}")
        return value

    def boolean(self, key: str) -> bool:
        """True or false, false where the key is absent."""
        return self._typed(key, bool, "true or false", default=False)

    def word(self, key: str, words: type[_Word], default: _Word | None = None) -> _Word:
        """One of ``words``."""
        text = self.text(key, default)
        if text not in list(words):
            raise ConfigError(f"{self.where}.{key}: expected one of {', '.join(words)}, found {text!r}")
        return words(text)

    def inner(self, key: str) -> Fields:
        """The mapping under ``key``, empty where it is absent."""
        values = self._typed(key, dict, "a mapping", {})
        return Fields(values=values, where=f"{self.where}.{key}")

    def items(self, key: str) -> Iterator[Fields]:
        """The mappings of the list under ``key``."""
        for i, item in enumerate(self._typed(key, list, "a list", [])):
            if not isinstance(item, dict):
                raise ConfigError(f"{self.where}.{key}[{i}]: expected a mapping, found {item!r}")
            name = item.get("task_key", item.get("name", i))
            yield Fields(values=item, where=f"{self.where}.{key}[{name}]")

    def _typed(self, key: str, kind: type[_T], wanted: str, default: _T | None) -> _T:
        value = self.values.get(key, default)
        if not isinstance(value, kind):
            raise ConfigError(f"{self.where}.{key}: expected {wanted}, found {value!r}")
        return value
