# SPDX-License-Identifier: GPL-2.0-or-later
"""Mend one file's damaged diff: each hunk at its one place, with the base's own bytes and added lines indented again.

The place of a hunk is, in this order: its only one in the file; its only one between the neighbours with a certain place; its
only one in the function that its header names; among several of those, the one that is as far from its line number
as its certain neighbours are (without such neighbours: exactly at its line number). Anything else is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kernels.diffs.unified import NO_NEWLINE, FileDiff, Hunk, ends_well, is_no_newline, is_signature
from kernels.errors import Unplaceable
from kernels.repair.added_lines import AddedLines
from kernels.repair.alignment import Effort, Reading
from kernels.repair.base_text import MAX_PLACES, BaseText, squash
from kernels.repair.damage import GIANT_LINE, DamagedFile, DamagedHunk
from kernels.repair.hunk_place import read_hunk

# The most lines above a hunk that are searched for the function in its header.
MAX_FUNCTION = 3_000


@dataclass(frozen=True, slots=True)
class RefusedHunk:
    """A hunk that could not be repaired; `text` is its text as received."""

    patch: str
    file: str
    hunk: str
    reason: str
    text: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, {self.hunk}" if self.hunk else self.file
        return f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Mended:
    """The repair of one file's diff: `diff` has the hunks that could be repaired, `lines` is the file with them."""

    diff: FileDiff
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    refused: tuple[RefusedHunk, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    hunk: DamagedHunk
    reading: Reading
    place: int

    @property
    def end(self) -> int:
        return self.place + self.reading.old_count


def mend_file(file: DamagedFile, base: BaseText, effort: Effort, *, last: bool) -> Mended:
    """Repair the hunks of one file's diff against its base.

    last: no other file's diff follows, so other text may follow. A hunk that cannot be repaired is refused, the
    others are kept.
    """
    path = file.diff.path
    try:
        effort.spend(len(base.lines))
    except Unplaceable as reason:
        return Mended(file.diff, base.lines, (), tuple(_refuse(path, hunk, reason) for hunk in file.hunks))
    readings: list[Reading | Unplaceable] = []
    for number, hunk in enumerate(file.hunks):
        try:
            readings.append(read_hunk(hunk, base, effort, last=last and number == len(file.hunks) - 1))
        except Unplaceable as reason:
            readings.append(reason)
    placed, refused = _settle(file, readings, base)
    added = AddedLines(path, base.lines, [text for item in placed for text in _changed(item.reading)])
    hunks: list[Hunk] = []
    notes: list[str] = []
    moved = shift = 0
    for item in placed:
        try:
            mended = _make_hunk(item, _exact_lines(item, base, added), shift)
        except Unplaceable as reason:
            refused.append(_refuse(path, item.hunk, reason))
            continue
        shift += mended.new_count - mended.old_count
        moved += item.place + 1 != item.hunk.old_start
        hunks.append(mended)
        if item.reading.mended:
            notes.append(
                f"{path}, {mended.header}: {item.reading.mended} wrapped, lost or doubled lines put right"
            )
    if hunks:
        summary = f"{path}: {_count(len(hunks), 'hunk')} placed by the text, blanks taken from the tree"
        summary += f", {moved} at another line than they say" if moved else ""
        notes.insert(0, summary + added.summary())
    return Mended(
        replace(file.diff, hunks=tuple(hunks)), _applied(base.lines, hunks), tuple(notes), tuple(refused)
    )


def mend_new_file(file: DamagedFile, *, last: bool) -> Mended:
    """Repair the diff of a new file, for which there is no base: wrapped lines are rejoined, indentation is rebuilt."""
    path = file.diff.path
    try:
        if len(file.hunks) > 1:
            raise Unplaceable("a new file is one hunk")
        pieces = [_new_lines(hunk, last=last) for hunk in file.hunks]
        changed = [line for lines, _ in pieces for line in lines if line != NO_NEWLINE]
        added = AddedLines(path, (), changed)
        text = tuple(added.indent(line) for line in changed)
    except Unplaceable as reason:
        return Mended(file.diff, (), (), tuple(_refuse(path, hunk, reason) for hunk in file.hunks))
    end = [NO_NEWLINE] if any(NO_NEWLINE in lines for lines, _ in pieces) else []
    hunks = (Hunk(0, 0, 1, len(text), "", (*(f"+{line}" for line in text), *end)),) if text else ()
    joined = sum(number for _, number in pieces)
    note = f"{path}: a new file{added.summary()}" + (f", {joined} wrapped lines rejoined" if joined else "")
    return Mended(replace(file.diff, hunks=hunks), text, (note,), ())


def _new_lines(hunk: DamagedHunk, *, last: bool) -> tuple[list[str], int]:
    """Return the lines of a new file, NO_NEWLINE behind the last if it has none, and how many were wrapped.

    Since all its lines are added ones, a piece without `+` right behind a line can only be the other half of it; after the
    last line it may also be other text, if that may follow. Raises Unplaceable.
    """
    lines: list[str] = []
    joined = count = 0
    for before, piece in pairwise(("", *hunk.pieces)):
        following = bool(piece.strip()) and not is_signature(piece)
        if piece.startswith("+"):
            lines.append(piece[1:])
            count += 1
        elif is_no_newline(piece):
            lines.append(NO_NEWLINE)
        elif following and lines and lines[-1] != NO_NEWLINE and not (last and count == hunk.new_count):
            if not before.strip() or len(lines[-1]) > GIANT_LINE:
                raise Unplaceable("other text stands between its lines")
            lines[-1] = lines[-1].rstrip() + hunk.joiner + piece.strip()
            joined += 1
        elif following and lines and last and lines[-1] != NO_NEWLINE:
            raise Unplaceable("text follows right behind its last line, which may be the other half of it")
        elif count == hunk.new_count:
            break
    if hunk.old_count or count != hunk.new_count or NO_NEWLINE in lines[:-1]:
        raise Unplaceable(f"counts disagree: the header says {hunk.new_count} new lines, there are {count}")
    return lines, joined


def _refuse(path: str, hunk: DamagedHunk, reason: Unplaceable) -> RefusedHunk:
    return RefusedHunk("", path, hunk.header[:120], str(reason), "\n".join(hunk.pieces)[:4_000])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _settle(
    file: DamagedFile, readings: Sequence[Reading | Unplaceable], base: BaseText
) -> tuple[list[_Placed], list[RefusedHunk]]:
    """Return one place for each hunk, in rising order, and the refused hunks, which have none."""
    sure = {
        number: reading.places[0]
        for number, reading in enumerate(readings)
        if isinstance(reading, Reading) and len(reading.places) == 1
    }
    placed: list[_Placed] = []
    refused: list[RefusedHunk] = []
    for number, (hunk, reading) in enumerate(zip(file.hunks, readings, strict=True)):
        try:
            if isinstance(reading, Unplaceable):
                raise reading
            place = sure[number] if number in sure else _choose(number, file.hunks, reading, sure, base)
            if placed and place < placed[-1].end:
                raise Unplaceable(f"its place, line {place + 1}, lies before the end of the hunk before it")
            placed.append(_Placed(hunk, reading, place))
        except Unplaceable as reason:
            refused.append(_refuse(file.diff.path, hunk, reason))
    return placed, refused


def _choose(
    number: int, hunks: Sequence[DamagedHunk], reading: Reading, sure: dict[int, int], base: BaseText
) -> int:
    """Return the place of a hunk whose old side occurs at several. Raises Unplaceable."""
    hunk = hunks[number]
    if not reading.places:
        raise Unplaceable("it has no context or removed line to be found by")
    if len(reading.places) >= MAX_PLACES:
        raise Unplaceable(f"it fits at {MAX_PLACES} places or more")
    before = [other for other in sure if other < number]
    after = [other for other in sure if other > number]
    lowest = sure[max(before)] + 1 if before else 0
    highest = sure[min(after)] if after else len(base.lines) + 1
    near = [place for place in reading.places if lowest <= place < highest]
    if len(near) == 1:
        return near[0]
    named = [place for place in near if hunk.section and _is_in(place, hunk.section, base)]
    if len(named) == 1:
        return named[0]
    shifts = {sure[other] + 1 - hunks[other].old_start for other in (*before[-1:], *after[:1])} or {0}
    expected = hunk.old_start - 1 + min(shifts)
    if len(shifts) == 1 and expected in (named or near):
        return expected
    lines = ", ".join(str(place + 1) for place in reading.places[:5])
    raise Unplaceable(
        f"it fits at {len(reading.places)} places: lines {lines}{', ...' if len(reading.places) > 5 else ''}"
    )


def _is_in(place: int, section: str, base: BaseText) -> bool:
    """Return whether the function in a hunk's header is the function at this place, by git's rule."""
    for at in range(place - 1, max(-1, place - 1 - MAX_FUNCTION), -1):
        line = base.lines[at]
        if line[:1].isalpha() or line[:1] in ("_", "$"):
            return base.squashed[at].startswith(squash(section))
    return False


def _changed(reading: Reading) -> list[str]:
    return [text for side, text in reading.lines if side in "+-"]


def _exact_lines(item: _Placed, base: BaseText, added: AddedLines) -> list[str]:
    """Return the hunk's lines, with prefix: the old side from the base, the added lines indented."""
    lines: list[str] = []
    at = item.place
    added.skip_to(at)
    for side, text in item.reading.lines:
        if side == "+":
            lines.append("+" + added.indent(text))
        elif side == "\\":
            lines.append(NO_NEWLINE)
        else:
            lines.append(side + base.lines[at])
            at += 1
            (added.keep if side == " " else added.replace)(base.lines[at - 1])
    added.resume_at(at)
    return lines


def _make_hunk(item: _Placed, lines: list[str], shift: int) -> Hunk:
    if not ends_well(lines):
        raise Unplaceable("its mark of a missing newline at the end of the file is not at its end")
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    start = item.place + 1 if old else item.place
    return Hunk(start, old, start + shift + (not old) - (not new), new, item.hunk.section, tuple(lines))


def _applied(lines: Sequence[str], hunks: Sequence[Hunk]) -> tuple[str, ...]:
    """The file with these hunks applied."""
    result: list[str] = []
    at = 0
    for hunk in hunks:
        begin = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        result += lines[at:begin]
        result += [line[1:] for line in hunk.lines if line[0] in " +"]
        at = begin + hunk.old_count
    return (*result, *lines[at:])
