# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the place of a damaged hunk in its base file, and which of its pieces are which lines.

Lines are compared without blanks. First the hunk is read as it stands: a piece is a line, its first character says
which side it is on, the header's counts say where it ends. If that old side is nowhere in the file, the hunk is
aligned with the file line by line, allowing for lines that were wrapped, blank lines that were lost or doubled, and a
header whose tail was wrapped; of all readings whose counts agree with the header the one that needs the least damage
counts, and only if there is one such place and one such reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from kernels.damage import DamagedHunk, count_pieces, squash
from kernels.diff import is_signature

# Steps of the alignment, for a whole submission: some 20 s. The mails it was made for take 20,000.
MAX_STEPS = 10_000_000
MAX_COST = 12
MAX_PLACES = 50


class Unplaceable(Exception):
    """A hunk that cannot be placed, with the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a hunk: (side, text) of each line, side being one of " -+" or "\\"; what had to be mended."""

    lines: tuple[tuple[str, str], ...]
    places: tuple[int, ...]
    mended: int = 0

    @property
    def old_count(self) -> int:
        """Lines of the old side."""
        return sum(side in " -" for side, _ in self.lines)


class BaseText:
    """A base file's lines, without line ends: exactly, and (made when first asked for) without blanks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)

    @cached_property
    def squashed(self) -> tuple[str, ...]:
        """The lines without their blanks."""
        return tuple(squash(line) for line in self.lines)

    @cached_property
    def _squashed_search(self) -> _Search:
        return _Search(self.squashed)

    @cached_property
    def _exact_search(self) -> _Search:
        return _Search(self.lines)

    def find(self, old: Sequence[str]) -> tuple[int, ...]:
        """Where these lines (without blanks) stand one after the other: the first line's number, from 0."""
        return self._squashed_search.find(old)

    def find_exactly(self, old: Sequence[str]) -> tuple[int, ...]:
        """Where exactly these lines stand one after the other: the first line's number, from 0."""
        return self._exact_search.find(old)


class _Search:
    """All places of a run of lines; at most MAX_PLACES of them, for a file of equal lines has too many."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n" + "".join(line + "\n" for line in lines)
        offsets = accumulate((len(line) + 1 for line in lines), initial=0)
        self.starts = {offset: number for number, offset in enumerate(offsets)}

    def find(self, wanted: Sequence[str]) -> tuple[int, ...]:
        needle = "\n" + "".join(line + "\n" for line in wanted)
        found: list[int] = []
        at = self.text.find(needle)
        while at >= 0 and len(found) < MAX_PLACES:
            found.append(self.starts[at])
            at = self.text.find(needle, at + 1)
        return tuple(found)


class Effort:
    """What may be spent on one submission: the alignment is a search, and mails come from strangers."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Raises Unplaceable when nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise Unplaceable("there are too many ways to read this mail; send what git format-patch wrote")


def read_hunk(hunk: DamagedHunk, base: BaseText, effort: Effort, *, last: bool) -> Reading:
    """The hunk as lines, with all places in the base where its old side stands.

    last: other text may follow, since no further hunk or file does. Raises Unplaceable.
    """
    plain = _plain(hunk, base, last=last)
    if plain is not None and plain.places:
        return plain
    aligned = _Alignment(hunk, base, effort, last=last).best()
    if aligned is not None:
        return aligned
    effort.spend(len(base.lines))
    raise Unplaceable(_why(hunk, plain, base))


def _plain(hunk: DamagedHunk, base: BaseText, *, last: bool) -> Reading | None:
    """The hunk read as it stands; None if its counts are not met or something else is left over."""
    used = count_pieces(hunk)
    lines = tuple(_line(piece) for piece in hunk.pieces[:used])
    old = [squash(text) for side, text in lines if side in " -"]
    new = sum(side in " +" for side, _ in lines)
    if (len(old), new) != (hunk.old_count, hunk.new_count) or not _ends(hunk, used, lines, last=last):
        return None
    return Reading(lines, base.find(old) if old else ())


def _line(piece: str) -> tuple[str, str]:
    if piece[:1] in ("+", "-", "\\"):
        return piece[0], piece[1:]
    return " ", piece


