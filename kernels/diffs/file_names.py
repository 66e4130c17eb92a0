# SPDX-License-Identifier: GPL-2.0-or-later
"""File names in diffs: quoting, the a/ and b/ before them, and the lines that hold them."""

import re
from datetime import datetime

from kernels.errors import PatchDamaged, PatchRejected

# The pairs git itself puts before paths (diff.mnemonicPrefix).
_PREFIXES = {("a", "b"), ("i", "w"), ("c", "i"), ("c", "w"), ("o", "w")}
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
# The time behind a name in a line of diff(1), if it may be the first second of 1970.
_TIME = re.compile(r".*\t((?:1969-12-31|1970-01-01) \d\d:\d\d:\d\d)(?:\.0+)? ([-+]\d\d):?(\d\d)\s*")
RESEND = "send what git format-patch wrote, as a file or an attachment"


def name_of(text: str) -> str:
    """Return a file's name from a `---` or `+++` line: without quotes, and without the time that diff(1) adds."""
    text = text.rstrip("\r")
    if text.startswith('"'):
        return unquote_path(text)
    return text.partition("\t")[0].rstrip(" ")


def has_time_0(text: str) -> bool:
    """Return whether a `---` or `+++` line has the time that `diff -N` gives a file that is not there."""
    match = _TIME.fullmatch(text)
    try:
        return (
            match is not None and not datetime.fromisoformat(f"{match[1]}{match[2]}:{match[3]}").timestamp()
        )
    except ValueError:
        return False


def unquote_path(text: str) -> str:
    r"""Decode git's C-style quoting ("a\303\244.c"); text that is not quoted is returned as it is.

    Raises PatchRejected if the quoting is broken.
    """
    text = text.rstrip("\r")
    if not text.startswith('"'):
        return text
    decoded, at, body = bytearray(), 0, text[1:]
    while at < len(body) and body[at] != '"':
        if body[at] != "\\":
            decoded += body[at].encode("utf-8", "surrogateescape")
            at += 1
        elif body[at + 1 : at + 2] in _ESCAPES:
            decoded.append(_ESCAPES[body[at + 1]])
            at += 2
        elif re.fullmatch("[0-3][0-7][0-7]", body[at + 1 : at + 4]):
            decoded.append(int(body[at + 1 : at + 4], 8))
            at += 4
        else:
            raise PatchRejected(
                "a file's name is quoted in a way git does not know; " + RESEND, file=text[:200]
            )
    if at >= len(body):
        raise PatchRejected(
            "a file's name begins with a quote and does not end with one; " + RESEND, file=text[:200]
        )
    return decoded.decode("utf-8", "surrogateescape")


def git_line_paths(line: str) -> tuple[str, str]:
    """Return the paths in `diff --git a/x b/x`, their only place if there is no hunk: both are the same."""
    rest = line.removeprefix("diff --git ").rstrip("\r")
    if rest.startswith('"'):
        old, _, new = rest.partition('" ')
        return without_prefix(unquote_path(old + '"'), unquote_path(new))
    middle = len(rest) // 2
    if len(rest) % 2 == 1 and rest[middle] == " ":
        old, new = rest[:middle], rest[middle + 1 :]
        if old.partition("/")[2] == new.partition("/")[2]:
            return without_prefix(old, new)
    raise PatchDamaged("this line names no file; " + RESEND, detail=line[:500])


def without_prefix(minus: str, plus: str) -> tuple[str, str]:
    """Return both names without their prefixes (a/ and b/, or two directories); twice the other if one is /dev/null."""
    if minus == "/dev/null" or plus == "/dev/null":
        name = plus if minus == "/dev/null" else minus
        first, slash, rest = name.partition("/")
        path = rest if slash and any(first in pair for pair in _PREFIXES) else name
        return path, path
    (old_first, _, old_rest), (new_first, _, new_rest) = minus.partition("/"), plus.partition("/")
    two_directories = old_first != new_first and old_rest and old_rest == new_rest
    if (old_first, new_first) in _PREFIXES or two_directories:
        return old_rest, new_rest
    return minus.removesuffix(".orig"), plus
