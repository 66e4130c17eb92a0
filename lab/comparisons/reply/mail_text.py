# SPDX-License-Identifier: GPL-2.0-or-later
"""Text for plain mails: columns as a terminal counts them, lines of at most 72, names of strangers made harmless."""

import re
import unicodedata
from collections.abc import Sequence

from lab.one_line import MOST, plain

WIDTH = 72
# Text that a program would take for a trailer: in a name it loses its colon.
_TRAILER = re.compile(r"(?i)(-by|\blink|\bcloses|\bfixes|\bcc)\s*:")
# The same at the beginning of a line, where a name ends like that and our own colon follows.
_AT_THE_BEGINNING = re.compile(r"(?i)^(\s*(?:[\w-]+-by|link|closes|fixes|cc))\s*:")


def columns(text: str) -> int:
    """Return how many columns a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def name(text: str, most: int = WIDTH) -> str:
    """Return a stranger's name on one line, without a trailer, in at most `most` columns."""
    return cut(_TRAILER.sub(r"\1", plain(text, max(most, MOST))), most)


def harmless(text: str) -> bool:
    """Return whether every word of a text is harmless at the beginning of a line of a mail."""
    words = text.split()
    return all(re.fullmatch(r"[\w(][\w.,()/+=-]*", word) and word not in {"From", "diff"} for word in words)


def cut(text: str, most: int) -> str:
    """Return the text, cut and ended by ".." if it is too wide."""
    if columns(text) <= most:
        return text
    kept, room = "", most - 2
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept += char
    return f"{kept}.."


def left(text: str, width: int) -> str:
    """The text with blanks behind it up to a width."""
    return text + " " * (width - columns(text))


def right(text: str, width: int) -> str:
    """The text with blanks before it up to a width."""
    return " " * (width - columns(text)) + text


def fold(text: str, first: str = "", rest: str = "") -> list[str]:
    """Return lines of at most WIDTH columns, words kept whole where they fit. first, rest: prefixes of the lines.

    Pass blanks as `rest` if the text has words of strangers: then none of these words stands at the beginning of a line,
    where programs look for trailers and the like.
    """
    lines, line, bare = [], first, True
    for word in text.split():
        for part in _parts(word, WIDTH - max(columns(first), columns(rest))):
            gap = "" if bare else " "
            if not bare and columns(line) + 1 + columns(part) > WIDTH:
                lines.append(line)
                line, gap = rest, ""
            line, bare = line + gap + part, False
    lines += [line.rstrip()] if line.strip() else []
    return [_AT_THE_BEGINNING.sub(r"\1", line) for line in lines]


def _parts(word: str, most: int) -> list[str]:
    """A word in pieces that fit a line."""
    parts, part = [], ""
    for char in word:
        if columns(part) + _columns(char) > most:
            parts.append(part)
            part = ""
        part += char
    return [*parts, part]


def table(rows: Sequence[Sequence[str]], gap: int = 2) -> list[str] | None:
    """Return rows as aligned columns, the first to the left, others to the right; None if wider than a line."""
    count = max((len(row) for row in rows), default=0)
    filled = [[*row, *[""] * (count - len(row))] for row in rows]
    widths = [max(columns(row[at]) for row in filled) for at in range(count)]
    if sum(widths) + gap * (count - 1) > WIDTH:
        return None
    between = " " * gap
    return [
        between.join(
            (left if at == 0 else right)(text, width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in filled
    ]
