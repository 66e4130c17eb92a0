# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of a base file, and where in it a run of lines is found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

# With more places than this the search stops: nothing could tell them apart.
MAX_PLACES = 50


def squash(line: str) -> str:
    """Return the line without its blanks: the part of a line that archives do not change."""
    return "".join(line.split())


class BaseText:
    """A base file's lines, without line ends: exactly, and (made at first use) without blanks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)

    @cached_property
    def squashed(self) -> tuple[str, ...]:
        """Return the lines without their blanks."""
        return tuple(squash(line) for line in self.lines)

    @cached_property
    def _squashed_search(self) -> _Search:
        return _Search(self.squashed)

    @cached_property
    def _exact_search(self) -> _Search:
        return _Search(self.lines)

    def find(self, old: Sequence[str]) -> tuple[int, ...]:
        """Return where these lines (ignoring blanks) occur in sequence: numbers of the first line, from 0."""
        return self._squashed_search.find(old)

    def find_exactly(self, old: Sequence[str]) -> tuple[int, ...]:
        """Return where exactly these lines occur in sequence: numbers of the first line, from 0."""
        return self._exact_search.find(old)


class _Search:
    """A search for the places of a run of lines: at most MAX_PLACES, because a file of equal lines has too many."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n" + "".join(line + "\n" for line in lines)
        offsets = accumulate((len(line) + 1 for line in lines), initial=0)
        self.starts = {offset: number for number, offset in enumerate(offsets)}

    def find(self, wanted: Sequence[str]) -> tuple[int, ...]:
        needle = "\n" + "".join(line + "\n" for line in wanted)
        places: list[int] = []
        at = self.text.find(needle)
        while at >= 0 and len(places) < MAX_PLACES:
            places.append(self.starts[at])
            at = self.text.find(needle, at + 1)
        return tuple(places)
