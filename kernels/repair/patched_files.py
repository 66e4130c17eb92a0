# SPDX-License-Identifier: GPL-2.0-or-later
"""The base's files with a series' earlier patches applied: the next patch is read against them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernels.diffs.unified import FileDiff, Hunk
from kernels.errors import PatchRejected, UnknownPath
from kernels.repair.base_text import BaseText

ReadBase = Callable[[str], bytes]
MAX_BASE_BYTES = 4 * 1024 * 1024


class Overlay:
    """Files by path, read from the base at first use. Nothing is written to disk."""

    def __init__(self, read_base: ReadBase) -> None:
        self._read_base = read_base
        self._files: dict[str, BaseText | None] = {}

    def read(self, path: str) -> BaseText:
        """Return the file as it is now. Raises UnknownPath; PatchRejected if it is too large or not text."""
        if path not in self._files:
            self._files[path] = _to_text(path, self._read_base(path))
        text = self._files[path]
        if text is None:
            raise UnknownPath(f"an earlier patch of the series removes {path}")
        return text

    def has(self, path: str) -> bool:
        """Return whether there is such a file now, and a repair could read it."""
        try:
            self.read(path)
        except (UnknownPath, PatchRejected):
            return False
        return True

    def write(self, diff: FileDiff, lines: Sequence[str]) -> None:
        """Record a file as a patch left it."""
        if diff.kind in ("renamed", "deleted"):
            self._files[diff.old_path] = None
        if diff.kind != "deleted":
            self._files[diff.new_path] = BaseText(lines)

    def apply(self, files: Sequence[FileDiff]) -> None:
        """Record the effect of a patch that needs no repair; files to which it does not apply stay as they are."""
        for diff in files:
            if diff.kind == "added":
                self.write(diff, [line[1:] for hunk in diff.hunks for line in hunk.lines if line[0] == "+"])
            elif self.has(diff.old_path):
                lines = apply_exactly(diff, self.read(diff.old_path))
                if lines is not None:
                    self.write(diff, lines)

    def copy(self) -> Overlay:
        """Return a second overlay that starts from this one's state."""
        other = Overlay(self._read_base)
        other._files = dict(self._files)
        return other


def apply_exactly(diff: FileDiff, base: BaseText) -> tuple[str, ...] | None:
    """Return the file with the diff applied; None if a hunk's old side is not there exactly, blanks included."""
    result: list[str] = []
    at = shift = 0
    for hunk in diff.hunks:
        old = [line[1:] for line in hunk.lines if line[0] in " -"]
        place = _nearest(base, hunk, old, shift)
        if place is None or place < at:
            return None
        shift = place - (hunk.old_start - 1)
        result += base.lines[at:place]
        result += [line[1:] for line in hunk.lines if line[0] in " +"]
        at = place + len(old)
    return (*result, *base.lines[at:])


def _nearest(base: BaseText, hunk: Hunk, old: Sequence[str], shift: int) -> int | None:
    if not old:
        return min(hunk.old_start, len(base.lines))
    expected = hunk.old_start - 1 + shift
    if expected >= 0 and base.lines[expected : expected + len(old)] == tuple(old):
        return expected
    places = base.find_exactly(old)
    return min(places, key=lambda place: abs(place - expected)) if places else None


def _to_text(path: str, data: bytes) -> BaseText:
    if len(data) > MAX_BASE_BYTES or b"\0" in data:
        raise PatchRejected("the tree has a file here that is not text; leave it out", file=path)
    text = data.decode("utf-8", "surrogateescape")
    return BaseText(text.removesuffix("\n").split("\n") if text else [])
