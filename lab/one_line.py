# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' names and messages as one line of bounded length."""

# Longer names are jokes, or those of variants of many switches, which no table can show.
MOST = 200


def one_line(name: str) -> str:
    """Replace characters of a name that would break the line or hide in it."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def plain(name: str, most: int = MOST) -> str:
    """Return a name or message on one line, without control characters, cut where it is longer than `most`."""
    line = one_line(" ".join(name.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def as_cell(text: str) -> str:
    """Return a text on one line, quoted if a spreadsheet would take it for a formula."""
    line = one_line(text)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def error_line(error: BaseException) -> str:
    """Return an error's message on one line of at most 300 characters, or its class name without a message."""
    return " ".join(str(error).split())[:300] or type(error).__name__
