"""Images of rows: the Struct types that read them, compiled from a table's columns, and the JSON that is made of them.

An image is an object of a Struct type with the fields c0, c1 …, one for each column in order. None is NULL, UNSET is a
column that the message leaves out (what an update has not changed).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from ticdc_codec.errors import DecodeError
from ticdc_codec.json_text import names_of, quotes_of

Image = Any
"""A row's values (module docstring)."""
Getter = Callable[[Image], Any]
"""Returns the value of one column of an image."""
Conversion = tuple[Callable[[list[Any]], bool], Callable[[Any], str]]
"""Two functions: whether all values of the wire are the texts of ``event`` already, and the conversion, which raises
DecodeError."""

_UNNAMEABLE = re.compile(r'["\\\x00-\x1f]')
_ENCODE = msgspec.json.Encoder().encode
_ENCODE_LINES = msgspec.json.Encoder().encode_lines
_MEMBERS = msgspec.json.Decoder(dict[str, Raw]).decode
_IMAGE = msgspec.json.Decoder(dict[str, Raw] | tuple[dict[str, Raw]] | None).decode


class ImageTypes:
    """What reads and writes the images of one list of columns.

    msgspec has no Struct field whose name has a quote, a backslash or a control character. Images with such a column
    are read with their members renamed to c0, c1 …, and written by way of dicts.
    """

    __slots__ = ("fields", "has_odd_names", "make", "names")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.fields = [f"c{at}" for at in range(len(names))]
        self.has_odd_names = _is_odd(names)
        """True if a column has a name that no Struct field can have."""
        self.make: Callable[..., Any] = (
            self._dict_of if self.has_odd_names else self.type_of([(Any, UNSET)] * len(names))
        )
        """Makes what JSON is written of from the values of an image's columns."""

    def type_of(self, kinds: list[tuple[Any, ...]]) -> Any:
        """Returns the Struct type of images that have for each column a type, and a default value if it may be left
        out."""
        return _object_type(self.fields if self.has_odd_names else self.names, kinds)

    def reader(self, row: Any, members: Collection[str]) -> Callable[[bytes], Any]:
        """Returns a reader of rows of this Struct type, in which ``members`` are images, or are null, or have one image
        in a list.

        Raises one of ``Unreadable``, and DecodeError ``wrong_columns``.
        """
        read: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode
        if not self.has_odd_names:
            return read
        return lambda text: read(_renamed(text, members, dict(zip(self.names, self.fields, strict=True))))

    def image_reader(self, image: Any) -> Callable[[bytes], Image]:
        """Returns a reader of one image of this Struct type. It raises as ``reader`` does."""
        read: Callable[[bytes], Any] = msgspec.json.Decoder(image).decode
        if not self.has_odd_names:
            return read
        return lambda text: read(
            _ENCODE(_image_renamed(_MEMBERS(text), dict(zip(self.names, self.fields, strict=True))))
        )

    def getters(self) -> list[Getter]:
        """Returns a function for each column that returns its value."""
        return [attrgetter(field) for field in self.fields]

    def lines(self, images: Sequence[Image]) -> bytes:
        """Returns the images as lines of JSON."""
        if self.has_odd_names:
            return _ENCODE_LINES([self._dict_of(*[getattr(image, field) for field in self.fields]) for image in images])
        return _ENCODE_LINES(images)

    def lines_of_columns(self, columns: Sequence[Sequence[Any]], count: int) -> bytes:
        """Returns the images of ``count`` rows, passed as columns of values, as lines of JSON."""
        return _ENCODE_LINES([*map(self.make, *columns)] if columns else [{}] * count)

    def _dict_of(self, *values: Any) -> dict[str, Any]:
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not UNSET}


def _is_odd(names: Iterable[str]) -> bool:
    """True if msgspec takes a name for no Struct: it has a quote, a backslash or a control character."""
    return any(_UNNAMEABLE.search(name) for name in names)


def _object_type(names: Iterable[str], fields: list[tuple[Any, ...]]) -> type:
    """Returns a Struct type of objects with these names: fields c0, c1 … of these types, with defaults where they have
    any."""
    rename = {f"c{at}": name for at, name in enumerate(names)}
    named: list[Any] = [(name, *field) for name, field in zip(rename, fields, strict=True)]
    return msgspec.defstruct("Object", named, rename=rename, forbid_unknown_fields=True, gc=False)


def _renamed(text: bytes, members: Collection[str], names: Mapping[str, str]) -> bytes:
    row: dict[str, Any] = _MEMBERS(text)
    for member in members & row.keys():
        match _IMAGE(row[member]):
            case None:
                pass
            case (image,):
                row[member] = (_image_renamed(image, names),)
            case image:
                row[member] = _image_renamed(image, names)
    return _ENCODE(row)


def _image_renamed(image: dict[str, Raw], names: Mapping[str, str]) -> dict[str, Raw]:
    if unknown := image.keys() - names.keys():
        raise DecodeError("wrong_columns", f"expected columns {[*names]}, found {sorted(unknown)}")
    return {names[name]: value for name, value in image.items()}


