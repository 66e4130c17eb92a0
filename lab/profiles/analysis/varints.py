# SPDX-License-Identifier: GPL-2.0-or-later
"""Unsigned LEB128, whole columns at once: 7 bits a byte, the lowest first, the top bit on all bytes but the last."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
MOST_BYTES = 8


def encode(numbers: Integers) -> bytes:
    """The bytes of numbers from 0 to 2^56 - 1."""
    sizes = np.ones(len(numbers), np.int64)
    for byte in range(1, MOST_BYTES):
        sizes += numbers >= 1 << 7 * byte
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    for byte in range(int(sizes.max(initial=0))):
        has = np.flatnonzero(sizes > byte)
        more = (sizes[has] > byte + 1) * 0x80
        out[starts[has] + byte] = (numbers[has] >> 7 * byte) & 0x7F | more
    return out.tobytes()


def encode_one(number: int) -> bytes:
    """Return the bytes of one number."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode(raw: bytes, count: int) -> Integers:
    """Return `count` numbers (at least 1), which must fill the bytes. Raises ValueError."""
    data = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(data < 0x80)
    sizes = np.diff(ends, prepend=-1)
    if len(ends) != count or ends[-1] != len(data) - 1 or sizes.max() > MOST_BYTES:
        raise ValueError(f"{len(raw)} bytes of columns hold {len(ends)} numbers, not {count}")
    starts = ends - sizes + 1
    numbers = np.zeros(count, np.int64)
    for byte in range(int(sizes.max())):
        has = np.flatnonzero(sizes > byte)
        numbers[has] |= (data[starts[has] + byte] & 0x7F).astype(np.int64) << 7 * byte
    return numbers


def decode_one(body: bytes, at: int) -> tuple[int, int]:
    """One number and where the next one begins. Raises ValueError."""
    value = 0
    for byte in range(MOST_BYTES):
        if at + byte >= len(body):
            break
        value |= (body[at + byte] & 0x7F) << 7 * byte
        if body[at + byte] < 0x80:
            return value, at + byte + 1
    raise ValueError(f"no number at byte {at}")
