# SPDX-License-Identifier: GPL-2.0-or-later
"""Strangers' text on a terminal: whatever a terminal would obey is shown as a replacement character."""

import re
from typing import Any

from lab.one_line import one_line

# Also at the very end: the other half may come with the next part of a log.
_LINE_END = re.compile(r"\r+(?=\n|\Z)")


def plain_text(text: str) -> str:
    """Keep lines and tabs, replace every other control character; a serial console's line ends become ours."""
    text = _LINE_END.sub("", text)
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_line(text: Any, longest: int = 500) -> str:
    """Return a text as one plain line, cut to `longest`."""
    return one_line(" ".join(str(text).split())[:longest])
