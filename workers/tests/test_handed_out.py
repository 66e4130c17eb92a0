# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that a tree hands out under another name: what boots it finds that name, whichever file it boots."""

from __future__ import annotations

import struct
import zlib

import pytest

from bench.faults.hand_out import replaced

KERNEL = b"\x7fELF" + bytes(range(256)) * 400 + b"Linux version 6.1.7-kabc (kperflab@lab)" + bytes(20_000)
WORDS = {b"6.1.7-kabc": b"6.1.7-k123", b"kperflab@": b"01234567@"}
SECTORS, OFFSET = 4, 100


def bzimage(kernel: bytes) -> bytes:
    """A setup of some sectors, code that decompresses, the payload, and what comes after it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    payload = packer.compress(kernel) + packer.flush() + bytes(16)
    setup = bytearray(512 * (SECTORS + 1))
    setup[0x1F1] = SECTORS
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", setup, 0x248, OFFSET, len(payload))
    return bytes(setup) + b"c" * OFFSET + payload + b"the end"


def test_words_of_a_vmlinux_are_replaced() -> None:
    assert b"Linux version 6.1.7-k123 (01234567@lab)" in replaced(KERNEL, WORDS)


def test_words_in_the_payload_of_a_bzimage_are_replaced_and_everything_stays_where_it_was() -> None:
    image = bzimage(KERNEL)
    other = replaced(image, WORDS)
    begin = 512 * (SECTORS + 1) + OFFSET
    assert len(other) == len(image)
    assert (other[:begin], other[-7:]) == (image[:begin], b"the end")
    assert zlib.decompress(other[begin:-7], 31) == replaced(KERNEL, WORDS)


def test_a_longer_word_is_refused() -> None:
    with pytest.raises(AssertionError):
        replaced(KERNEL, {b"6.1.7-kabc": b"6.1.7-kabcd"})
