# SPDX-License-Identifier: GPL-2.0-or-later
"""Align a damaged hunk with its base: find which of its pieces are lines, which are halves of lines, and what was lost.

All readings at all places are searched at once: after each piece, the search keeps for every reachable state the
least damage that leads there. Damage is a wrapped line, a blank line that was lost or doubled, a header's tail, a
context line that looks like a changed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernels.diffs.unified import is_no_newline, is_signature
from kernels.errors import Unplaceable
from kernels.repair.base_text import BaseText, squash
from kernels.repair.damage import GIANT_LINE, DamagedHunk

# Steps for a whole submission: some 10 s. Real archived mails take at most 50,000, and one for each line of their files.
MAX_STEPS = 1_000_000
# Pieces of a hunk that are tried to find where it may begin.
MAX_ANCHORS = 8
# Pieces that the name of a function in a hunk's header may have been wrapped into.
HEADER_TAILS = 3
# Damage that any hunk may have, and one more for each LINES_PER_COST lines.
MAX_COST = 12
LINES_PER_COST = 8


Lines = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a hunk: (side, text) of each line, side being one of " -+" or "\\". mended: the damage repaired."""

    lines: Lines
    places: tuple[int, ...]
    mended: int = 0

    @property
    def old_count(self) -> int:
        """Return the number of lines of the old side."""
        return sum(side in " -" for side, _ in self.lines)


