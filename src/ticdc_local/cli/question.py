"""Asks a person at a terminal for what a flag did not say."""

from __future__ import annotations

import sys

from ticdc_codec.errors import ConfigError


def answer(flag: str, question: str, default: str | None = None) -> str:
    """What a person types, ``default`` for an empty line or where nobody sits at a terminal.

    Raises ConfigError that names the flag where there is neither.
    """
    asks = sys.stdin is not None and sys.stdin.isatty()
    while asks:
        print(f"{question}{'' if default is None else f' [{default}]'}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if line.strip() or default is not None:
            return line.strip() or str(default)
        asks = line != ""
    if default is None:
        raise ConfigError(f"{flag}: expected a value; nobody is at a terminal to be asked")
    return default