def _ends(hunk: DamagedHunk, used: int, lines: Sequence[tuple[str, str]], *, last: bool) -> bool:
    """Whether a hunk can end after so many pieces: nothing but blank lines, or text that is none of it, follows."""
    rest = [piece for piece in hunk.pieces[used:] if not is_signature(piece)]
    if not any(piece.strip() for piece in rest):
        return True
    if not last:
        return False
    # after an added line, text that goes on at once may be its other half
    return not (
        lines and lines[-1][0] == "+" and hunk.pieces[used].strip() and not is_signature(hunk.pieces[used])
    )


def _why(hunk: DamagedHunk, plain: Reading | None, base: BaseText) -> str:
    """Say what is wrong with a hunk that nothing could be made of."""
    if plain is None:
        lines = [_line(piece) for piece in hunk.pieces[: count_pieces(hunk)]]
        old, new = (sum(side in sides for side, _ in lines) for sides in (" -", " +"))
        return (
            f"counts disagree: the header says {hunk.old_count} old and {hunk.new_count} new lines, "
            f"there are {old} and {new}, and no reading with wrapped or lost lines fits the base"
        )
    old = [text for side, text in plain.lines if side in " -"]
    if not old:
        return "no place: it has no line by which it could be placed"
    wanted = [squash(text) for text in old]
    place = _most_alike(wanted, base)
    if place is None:
        return f"no place: the base has none of its lines, such as {_shown(old[0])}"
    matches = [
        0 <= at < len(base.lines) and base.squashed[at] == line for at, line in enumerate(wanted, place)
    ]
    first = matches.index(False)
    there = _shown(base.lines[place + first]) if 0 <= place + first < len(base.lines) else "its end"
    return (
        f"no place: nearest is line {place + 1}, where {sum(matches)} of {len(old)} lines agree; "
        f"for {_shown(old[first])} the base has {there}"
    )


def _shown(line: str) -> str:
    text = " ".join(line.split())[:80]
    return f'"{text}"' if text else "a blank line"


def _most_alike(wanted: Sequence[str], base: BaseText) -> int | None:
    """The place at which most of these lines (without blanks) stand where they should; None if none does."""
    offsets: dict[str, list[int]] = {}
    for at, line in enumerate(wanted):
        if line and len(offsets.setdefault(line, [])) < MAX_PLACES:
            offsets[line].append(at)
    votes = Counter(number - at for number, line in enumerate(base.squashed) for at in offsets.get(line, ()))
    return votes.most_common(1)[0][0] if votes else None


@dataclass(frozen=True, slots=True)
class _Path:
    """The lines read so far, last first. Two paths are the same reading if their digests are."""

    before: _Path | None
    side: str
    text: str
    digest: int

    def lines(self) -> tuple[tuple[str, str], ...]:
        lines: list[tuple[str, str]] = []
        path: _Path | None = self
        while path is not None:
            lines.append((path.side, path.text))
            path = path.before
        return tuple(reversed(lines))


def _step(before: _Path | None, side: str, text: str = "") -> _Path:
    return _Path(before, side, text, hash((before.digest if before else 0, side, text)))


# Place, old lines matched, removed lines, added lines, what is left of a base line that was wrapped.
_State = tuple[int, int, int, int, str]
# The least damage that leads to a state, and the readings that lead there with it (two are enough to know).
_States = dict[_State, tuple[int, tuple[_Path | None, ...]]]