class Effort:
    """The budget of steps for one submission, since mails come from strangers: alignment is a search, and each diff of a file reads all of it."""

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Spend steps. Raises Unplaceable when none are left."""
        self.left -= steps
        if self.left < 0:
            raise Unplaceable("this mail takes too much work to repair; send what git format-patch wrote")


def may_end(hunk: DamagedHunk, used: int, lines: Sequence[tuple[str, str]], *, last: bool) -> bool:
    """Return whether a hunk can end after this many pieces: only blank lines or unrelated text follow."""
    rest = [piece for piece in hunk.pieces[used:] if not is_signature(piece)]
    if not last:
        return not any(piece.strip() for piece in rest)
    if _goes_on(hunk.pieces[used:]):
        return False
    if not lines or lines[-1][0] != "+":
        return True
    # Behind an added line, text that goes on at once may be its other half, or a list's footer.
    read = [piece for piece in hunk.pieces[:used] if piece.strip()]
    behind = [piece for piece in hunk.pieces[used : used + 1] if piece.strip() and not is_signature(piece)]
    return read[-1].startswith("+") and not behind


def _goes_on(following: Sequence[str]) -> bool:
    """Return whether changed lines follow at once, which the header does not count; a rule of dashes is none."""
    for piece in following:
        if not piece.strip() or is_signature(piece):
            return False
        if piece[0] in "+-" and piece.strip("+-_= "):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Path:
    """The lines read so far, last first. Two paths are the same reading if their digests are equal."""

    before: _Path | None
    side: str
    text: str
    digest: int

    def lines(self) -> Lines:
        lines: list[tuple[str, str]] = []
        path: _Path | None = self
        while path is not None:
            lines.append((path.side, path.text))
            path = path.before
        return tuple(reversed(lines))


def _step(before: _Path | None, side: str, text: str = "") -> _Path:
    return _Path(before, side, text, hash((before.digest if before else 0, side, text)))


# Place, old lines matched, removed lines, added lines, the rest of a base line that was wrapped.
_State = tuple[int, int, int, int, str]
# The least damage that leads to a state, and the readings with that damage (two are enough to see that it is ambiguous).
_States = dict[_State, tuple[int, tuple[_Path | None, ...]]]


class Alignment:
    """All readings of a hunk's pieces against the base, kept as states after each piece."""

    def __init__(self, hunk: DamagedHunk, base: BaseText, effort: Effort, *, last: bool) -> None:
        self.hunk, self.base, self.effort, self.last = hunk, base, effort, last
        self.mark = squash(hunk.joiner)
        self.most = MAX_COST + (hunk.old_count + hunk.new_count) // LINES_PER_COST
        # readings by their effect on the file, which does not depend on the context around the changes
        self.found: dict[tuple[int, Lines], Reading] = {}

    def best(self) -> Reading | None:
        """Return the reading with the least damage; None if there is none. Raises Unplaceable if it is not the only one."""
        if not self.hunk.old_count or max(map(len, self.hunk.pieces), default=0) > GIANT_LINE:
            return None
        starts = self._starts()
        self.effort.spend(len(starts))
        states: _States = {(at, 0, 0, 0, ""): (0, (None,)) for at in starts}
        for number, piece in enumerate(self.hunk.pieces):
            self._restore_blanks(states)
            self._accept(states, number)
            states = self._read(states, piece, number)
            if not states:
                break
        self._restore_blanks(states)
        self._accept(states, len(self.hunk.pieces))
        return self._choose()

    def _starts(self) -> Sequence[int]:
        """Return where the old side may begin: around the base lines that match the rarest piece.

        Pieces that may be the tail of an added line or of the header, or text behind the hunk, are ignored, so that no
        reading is missed.
        """
        last = len(self.base.lines) - self.hunk.old_count
        # every line of the longer side takes a piece, except lost blank lines
        fewest = max(self.hunk.old_count, self.hunk.new_count) - self.most
        end = fewest if self.last else len(self.hunk.pieces)
        sure, after_added = [], False
        for number, piece in enumerate(self.hunk.pieces[: max(end, 0)]):
            after_added = piece.startswith("+") or (after_added and not piece.startswith("-"))
            if number >= HEADER_TAILS and not after_added and squash(piece) and not is_signature(piece):
                sure.append(squash(piece[1:] if piece.startswith("-") else piece))
        best: list[int] | None = None
        for bare in sorted(sure, key=len, reverse=True)[:MAX_ANCHORS]:
            lines = [number for number, line in enumerate(self.base.squashed) if bare in line]
            best = lines if best is None or len(lines) < len(best) else best
        if best is None:
            return range(last + 1)
        starts: list[int] = []
        done = 0
        for line in best:
            starts += range(max(done, line - self.hunk.old_count + 1), min(line, last) + 1)
            done = line + 1
        return starts

    def _choose(self) -> Reading | None:
        if not self.found:
            return None
        least = min(reading.mended for reading in self.found.values())
        best = [reading for reading in self.found.values() if reading.mended == least]
        regular = [reading for reading in best if self._is_regular(reading)]
        if len(best) > 1 and len(regular) == 1:
            best = regular
        places = tuple(sorted({reading.places[0] for reading in best}))
        if len({reading.lines for reading in best}) == 1:
            return replace(best[0], places=places)
        if len(places) > 1:
            lines = ", ".join(str(place + 1) for place in places[:5])
            raise Unplaceable(f"it fits equally well at {len(places)} places: lines {lines}")
        raise Unplaceable(f"its damaged lines can be read in {len(best)} ways at line {places[0] + 1}")

    def _is_regular(self, reading: Reading) -> bool:
        """Return whether there is as much context before the changes as after, or less where the file begins or ends."""
        before, behind = _context(reading.lines), _context(reading.lines[::-1])
        at_start = reading.places[0] == 0
        at_end = reading.places[0] + self.hunk.old_count == len(self.base.lines)
        return before == behind or (at_start and before < behind) or (at_end and behind < before)

    def _put(self, states: _States, state: _State, cost: int, path: _Path | None) -> bool:
        """Note a way to a state; return False if a better way, or this one, is known."""
        self.effort.spend(1)
        known, paths = states.get(state, (self.most + 1, ()))
        if cost > known or cost > self.most:
            return False
        if cost < known:
            states[state] = (cost, (path,))
            return True
        if len(paths) < 2 and all(_digest(path) != _digest(other) for other in paths):
            states[state] = (cost, (*paths, path))
            return True
        return False

    def _restore_blanks(self, states: _States) -> None:
        """Add the states in which blank context lines of the base were lost."""
        waiting = [state for state in states if self._at_blank(state)]
        while waiting:
            state = waiting.pop()
            cost, paths = states[state]
            place, old, removed, added, _ = state
            after = (place, old + 1, removed, added, "")
            changed = [self._put(states, after, cost + 1, _step(path, " ")) for path in paths]
            if any(changed) and self._at_blank(after):
                waiting.append(after)

    def _at_blank(self, state: _State) -> bool:
        place, old, _, _, rest = state
        return not rest and old < self.hunk.old_count and not self.base.squashed[place + old]

    def _accept(self, states: _States, used: int) -> None:
        """Keep the readings that are complete after this many pieces."""
        for (place, old, removed, added, rest), (cost, paths) in states.items():
            if rest or old != self.hunk.old_count or old - removed + added != self.hunk.new_count:
                continue
            for path in paths:
                self.effort.spend(len(self.hunk.pieces))
                lines = path.lines() if path else ()
                if may_end(self.hunk, used, lines, last=self.last):
                    self._keep(Reading(lines, (place,), mended=cost + self._left_over(used)))

    def _left_over(self, used: int) -> int:
        """Return the cost of text that follows the hunk directly; a signature or a blank line costs nothing."""
        following = self.hunk.pieces[used] if used < len(self.hunk.pieces) else ""
        return 0 if not following.strip() or is_signature(following) else 2

    def _keep(self, reading: Reading) -> None:
        before, behind = _context(reading.lines), _context(reading.lines[::-1])
        effect = (reading.places[0] + before, reading.lines[before : len(reading.lines) - behind])
        known = self.found.get(effect)
        better = known is None or (reading.mended, not self._is_regular(reading)) < (
            known.mended,
            not self._is_regular(known),
        )
        if better:
            self.found[effect] = reading

    def _read(self, states: _States, piece: str, number: int) -> _States:
        """The states after one more piece."""
        after: _States = {}
        bare = squash(piece)
        first = number < HEADER_TAILS
        # No mailer puts a blank line between the halves of a line: what follows one is other text.
        before = self.hunk.pieces[number - 1].strip() if number else ""
        half = bool(bare and before) and piece[0] not in "+-"
        for state, (cost, paths) in states.items():
            for path in paths:
                for reached, more, reading in self._ways(state, path, piece, bare, half=half):
                    self._put(after, reached, cost + more, reading)
                if first and bare and path is None and not state[4] and piece[0] not in "+-":
                    # the tail of a header that was wrapped
                    self._put(after, state, cost + 1, path)
        return after

    def _ways(
        self, state: _State, path: _Path | None, piece: str, bare: str, *, half: bool
    ) -> Iterator[tuple[_State, int, _Path | None]]:
        """Yield the readings of a piece in a state: the next state, the cost of the damage, the lines so far.

        half: it may be the other half of an added line.
        """
        place, old, removed, added, rest = state
        mark = piece[:1]
        if rest:
            if bare and rest.startswith(self.mark + bare):
                left = rest.removeprefix(self.mark + bare)
                yield (place, old + (not left), removed, added, left), 1, path
            return
        if not bare:
            yield state, 1, path
        if is_no_newline(piece):
            yield state, 0, _step(path, "\\")
        if mark == "+":
            yield (place, old, removed, added + 1, ""), 0, _step(path, "+", piece[1:])
        if half and path is not None and path.side == "+" and len(path.text) < GIANT_LINE:
            joined = path.text.rstrip() + self.hunk.joiner + piece.strip()
            yield state, 1, _step(path.before, "+", joined)
        if old < self.hunk.old_count:
            wanted = self.base.squashed[place + old]
            if mark == "-":
                yield from self._match(state, _step(path, "-"), bare[1:], wanted, 0)
            yield from self._match(state, _step(path, " "), bare, wanted, int(mark in ("+", "-")))

    def _match(
        self, state: _State, path: _Path, bare: str, wanted: str, cost: int
    ) -> Iterator[tuple[_State, int, _Path | None]]:
        """Yield the reading as a line of the old side, or as the first half of one."""
        place, old, removed, added, _ = state
        removed += path.side == "-"
        if bare == wanted:
            yield (place, old + 1, removed, added, ""), cost, path
        elif bare and wanted.startswith(bare):
            yield (place, old, removed, added, wanted.removeprefix(bare)), cost, path


def _context(lines: Lines) -> int:
    """Return the number of context lines at the start of a hunk."""
    return next((number for number, (side, _) in enumerate(lines) if side != " "), len(lines))


def _digest(path: _Path | None) -> int:
    return path.digest if path else 0
