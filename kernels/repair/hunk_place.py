# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the place of a damaged hunk in its base file, and match its pieces with lines.

Lines are compared without blanks. First the hunk is read unchanged: a piece is a line, its first character says
which side it is on, the header's counts say where it ends. If that old side is nowhere in the file, the hunk is
aligned with the file line by line, allowing for wrapped lines, lost or doubled blank lines, and a header with a
wrapped tail. Of all readings whose counts agree with the header, the one with the least damage is used, provided that
there is only one such place and one such reading.
"""

from collections import Counter
from collections.abc import Sequence

from kernels.diffs.unified import is_no_newline, parse_hunk_header
from kernels.errors import Unplaceable
from kernels.repair.alignment import Alignment, Effort, Reading, may_end
from kernels.repair.base_text import MAX_PLACES, BaseText, squash
from kernels.repair.damage import DamagedHunk, count_pieces


def read_hunk(hunk: DamagedHunk, base: BaseText, effort: Effort, *, last: bool) -> Reading:
    """Return the hunk as lines, with all places in the base where its old side is found.

    last: other text may follow, since no further hunk or file does. Raises Unplaceable.
    """
    if parse_hunk_header(hunk.header) is None:
        raise Unplaceable("its header cannot be read")
    plain = _plain(hunk, base, last=last)
    if plain is not None and plain.places:
        return plain
    aligned = Alignment(hunk, base, effort, last=last).best()
    if aligned is not None:
        return aligned
    effort.spend(len(base.lines))
    raise Unplaceable(_why(hunk, plain, base))


def _plain(hunk: DamagedHunk, base: BaseText, *, last: bool) -> Reading | None:
    """Return the hunk read unchanged; None if its counts are not met or other text is left over."""
    used = count_pieces(hunk)
    lines = tuple(_line(piece) for piece in hunk.pieces[:used])
    old = [squash(text) for side, text in lines if side in " -"]
    new = sum(side in " +" for side, _ in lines)
    if (len(old), new) != (hunk.old_count, hunk.new_count) or not may_end(hunk, used, lines, last=last):
        return None
    return Reading(lines, base.find(old) if old else ())


def _line(piece: str) -> tuple[str, str]:
    if is_no_newline(piece):
        return "\\", ""
    if piece[:1] in ("+", "-"):
        return piece[0], piece[1:]
    return " ", piece


def _why(hunk: DamagedHunk, plain: Reading | None, base: BaseText) -> str:
    """Return the reason why a hunk cannot be read."""
    if plain is None:
        used = count_pieces(hunk)
        lines = [_line(piece) for piece in hunk.pieces[:used]]
        old, new = (sum(side in sides for side, _ in lines) for sides in (" -", " +"))
        left = sum(bool(piece.strip()) for piece in hunk.pieces[used:])
        actual = f"there are {old} and {new}" if not left else f"{left} more follow"
        return (
            f"counts disagree: the header says {hunk.old_count} old and {hunk.new_count} new lines, "
            f"{actual}, and no reading with wrapped or lost lines fits the base"
        )
    texts = [text for side, text in plain.lines if side in " -"]
    if not texts:
        return "no place: it has no context or removed line to be found by"
    wanted = [squash(text) for text in texts]
    place = _most_alike(wanted, base)
    if place is None:
        return f"no place: the base has none of its lines, such as {_shown(texts[0])}"
    matches = [
        0 <= at < len(base.lines) and base.squashed[at] == line for at, line in enumerate(wanted, place)
    ]
    first = matches.index(False)
    there = (
        _shown(base.lines[place + first]) if 0 <= place + first < len(base.lines) else "the end of the file"
    )
    return (
        f"no place: closest is line {place + 1}, where {sum(matches)} of {len(texts)} lines match; "
        f"the hunk has {_shown(texts[first])}, the base has {there}"
    )


def _shown(line: str) -> str:
    text = " ".join(line.split())[:80]
    return f'"{text}"' if text else "a blank line"


def _most_alike(wanted: Sequence[str], base: BaseText) -> int | None:
    """Return the place at which most of these lines (without blanks) match; None if none of them occurs."""
    offsets: dict[str, list[int]] = {}
    for at, line in enumerate(wanted):
        if line and len(offsets.setdefault(line, [])) < MAX_PLACES:
            offsets[line].append(at)
    votes = Counter(number - at for number, line in enumerate(base.squashed) for at in offsets.get(line, ()))
    return votes.most_common(1)[0][0] if votes else None
