"""One value of a file or of an option as its type. A mistake says what is expected and what was found."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Protocol, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta, inspect

from ticdc_codec.errors import ConfigError

Text = Annotated[str, Meta(pattern=r"\S")]
"""A text that is not blank."""
Zone = Annotated[ZoneInfo, Meta(extra={"expected": "an IANA time zone such as Asia/Shanghai"})]


class Parsed(Protocol):
    """A type for values that msgspec's own constraints cannot describe."""

    expected: ClassVar[str]
    """What a value is, for messages and documentation."""
    json_schema: ClassVar[dict[str, Any]]
    """What JSON Schema can say of a value."""

    @classmethod
    def parse(cls, value: object) -> object:
        """The value. Raises ValueError, which may say more exactly what is expected."""


def typed(kind: Any, value: object, *, strict: bool = True) -> Any:
    """The value as ``kind``: a type of msgspec, a time zone, or a type that is ``Parsed``.

    ``strict=False`` also takes numbers and booleans that are written as text. None is no value but the word ``null`` of
    an enum that has it, since YAML reads it so. Raises ConfigError.
    """
    if value is None and is_word(kind, "null"):
        value = "null"
    try:
        if value is not None:
            return msgspec.convert(value, kind, strict=strict, dec_hook=_parse)
        reason = ""
    except msgspec.ValidationError as error:
        reason = str(error.__cause__ or "")
    raise ConfigError(f"expected {reason or expected(kind)}, found {value!r}")


def is_word(kind: Any, word: str) -> bool:
    """Whether ``kind`` is an enum that has this word."""
    info, _ = _described(kind)
    return isinstance(info, inspect.EnumType) and word in [member.value for member in info.cls]


def expected(kind: Any) -> str:
    """What a value of this type is, in words."""
    info, said = _described(kind)
    if said:
        return said
    match info:
        case inspect.CustomType():
            return str(bare(kind).expected)
        case inspect.EnumType(cls=members):
            return f"one of {', '.join(member.value for member in members)}"
        case inspect.LiteralType(values=words):
            return f"one of {', '.join(map(str, words))}"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least, le=None):
            return "a positive whole number" if least else "0 or a positive whole number"
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case _:
            return "text"


def bare(kind: Any) -> Any:
    """The type without annotations and without ``| None``."""
    if get_origin(kind) is Annotated:
        return bare(get_args(kind)[0])
    alternatives = [each for each in get_args(kind) if each is not type(None)]
    return bare(alternatives[0]) if len(alternatives) < len(get_args(kind)) else kind


def _described(kind: Any) -> tuple[inspect.Type, str]:
    """What msgspec knows of a type, without metadata and ``| None``; and what its metadata says is expected."""
    info, said = inspect.type_info(kind), ""
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            said = said or (info.extra or {}).get("expected", "")
            info = info.type
        else:
            info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    return info, said


def _parse(kind: Any, value: object) -> object:
    if isinstance(value, kind):
        return value
    if kind is not ZoneInfo:
        return kind.parse(value)
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError from None
