"""A mapping of a YAML file, read key by key. Mistakes are noted, not raised, so that one run shows all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ticdc_codec.errors import ConfigError
from ticdc_lakehouse.config.document import document_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One mapping of a file; its readers give None, or nothing, for what is absent or was noted as a mistake."""

    file: Path
    values: Mapping[str, object]
    mistakes: list[str]
    """Shared by all sections of a file."""
    place: str = ""
    """The keys that lead here, such as ``kafka.``."""

    def note(self, key: str, mistake: str) -> None:
        """Note what is wrong with a key and what was expected."""
        self.mistakes.append(f"{self.file}: {self.place}{key}: {mistake}")

    def only(self, known: Iterable[str]) -> None:
        """Every other key is a mistake."""
        allowed = list(known)
        for key in self.values:
            if key not in allowed:
                self.note(key, f"unknown key; {suggestion(key, allowed)}")

    def require(self, *keys: str) -> None:
        """A key that is absent, or has no value, is a mistake."""
        for key in keys:
            if self.values.get(key) is None:
                self.note(key, "required key is missing")

    def section(self, key: str) -> Section:
        """The mapping under a key; empty where there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, Mapping):
            self.note(key, f"expected a mapping of keys to values, found {value!r}")
        values = {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}
        return Section(file=self.file, values=values, mistakes=self.mistakes, place=f"{self.place}{key}.")

    def text(self, key: str) -> str | None:
        """The text under a key."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.note(key, f"expected text, found {value!r}")
            return None
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts under a key."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
            self.note(key, f"expected a list of texts, found {value!r}")
            return ()
        return tuple(value)

    def count(self, key: str, default: int, *, most: int) -> int:
        """The positive whole number under a key."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            self.note(key, f"expected a positive whole number, found {value!r}")
            return default
        if value > most:
            self.note(key, f"expected at most {most}, found {value}")
            return default
        return value

    def word(self, key: str, words: Iterable[str]) -> str | None:
        """The text under a key, which must be one of these words."""
        value = self.text(key)
        if value is not None and value not in words:
            self.note(key, f"expected one of {', '.join(words)}, found {value!r}")
            return None
        return value


def suggestion(found: str, allowed: list[str]) -> str:
    """What was expected instead: the word that looks most like it, or all of them."""
    close = get_close_matches(found, allowed, n=1)
    return f"did you mean {close[0]}?" if close else f"expected one of {', '.join(sorted(allowed))}"


def read_section(file: Path, mistakes: list[str]) -> Section:
    """The whole file; keys that occur twice are noted. Raises ConfigError for a file that is not a YAML mapping."""
    document = document_of(file)
    if not isinstance(document.values, dict):
        raise ConfigError(f"{file}: expected a mapping of keys to values, found {document.values!r}")
    mistakes += [f"{file}: {repeated}" for repeated in document.repeated]
    return Section(file=file, values={str(key): value for key, value in document.values.items()}, mistakes=mistakes)


def stop_on(mistakes: list[str]) -> None:
    """Raise one ConfigError that lists all mistakes, one a line, if there is any."""
    if mistakes:
        raise ConfigError("\n".join(mistakes))
