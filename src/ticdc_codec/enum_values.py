"""ENUM and SET: names to the numbers that most protocols send."""

from __future__ import annotations

from collections.abc import Callable

from ticdc_codec.errors import ConfigError
from ticdc_codec.mysql_type import MysqlType


def number_of_names(kind: MysqlType) -> Callable[[str], str]:
    """What turns names into an index or a mask. Raises ConfigError if the type does not list them."""
    places = {name: place for place, name in enumerate(kind.elements)}
    if not places:
        raise ConfigError(f"ENUM and SET are written as numbers, and {kind.text!r} does not list the names")
    if kind.name == "enum":
        return lambda name: str(places[name] + 1 if name in places else 0)
    return lambda names: str(sum(1 << places[name] for name in names.split(",") if names))
