"""Stand-ins for the parts of ``dbutils`` that notebooks here use. Anything else is an error that says what there is.

Source: https://docs.databricks.com/dev-tools/databricks-utils
"""

# ruff: noqa: N802, N803, ARG002 (names and parameters are those of Databricks)

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ticdc_codec.errors import ConfigError


class _DbUtilsPart:
    """One part of ``dbutils``; its public methods are what is supported."""

    _name = "dbutils"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        supported = ", ".join(member for member in dir(self) if not member.startswith("_"))
        raise ConfigError(f"{self._name}.{name}: not supported locally; {self._name} has {supported}")


class NotebookExit(BaseException):
    """``dbutils.notebook.exit``: ends the notebook. No ``Exception``, so that a notebook's own handlers let it pass."""

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.value = value


class Widgets(_DbUtilsPart):
    """``dbutils.widgets``: a parameter of the run goes before the widget's default."""

    _name = "dbutils.widgets"

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = dict(parameters)
        self._values: dict[str, str] = {}

    def text(self, name: str, defaultValue: str, label: str | None = None) -> None:
        """Declares a widget."""
        self._values.setdefault(name, self._parameters.get(name, defaultValue))

    def dropdown(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Declares a widget with one of ``choices``. Raises ConfigError for any other value."""
        self.text(name, defaultValue, label)
        if self._values[name] not in choices:
            raise ConfigError(
                f"dbutils.widgets: {name}: expected one of {', '.join(choices)}, found {self._values[name]!r}"
            )

    def get(self, name: str) -> str:
        """Returns the value of a widget, or of a parameter that no widget declares. Raises ConfigError for another
        name."""
        values = self.getAll()
        if name not in values:
            raise ConfigError(f"dbutils.widgets.get: no widget {name!r}; there are: {', '.join(values) or 'none'}")
        return values[name]

    def getAll(self) -> dict[str, str]:
        """Returns the values of all widgets and parameters by name."""
        return {**self._parameters, **self._values}


class Secrets(_DbUtilsPart):
    """``dbutils.secrets``, from environment variables ``LAKEHOUSE_SECRET_<SCOPE>_<KEY>``."""

    _name = "dbutils.secrets"

    def get(self, scope: str, key: str) -> str:
        """Returns the secret. Raises ConfigError that names the variable if it is not set, or empty."""
        variable = secret_variable(scope, key)
        if secret := os.environ.get(variable):
            return secret
        found = "is not set" if variable not in os.environ else "is empty; set it to the secret"
        raise ConfigError(f"secret {scope}/{key}: environment variable {variable} {found}")


def secret_variable(scope: str, key: str) -> str:
    """Returns the environment variable that holds a secret: capitals, and ``_`` for what is neither letter nor
    digit."""
    return re.sub(r"[^A-Z0-9]", "_", f"LAKEHOUSE_SECRET_{scope}_{key}".upper())


class NotebookCalls(_DbUtilsPart):
    """``dbutils.notebook``."""

    _name = "dbutils.notebook"

    def exit(self, value: Any = "") -> NoReturn:
        """Ends this notebook; ``value`` is what its caller gets."""
        raise NotebookExit(str(value))


class DbUtils(_DbUtilsPart):
    """``dbutils`` of one run of one notebook."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.widgets = Widgets(parameters)
        self.secrets = Secrets()
        self.notebook = NotebookCalls()
