"""ENUM and SET: names to the numbers that most wires have."""

from __future__ import annotations

from collections.abc import Callable

from ticdc_lakehouse.errors import ConfigError
from ticdc_lakehouse.mysql_type import MysqlType


def number_of_names(kind: MysqlType) -> Callable[[str], str]:
    """What makes a value's names its index (ENUM; 0 for what is no name) or its bit mask (SET).

    Raises ConfigError if the type does not list its names.
    """
    places = {name: place for place, name in enumerate(kind.elements)}
    if not places:
        raise ConfigError(f"this protocol writes numbers of ENUM and SET, and {kind.text!r} does not list the names")
    if kind.name == "enum":
        return lambda name: str(places[name] + 1 if name in places else 0)
    return lambda names: str(sum(1 << places[name] for name in names.split(",") if names))
