# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' names and messages as one line of bounded length."""

# Longer names are somebody's joke; a variant of many switches is longer than any table.
MOST = 200


def one_line(name: str) -> str:
    """A name without what would break the line or hide in it."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def plain(name: str, most: int = MOST) -> str:
    """Return a name or message on one line, without control characters, cut where it is longer than `most`."""
    line = one_line(" ".join(name.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def error_line(error: BaseException) -> str:
    """Return what an error says on one line of at most 300 characters, or its kind where it says nothing."""
    return " ".join(str(error).split())[:300] or type(error).__name__