class TextImages:
    """Images whose values are texts already, except those of some columns, which are converted in place."""

    __slots__ = ("_conversions", "_key", "_types")

    def __init__(self, types: ImageTypes, conversions: Iterable[Conversion | None], key: Iterable[int]) -> None:
        """Takes the conversion of each column, and the positions of the handle key's columns, in the key's order."""
        getters = types.getters()
        self._types = types
        self._conversions = [
            (field, get, *conversion)
            for field, get, conversion in zip(types.fields, getters, conversions, strict=True)
            if conversion is not None
        ]
        self._key = [getters[at] for at in key]

    def lines(self, images: list[Image]) -> tuple[bytes, bytes]:
        """Returns the images as lines of JSON: with the wire's values, and with the texts of ``event``, to which they
        are converted in place. Raises DecodeError."""
        wire = self._types.lines(images)
        # Each conversion looks at a whole column: mostly its texts are those of ``event`` already, and nothing is done.
        is_changed = False
        for field, get, are_texts, text_of in self._conversions:
            # values[i]: the column's value in image i
            values = [*map(get, images)]
            if not are_texts([value for value in values if value is not None and value is not UNSET]):
                is_changed = True
                for image, value in zip(images, values, strict=True):
                    if value is not None and value is not UNSET:
                        setattr(image, field, text_of(value))
        return wire, self._types.lines(images) if is_changed else wire

    def key_columns(self, images: list[Image]) -> list[Iterable[str | None]]:
        """Returns the texts of each column of the handle key, in its order; no column if the table has no key."""
        return [map(get, images) for get in self._key]


def without_null(columns: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Returns the texts of each column of handle keys. Raises DecodeError for NULL, which no key has: ticdc 8.5.4 and
    8.5.5 write some values so (docs/defects.md), and the row of another key would be changed."""
    listed = [[*column] for column in columns]
    if any(None in column for column in listed):
        raise DecodeError(
            "bad_value", "expected a value in each column of the handle key, found null (docs/defects.md)"
        )
    return listed


def handle_key_lines(columns: Iterable[Iterable[Any]]) -> bytes:
    """Writes handle keys, passed as the texts of each key column, as lines of JSON arrays; no line if there is no
    column."""
    return _ENCODE_LINES([*zip(*columns, strict=True)])


def old_handle_keys(old: Iterable[Iterable[Any]], new: Iterable[Iterable[Any]]) -> list[bytes | None] | None:
    """Returns the keys before updates, None for one that is the same after it, or for all of them.

    Both are the texts of each key column. One that is UNSET before has not changed.
    """
    # before[r], after[r]: the texts of row r's key columns.
    before, after = [*zip(*old, strict=True)], [*zip(*new, strict=True)]
    return None if before == after else [*map(_old_handle_key, before, after)]


def _old_handle_key(before: tuple[Any, ...], after: tuple[Any, ...]) -> bytes | None:
    key = tuple(new if old is UNSET else old for old, new in zip(before, after, strict=True))
    return None if key == after else _ENCODE(key)


def check_names(texts: Sequence[bytes], shortest: int, quotes: Callable[[], Iterable[int]]) -> None:
    """Raises DecodeError ``duplicate_name`` if an object in a text has a name twice.

    ``shortest`` is the length of all texts together in the shortest JSON of what was read of them, and ``quotes``
    returns the quotes of each. What was read has each name once: a second one makes a text longer, by two quotes at
    least.
    """
    if sum(map(len, texts)) == shortest:
        return
    for text, count in zip(texts, quotes(), strict=True):
        if quotes_of(text) != count:
            names_of(text)


class ColumnOrder:
    """The order of a table's columns in rows of which nothing else shows it: Structs take members in any order."""

    __slots__ = ("_labels",)

    def __init__(self, names: Iterable[str], ignored: Collection[str] = (), suffix: bytes = b"") -> None:
        """Takes the names, each followed by ``suffix``, except those ``ignored``, which a row also has before its
        images."""
        self._labels = [_ENCODE(name) + b":" + suffix for name in names if name not in ignored]

    def matches(self, texts: Sequence[bytes], commits: Sequence[int]) -> bool:
        """True if the first and the last of these rows, by arrival and by commit_ts, have the columns in this order: a
        DDL may change it between them, and rows from before it may come again. A name that is written with needless
        escapes is passed over."""
        ends = {0, len(texts) - 1, commits.index(min(commits)), commits.index(max(commits))}
        return all(self._matches_one(texts[at]) for at in ends)

    def _matches_one(self, text: bytes) -> bool:
        # A label has quotes, which a string would have escaped: its first place is in the row's first image.
        positions = [at for label in self._labels if (at := text.find(label)) >= 0]
        return positions == sorted(positions)


KEY_COLUMN_HINT = "(do the sink's column-selectors leave out a key column?)"
"""The error's detail: ticdc names the whole key, whatever columns a row has."""
