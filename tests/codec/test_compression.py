"""What a value holds after decompression, and what broken ones leave behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ticdc_codec.errors import DecodeError
from ticdc_codec.message import compress, decompress
from ticdc_codec.options import Compression

STATM = Path("/proc/self/statm")


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 1_000_000])
def test_compressed_bytes_decompress_to_the_same(compression: Compression, size: int) -> None:
    content = os.urandom(size)
    assert decompress(compress(content, compression), compression) == content


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.SNAPPY])
def test_more_than_the_limit_is_refused(compression: Compression) -> None:
    bomb = compress(bytes(10_000_000), compression)
    assert len(bomb) < 1_000_000
    with pytest.raises(DecodeError, match="at most 1000000 bytes"):
        decompress(bomb, compression, 1_000_000)


@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells a process's size this way")
def test_broken_frames_leave_no_memory_behind() -> None:
    """A worker that got many of them could no longer fork, although it used little."""
    broken = compress(bytes(1000), Compression.LZ4)[:-8]
    before = pages()
    for _ in range(40):
        with pytest.raises(DecodeError):
            decompress(b"no frame" + broken, Compression.LZ4)
    assert (pages() - before) * os.sysconf("SC_PAGE_SIZE") < 1 << 30


def pages() -> int:
    return int(STATM.read_text(encoding="ascii").split()[0])
