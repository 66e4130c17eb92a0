# SPDX-License-Identifier: GPL-2.0-or-later
"""An mbox, or one bare mail, cut into its mails.

The standard library's `mailbox` takes every line of a commit message that begins with "From " for a new mail; git's
own rule, used here, does not (such a line must end with a date, and here headers must follow it).
"""

import re

BOM = b"\xef\xbb\xbf"
# A mail without a From line is recognised by its first lines.
_HEAD_BYTES = 64_000
_FROM_LINE = re.compile(
    rb"^(?:\xef\xbb\xbf)?>?From \S+\s.{0,100}?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?.{0,20}? [0-9]{4}(?: [-+][0-9]{4})?\r?$",
    re.MULTILINE,
)
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9-]{0,60}:[ \t]")
_HEADERS = re.compile(b"^" + _HEADER_LINE.pattern, re.MULTILINE)


def cut_mbox(data: bytes) -> tuple[bytes, ...]:
    """Return the mails of an mbox or one bare mail, each without its From line; none if this is not a mail.

    A byte-order mark, which some editors put before a file, is skipped.
    """
    lines = _FROM_LINE.finditer(data)
    starts = [line.start() for line in lines if _HEADERS.match(data, line.end() + 1)]
    if starts:
        pairs = zip(starts, [*starts[1:], len(data)], strict=True)
        return tuple(data[start:end].partition(b"\n")[2] for start, end in pairs)
    bare = data.removeprefix(BOM).lstrip()
    return (bare,) if _is_bare(bare[:_HEAD_BYTES]) else ()


def _is_bare(data: bytes) -> bool:
    """Return whether this is one mail without a From line: it begins with headers, among them the subject or the sender.

    A page of an archive may begin with the subject alone, which is not enough.
    """
    head = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0]
    names = {match[0].rstrip(b": \t").lower() for match in _HEADERS.finditer(head)}
    return (
        _HEADER_LINE.match(head) is not None
        and len(names) > 1
        and not names.isdisjoint({b"subject", b"from"})
    )
