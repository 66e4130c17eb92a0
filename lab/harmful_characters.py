# SPDX-License-Identifier: GPL-2.0-or-later
"""Refuse characters in names and titles that act on a terminal or make one line look like another.

Controls of both sets (C0, C1), marks of writing direction, characters without width, line and paragraph separators,
surrogates, private-use and unassigned characters are refused. Blanks of all scripts are fine.
"""

import unicodedata
from collections.abc import Mapping

from lab.errors import FieldRefused

_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def harmful(text: str, *, lines: bool = False) -> str:
    """Return the first character that may not be in a line as people write it, such as "U+202E"; "" if there is none.

    lines: tabs, line feeds and carriage returns are allowed, too.
    """
    for char in text:
        if unicodedata.category(char) in _HARMFUL and not (lines and char in "\t\n\r"):
            return f"U+{ord(char):04X}"
    return ""


def check_lines(value: object) -> None:
    """Check a text, or each one within lists and mappings. Raises ValueError with a line for people."""
    if isinstance(value, str):
        if character := harmful(value):
            raise ValueError(refusal_of("it", character))
    elif isinstance(value, Mapping):
        check_lines([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            check_lines(part)


def check_field(text: str, field: str, *, lines: bool = False) -> str:
    """Return the text of a form's field if it has no harmful character. Raises FieldRefused."""
    if character := harmful(text, lines=lines):
        raise FieldRefused(field, refusal_of("it", character))
    return text


def refusal_of(what: str, character: str) -> str:
    """Return the refusal of a character, without the character."""
    return f"{what} holds the character {character}, which would not be shown as it is: remove it"
