"""A row's images, read by a Struct type of its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ticdc_codec.debezium.form import Form
from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import is_odd

Image = Any
"""A row's values, by column: a Struct with fields c0, c1 …, or for odd names a dict. None or ``null`` is NULL."""


class Row(msgspec.Struct, gc=False):
    """The members of a row's payload that are its images; a table's own type narrows them to its columns."""

    before: Image | UnsetType | None = UNSET
    after: Image | UnsetType | None = UNSET


Read = Callable[[bytes], Row]


def reader(forms: Mapping[str, Form]) -> Read:
    """Reads the images, as a JSON object of nothing else, of rows with these columns, and no others. Raises
    DecodeError, or one of ``Unreadable``."""
    if not is_odd(forms):
        return _reader(_image_type(forms))
    read, read_image = _reader(dict[str, Raw]), _odd_reader(forms)

    def read_odd(text: bytes) -> Row:
        row = read(text)
        row.before, row.after = (read_image(x) if isinstance(x, dict) else x for x in (row.before, row.after))
        return row

    return read_odd


def image_reader(forms: Mapping[str, Form]) -> tuple[Callable[[bytes], Image], Callable[..., Image]]:
    """What reads one image with these columns, and what makes one of their values. The former raises as ``reader``."""
    if not is_odd(forms):
        image = _image_type(forms)
        return msgspec.json.Decoder(image).decode, image
    read = _odd_reader(forms)
    return lambda text: read(_ODD.decode(text)), lambda *values: dict(zip(forms, values, strict=True))


def _image_type(forms: Mapping[str, Form]) -> type:
    rename = {f"c{at}": name for at, name in enumerate(forms)}
    fields: list[Any] = [(f"c{at}", _nullable(form.read)) for at, form in enumerate(forms.values())]
    return msgspec.defstruct("Image", fields, rename=rename, forbid_unknown_fields=True, gc=False)


def _nullable(read: Any) -> Any:
    return Raw if read is Raw else read | None


def _reader(image: Any) -> Read:
    images = image | None | UnsetType
    fields: list[Any] = [("before", images, UNSET), ("after", images, UNSET)]
    row = msgspec.defstruct("TableRow", fields, bases=(Row,), forbid_unknown_fields=True, gc=False)
    read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
    return read


def _odd_reader(forms: Mapping[str, Form]) -> Callable[[dict[str, Raw]], Image]:
    types = {name: msgspec.json.Decoder(_nullable(form.read)) for name, form in forms.items()}

    def read(image: dict[str, Raw]) -> Image:
        if image.keys() != types.keys():
            raise DecodeError("wrong_columns", f"expected columns {[*types]}, found {[*image]}")
        return {name: decoder.decode(image[name]) for name, decoder in types.items()}

    return read


def members_of(image: bytes) -> dict[str, Raw]:
    """An image's values by column, in order. Raises one of ``Unreadable``."""
    return _ODD.decode(image)


_ODD = msgspec.json.Decoder(dict[str, Raw])