class _Alignment:
    """All readings of a hunk's pieces against the base, kept as states after each piece."""

    def __init__(self, hunk: DamagedHunk, base: BaseText, effort: Effort, *, last: bool) -> None:
        self.hunk, self.base, self.effort, self.last = hunk, base, effort, last
        self.mark = squash(hunk.joiner)
        self.found: dict[tuple[int, tuple[tuple[str, str], ...]], int] = {}

    def best(self) -> Reading | None:
        """The reading with the least damage; None if there is none. Raises Unplaceable if it is not the only one."""
        if not self.hunk.old_count:
            return None
        starts = range(len(self.base.lines) - self.hunk.old_count + 1)
        self.effort.spend(len(starts))
        states: _States = {(at, 0, 0, 0, ""): (0, (None,)) for at in starts}
        for number, piece in enumerate(self.hunk.pieces):
            self._restore_blanks(states)
            self._accept(states, number)
            states = self._read(states, piece, first=number == 0)
            if not states:
                break
        self._restore_blanks(states)
        self._accept(states, len(self.hunk.pieces))
        return self._choose()

    def _choose(self) -> Reading | None:
        if not self.found:
            return None
        least = min(self.found.values())
        best = [key for key, cost in self.found.items() if cost == least]
        places = sorted({place for place, _ in best})
        if len(places) > 1:
            lines = ", ".join(str(place + 1) for place in places[:5])
            raise Unplaceable(f"{len(places)} places, at lines {lines}, each with as little damage")
        if len(best) > 1:
            raise Unplaceable(f"{len(best)} ways to read its damaged lines at line {places[0] + 1}")
        return Reading(best[0][1], (places[0],), mended=least)

    def _put(self, states: _States, state: _State, cost: int, path: _Path | None) -> bool:
        """Note a way to a state; False if a better one, or this one, is known."""
        self.effort.spend(1)
        known, paths = states.get(state, (MAX_COST + 1, ()))
        if cost > known or cost > MAX_COST:
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
        """Keep the readings that are complete after so many pieces."""
        for (place, old, removed, added, rest), (cost, paths) in states.items():
            if rest or old != self.hunk.old_count or old - removed + added != self.hunk.new_count:
                continue
            for path in paths:
                self.effort.spend(len(self.hunk.pieces))
                lines = path.lines() if path else ()
                if _ends(self.hunk, used, lines, last=self.last):
                    self.found[place, lines] = min(cost, self.found.get((place, lines), cost))

    def _read(self, states: _States, piece: str, *, first: bool) -> _States:
        """The states after one more piece."""
        after: _States = {}
        bare = squash(piece)
        for state, (cost, paths) in states.items():
            for path in paths:
                for reached, more, reading in self._ways(state, path, piece, bare):
                    self._put(after, reached, cost + more, reading)
                if first and bare:
                    # the tail of a header that was wrapped
                    self._put(after, state, cost + 1, path)
        return after

    def _ways(
        self, state: _State, path: _Path | None, piece: str, bare: str
    ) -> Iterator[tuple[_State, int, _Path | None]]:
        """What a piece can be in a state: the state after it, what damage that takes, the lines so far."""
        place, old, removed, added, rest = state
        mark = piece[:1]
        if rest:
            if bare and rest.startswith(self.mark + bare):
                left = rest.removeprefix(self.mark + bare)
                yield (place, old + (not left), removed, added, left), 1, path
            return
        if not bare:
            yield state, 1, path
        if mark == "\\":
            yield state, 0, _step(path, "\\", piece[1:])
        if mark == "+":
            yield (place, old, removed, added + 1, ""), 0, _step(path, "+", piece[1:])
        if path is not None and path.side == "+" and bare and mark not in ("+", "-", "\\"):
            joined = path.text.rstrip() + self.hunk.joiner + piece.strip()
            yield state, 1, _step(path.before, "+", joined)
        if old < self.hunk.old_count:
            wanted = self.base.squashed[place + old]
            if mark == "-":
                yield from self._match(state, _step(path, "-"), bare[1:], wanted, 0)
            yield from self._match(state, _step(path, " "), bare, wanted, int(mark in ("+", "-", "\\")))

    def _match(
        self, state: _State, path: _Path, bare: str, wanted: str, cost: int
    ) -> Iterator[tuple[_State, int, _Path | None]]:
        """A line of the old side, or the first half of one."""
        place, old, removed, added, _ = state
        removed += path.side == "-"
        if bare == wanted:
            yield (place, old + 1, removed, added, ""), cost, path
        elif bare and wanted.startswith(bare):
            yield (place, old, removed, added, wanted.removeprefix(bare)), cost, path


def _digest(path: _Path | None) -> int:
    return path.digest if path else 0
