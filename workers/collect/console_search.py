# SPDX-License-Identifier: GPL-2.0-or-later
"""Find many literals in a long text at once.

Thirty passes of bytes.find() cost 10 to 20 ns a byte. Instead each literal is represented by its rarest pair of bytes,
a table of 65,536 flags is looked up for every pair of the text, and literals are compared only where a pair fits.
Where that is often the case (a hostile console), the literals of that block are searched one by one.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 19
DENSE = BLOCK // 100


class Literals:
    """A fixed set of literals, in order, that can be found together in any text."""

    def __init__(self, pairs: Mapping[bytes, bytes]) -> None:
        """Take each literal with the two bytes of it that are rarest in a console."""
        self._offsets = {literal: literal.index(pair) for literal, pair in pairs.items()}
        self._by_pair: dict[bytes, list[tuple[int, bytes]]] = {}
        self._flags = np.zeros(1 << 16, dtype=np.uint8)
        for literal, pair in pairs.items():
            self._by_pair.setdefault(pair, []).append((self._offsets[literal], literal))
            self._flags[int.from_bytes(pair, "little")] = 1

    def places(self, text: bytes, wanted_from: Mapping[bytes, int]) -> Iterator[tuple[int, bytes]]:
        """Yield offset and literal of each occurrence, block by block.

        wanted_from: for each literal the offset from which places are of interest; the caller moves it on.
        """
        for low in range(0, len(text), BLOCK):
            # A literal belongs to the block in which its pair begins.
            pairs = self._pairs(text, low, min(low + BLOCK, len(text)))
            if len(pairs) > DENSE:
                yield from self._one_by_one(text, low, wanted_from)
                continue
            for at in pairs.tolist():
                for offset, literal in self._by_pair[text[at : at + 2]]:
                    place = at - offset
                    if place >= wanted_from[literal] and text.startswith(literal, place):
                        yield place, literal

    def _pairs(self, text: bytes, low: int, high: int) -> npt.NDArray[np.intp]:
        """Return the offsets in one block of all pairs that stand for a literal, in order."""
        high = min(high + 1, len(text))
        places = []
        for first in (low, low + 1):
            count = (high - first) // 2
            if count > 0:
                pairs = np.frombuffer(text, "<u2", count, first)
                places.append(np.flatnonzero(self._flags.take(pairs, mode="clip")) * 2 + first)
        return np.sort(np.concatenate(places)) if places else np.empty(0, dtype=np.intp)

    def _one_by_one(
        self, text: bytes, low: int, wanted_from: Mapping[bytes, int]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the same as places() for one block, literal by literal."""
        for literal, offset in self._offsets.items():
            end = low + BLOCK - offset + len(literal) - 1
            at = text.find(literal, max(0, low - offset, wanted_from[literal]), end)
            while at >= 0:
                yield at, literal
                at = text.find(literal, max(at + len(literal), wanted_from[literal]), end)


def newlines(text: bytes, begin: int, end: int) -> int:
    """Return how many line breaks are in a part of a text; four times as fast as bytes.count()."""
    return sum(
        int(np.count_nonzero(np.frombuffer(text, np.uint8, min(BLOCK, end - low), low) == ord("\n")))
        for low in range(begin, end, BLOCK)
    )
