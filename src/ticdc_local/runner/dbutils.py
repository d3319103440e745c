"""Stand-ins for the parts of ``dbutils`` that notebooks here use. Anything else is an error that says what there is.

Source: https://docs.databricks.com/dev-tools/databricks-utils
"""

# ruff: noqa: N802, N803, ARG002 (names and parameters are those of Databricks)

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ticdc_codec.errors import ConfigError
from ticdc_local.runner.file_system import FileSystem, Part


class NotebookExit(BaseException):
    """``dbutils.notebook.exit``: ends the notebook. No ``Exception``, so that a notebook's own handlers let it pass."""

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.value = value


class Widgets(Part):
    """``dbutils.widgets``: a parameter of the run goes before the widget's default."""

    _name = "dbutils.widgets"

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = dict(parameters)
        self._values: dict[str, str] = {}

    def text(self, name: str, defaultValue: str, label: str | None = None) -> None:
        """Declare a widget."""
        self._values.setdefault(name, self._parameters.get(name, defaultValue))

    def dropdown(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Declare a widget with one of ``choices``. Raises: ConfigError when its value is none of them."""
        self.text(name, defaultValue, label)
        self._check(name, [self._values[name]], choices)

    def combobox(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Declare a widget with suggestions."""
        self.text(name, defaultValue, label)

    def multiselect(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Declare a widget with some of ``choices``, joined by commas."""
        self.text(name, defaultValue, label)
        self._check(name, self._values[name].split(","), choices)

    def get(self, name: str) -> str:
        """The value of a widget, or of a parameter that no widget declares."""
        values = self.getAll()
        if name not in values:
            raise ConfigError(f"dbutils.widgets.get: no widget {name!r}; there are: {', '.join(values) or 'none'}")
        return values[name]

    def getAll(self) -> dict[str, str]:
        """All values by name."""
        return {**self._parameters, **self._values}

    def remove(self, name: str) -> None:
        """Forget a widget."""
        self._values.pop(name, None)

    def removeAll(self) -> None:
        """Forget all widgets."""
        self._values.clear()

    def _check(self, name: str, values: Sequence[str], choices: Sequence[str]) -> None:
        for value in values:
            if value not in choices:
                raise ConfigError(f"dbutils.widgets: {name}: expected one of {', '.join(choices)}, found {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretMetadata:
    """What ``dbutils.secrets.list`` gives."""

    key: str


class Secrets(Part):
    """``dbutils.secrets``, from environment variables ``LAKEHOUSE_SECRET_<SCOPE>_<KEY>``."""

    _name = "dbutils.secrets"

    def get(self, scope: str, key: str) -> str:
        """The secret. Raises: ConfigError naming the variable that is not set."""
        variable = secret_variable(scope, key)
        if variable not in os.environ:
            raise ConfigError(f"secret {scope}/{key}: environment variable {variable} is not set")
        return os.environ[variable]

    def list(self, scope: str) -> list[SecretMetadata]:
        """The scope's keys, in lower case (an environment variable does not keep case)."""
        prefix = secret_variable(scope, "")
        return [
            SecretMetadata(key=name[len(prefix) :].lower()) for name in sorted(os.environ) if name.startswith(prefix)
        ]


def secret_variable(scope: str, key: str) -> str:
    """The environment variable that holds a secret: capitals, and ``_`` for what is neither letter nor digit."""
    return re.sub(r"[^A-Z0-9]", "_", f"LAKEHOUSE_SECRET_{scope}_{key}".upper())


RunOther = Callable[[str, Mapping[str, str]], str | None]
"""Runs another notebook, by its path from this one, with parameters; gives what it exits with."""


class NotebookCalls(Part):
    """``dbutils.notebook``."""

    _name = "dbutils.notebook"

    def __init__(self, run_other: RunOther) -> None:
        self._run_other = run_other

    def exit(self, value: Any = "") -> NoReturn:
        """End this notebook; ``value`` is what its caller gets."""
        raise NotebookExit(str(value))

    def run(self, path: str, timeout_seconds: int = 0, arguments: Mapping[str, str] | None = None) -> str | None:
        """Run another notebook and give what it exits with. Raises: ConfigError for a timeout other than 0."""
        if timeout_seconds != 0:
            raise ConfigError(f"dbutils.notebook.run: {path}: a timeout is not supported locally; give 0")
        return self._run_other(path, arguments or {})


class DbUtils(Part):
    """``dbutils`` of one run of one notebook."""

    def __init__(
        self,
        *,
        parameters: Mapping[str, str],
        files_root: Path,
        run_other: RunOther,
    ) -> None:
        self.widgets = Widgets(parameters)
        self.secrets = Secrets()
        self.fs = FileSystem(files_root)
        self.notebook = NotebookCalls(run_other)
