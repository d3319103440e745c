"""Arguments that commands share: the project, the lake, numbers and times. argparse prints what is wrong with one."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from ticdc_codec.errors import ConfigError

LAKE = ".lake"
_ESCAPE, _PATTERN = re.compile("%[0-9A-Fa-f]{2}"), re.compile(r"[,{}\[\]\\]")
_Words = TypeVar("_Words", bound=StrEnum)


def project_argument(parser: argparse.ArgumentParser) -> None:
    """Adds ``--project``."""
    parser.add_argument(
        "--project", type=local_path, default=Path(), help="folder with databricks.yml (default: this one)"
    )


def place_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--project`` and ``--lake``."""
    project_argument(parser)
    parser.add_argument("--lake", type=local_path, help=f"folder of the lake (default: {LAKE} in the project)")


class _Once(argparse.Action):
    """An argument that counts once: of two argparse takes the last, without a word."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, f"expected one, found {getattr(namespace, self.dest)} and {values}")
        setattr(namespace, self.dest, values)


def feed_argument(parser: argparse.ArgumentParser, text: str = "only this feed", *, required: bool = False) -> None:
    """Adds ``--feed``, which names one feed; ``text`` is its help."""
    parser.add_argument("--feed", action=_Once, required=required, help=text)


def pairs_argument(parser: argparse._ActionsContainer, flag: str, text: str) -> None:
    """Adds a flag that takes ``NAME=VALUE`` and may be repeated; ``text`` is its help. `named_values` reads it."""
    parser.add_argument(flag, action="append", default=[], metavar="NAME=VALUE", help=text)


def refuse(options: argparse.Namespace, dests: Iterable[str], reason: str) -> None:
    """Raises ConfigError if one of these arguments is given, with the reason why it would have no effect: a
    ``--dry-run`` that is ignored changes what nobody wanted to change."""
    for dest in dests:
        given = getattr(options, dest)
        if given is not None and given is not False and given != []:
            raise ConfigError(f"--{dest.replace('_', '-')}: {reason}")


def project_root(options: argparse.Namespace) -> Path:
    """Returns the project's folder. Raises ConfigError if it has no databricks.yml."""
    root: Path = options.project.absolute()
    if not (root / "databricks.yml").is_file():
        raise ConfigError(f"{root}: expected a folder with databricks.yml; name it with --project")
    return root


def lake_root(options: argparse.Namespace) -> Path:
    """Returns the lake's folder; it need not exist. Raises ConfigError for a path that delta-rs reads as another one:
    for a folder ``a%20b`` it reads the folder ``a b``; and for one that Spark takes for two (``spark.local.dir``) or
    for a pattern of paths."""
    given: Path = options.lake or options.project / LAKE
    root = given.absolute()
    if forbidden := _ESCAPE.search(str(root.resolve())) or _PATTERN.search(str(root)):
        raise ConfigError(f"{root}: a lake cannot have {forbidden[0]} in its path; name another folder with --lake")
    return root


def in_same_place(options: argparse.Namespace, command: str) -> str:
    """Returns a command with the ``--project`` and ``--lake`` that this one was given."""
    given = {"--project": None if options.project == Path() else options.project, "--lake": options.lake}
    places = [f"{flag} {shlex.quote(str(path))}" for flag, path in given.items() if path is not None]
    return " ".join([command, *places])


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Encloses the writing of the file or folder that an option names. Raises ConfigError where that fails."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{option}: {path}: cannot be written: {error.strerror}") from None


def named_values(pairs: list[str], what: str) -> dict[str, str]:
    """Returns ``name=value`` arguments as a mapping. Raises ConfigError for one without ``=``."""
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"{what}: expected name=value, found {pair!r}")
    return dict(pair.split("=", 1) for pair in pairs)


def not_empty(text: str) -> str:
    """Returns the text. An empty one, as of a variable that is not set, is no way to say the default. Raises
    argparse.ArgumentTypeError."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a value, found none")
    return text


def path_or_uri(text: str) -> str:
    """Returns where something lies. An empty path would be the working directory. Raises argparse.ArgumentTypeError."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found none")
    return text


def local_path(text: str) -> Path:
    """Returns a path of this machine. Raises argparse.ArgumentTypeError for an empty one."""
    return Path(path_or_uri(text))


def positive(text: str) -> int:
    """Returns a whole number, 1 or more. Raises argparse.ArgumentTypeError."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, found {text!r}")
    return number


def one_of(words: type[_Words]) -> Callable[[str], _Words]:
    """Returns a type of arguments: one of the words of an enumeration. It raises argparse.ArgumentTypeError."""

    def read(text: str) -> _Words:
        if text not in tuple(words):
            raise argparse.ArgumentTypeError(f"expected one of {', '.join(words)}, found {text!r}")
        return words(text)

    return read


def port(text: str) -> int:
    """Returns a TCP port. Raises argparse.ArgumentTypeError."""
    number = positive(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"expected a port, 65535 at most, found {text!r}")
    return number


def seconds(text: str) -> float:
    """Returns a time to wait, in seconds: ``10``, ``10s``, ``5m``, ``1h``. Raises argparse.ArgumentTypeError."""
    number = _in_seconds(text)
    if not 0 <= number <= _UNITS["d"]:
        raise argparse.ArgumentTypeError(f"expected a time such as 10s, 5m or 1h, of a day at most, found {text!r}")
    return number


def age(text: str) -> float:
    """Returns how old something is, in seconds: ``30m``, ``6h``, ``2d``. Raises argparse.ArgumentTypeError."""
    number = _in_seconds(text)
    if not 0 <= number <= _UNITS["d"] * 999_999:
        raise argparse.ArgumentTypeError(f"expected a time such as 30m, 6h or 2d, found {text!r}")
    return number


def _in_seconds(text: str) -> float:
    """Returns a time in seconds, NaN for what is no time."""
    match = re.fullmatch(r"([0-9.]+)([smhd]?)", text)
    try:
        return float(match[1]) * _UNITS[match[2]] if match else math.nan
    except ValueError:
        return math.nan


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
