"""The messages of a batch as one run of bytes, and how some of them are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.number import PAD, Bools, Int64s, UInt64s, words_of


class RefusedError(Exception):
    """MessageBatch (by number in the batch) that do not decode."""

    def __init__(self, errors: dict[int, DecodeError]) -> None:
        super().__init__(errors)
        self.errors = errors


class MessageBatch:
    """The messages of a batch without those already ``refused``, numbered from 0."""

    __slots__ = ("begins", "buffer", "data", "numbers", "octets", "sizes", "words")

    def __init__(self, values: Sequence[bytes | None], refused: Mapping[int, DecodeError]) -> None:
        self.numbers = [number for number in range(len(values)) if number not in refused]
        """Index of each in the batch."""
        self.data = [values[number] or b"" for number in self.numbers]
        self.sizes: Int64s = np.array([*map(len, self.data)], np.int64)
        self.begins: Int64s = np.cumsum(self.sizes) - self.sizes
        """Where each begins in ``octets``."""
        self.buffer = pa.py_buffer(b"".join([*self.data, bytes(PAD)]))
        self.octets: npt.NDArray[np.uint8] = np.frombuffer(self.buffer, np.uint8)
        self.words = words_of(self.buffer)
        """words[p]: the eight bytes from position p of octets on, as a little-endian number."""

    def __len__(self) -> int:
        return len(self.numbers)

    def refuse(
        self,
        bad: Bools,
        reason: str,
        message: Int64s,
        at: Int64s,
        wanted: str | Callable[[int], str],
        found: Int64s | UInt64s | None = None,
    ) -> None:
        """Raise RefusedError with the messages of the items that are ``bad``, if there are any.

        ``message``, ``at`` and ``found`` have one item for each of ``bad``: its message, the offset to report, what was
        found. ``wanted`` says what was expected, or makes the whole detail from an item's index.
        """
        if not bad.any():
            return
        errors: dict[int, DecodeError] = {}
        for item in np.flatnonzero(bad).tolist():
            number = self.numbers[message[item]]
            if number not in errors:
                what_was_found = "" if found is None else f", found {found[item]}"
                detail = f"expected {wanted}{what_was_found}" if isinstance(wanted, str) else wanted(item)
                errors[number] = DecodeError(reason, detail, offset=int(at[item]))
        raise RefusedError(errors)
