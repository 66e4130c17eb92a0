# SPDX-License-Identifier: GPL-2.0-or-later
"""Make strangers' text safe to show on a terminal, on a page, in JSON, in a database.

Bytes that are not UTF-8 travel through this package as lone surrogates (PEP 383), which none of these can store. Control
characters drive terminals, and marks of writing direction change how a line reads: only characters that
`str.isprintable` accepts are shown as they are.
"""

import re

# Everything but plain ASCII, tab and line feed is looked at character by character.
_SUSPECT = re.compile(r"[^\t\n\x20-\x7e]")


def shown(text: str) -> str:
    r"""Return text with everything harmful as an escape: `\xe9` for a byte that is not UTF-8, `\u202e` for a mark.

    Tabs and line feeds stay.
    """
    return _SUSPECT.sub(_escape, text)


def shown_line(text: str) -> str:
    """Return text as one line that is safe to show: blanks of all kinds become single spaces."""
    return shown(" ".join(text.split()))


def clean_line(text: str) -> str:
    """Return a name or a title as one line without anything harmful; bytes that are not UTF-8 become U+FFFD."""
    return " ".join(_SUSPECT.sub(_dropped, text).split())


def clean_text(text: str) -> str:
    """Return prose without anything harmful, its lines as they are; bytes that are not UTF-8 become U+FFFD."""
    return _SUSPECT.sub(_dropped, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    if match[0].isprintable():
        return match[0]
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _dropped(match: re.Match[str]) -> str:
    if match[0].isprintable():
        return match[0]
    if 0xD800 <= ord(match[0]) <= 0xDFFF:
        return "\ufffd"
    return " " if match[0].isspace() else ""
