"""The messages of a batch as one run of bytes, and how some of them are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ticdc_codec.errors import DecodeError
from ticdc_codec.number import PAD, Bits, Numbers, Places, words_of


class RefusedError(Exception):
    """Messages (by number in the batch) that do not decode."""

    def __init__(self, errors: dict[int, DecodeError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Messages:
    """The messages of a batch but for those already ``refused``, counted anew from 0."""

    __slots__ = ("begins", "buffer", "data", "numbers", "octets", "sizes", "words")

    def __init__(self, values: Sequence[bytes | None], refused: Mapping[int, DecodeError]) -> None:
        self.numbers = [number for number in range(len(values)) if number not in refused]
        """Number of each in the batch."""
        self.data = [values[number] or b"" for number in self.numbers]
        self.sizes: Places = np.array([*map(len, self.data)], np.int64)
        self.begins: Places = np.cumsum(self.sizes) - self.sizes
        """Where each begins in ``octets``."""
        self.buffer = pa.py_buffer(b"".join([*self.data, bytes(PAD)]))
        self.octets: npt.NDArray[np.uint8] = np.frombuffer(self.buffer, np.uint8)
        self.words = words_of(self.buffer)
        """The eight bytes from each place on."""

    def __len__(self) -> int:
        return len(self.numbers)

    def refuse(
        self,
        bad: Bits,
        reason: str,
        message: Places,
        at: Places,
        wanted: str | Callable[[int], str],
        found: Places | Numbers | None = None,
    ) -> None:
        """Refuse the messages of the items that are ``bad``: raises RefusedError if there are any.

        Each argument is of all items: the message an item belongs to, the byte to name, what was found. A callable
        makes the whole detail from an item's number.
        """
        if not bad.any():
            return
        errors: dict[int, DecodeError] = {}
        for item in np.flatnonzero(bad).tolist():
            number = self.numbers[message[item]]
            if number not in errors:
                told = "" if found is None else f", found {found[item]}"
                detail = f"expected {wanted}{told}" if isinstance(wanted, str) else wanted(item)
                errors[number] = DecodeError(reason, detail, offset=int(at[item]))
        raise RefusedError(errors)
