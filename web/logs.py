# SPDX-License-Identifier: GPL-2.0-or-later
"""Logs and consoles: hostile text of any length, read from its end."""

import re
from dataclasses import dataclass

from lab.errors import FileGone
from lab.storage.files import KeptFile

# A page shows this much at most; the whole is a download.
TAIL_BYTES = 64 * 1024
PART_BYTES = 256 * 1024
WHOLE_BYTES = 4 * 1024 * 1024
# Colours and cursor movements, then whatever else a terminal would act on.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a log; `left_out` bytes before it are not shown. missing: why there is none."""

    text: str
    left_out: int
    size: int
    missing: str = ""


def read_end(file: KeptFile | None, *, limit: int = TAIL_BYTES) -> Log:
    """Read at most `limit` bytes from the end, beginning with a whole line."""
    if file is None:
        return Log("", 0, 0, "Nothing has been written yet.")
    try:
        piece = file.piece(-limit, limit)
    except FileGone as exc:
        return Log(
            "", 0, 0, f"{f'The file cannot be read: {exc}' if not exc.removed else str(exc).capitalize()}."
        )
    data, start, size = piece.data, piece.start, piece.size
    if start:
        cut = data.find(b"\n") + 1
        data, start = data[cut:], start + cut
    return Log(printable(data.decode(errors="replace")), start, size)


@dataclass(frozen=True, slots=True)
class LogPart:
    """A log from a position on: `offset` is where the next part begins, in bytes; more: there is one."""

    text: str
    offset: int
    more: bool


def read_part(file: KeptFile | None, offset: int, *, over: bool, limit: int = PART_BYTES) -> LogPart:
    """Read at most `limit` bytes from a place on; nothing while there is no file. Raises FileGone if the log is over.

    The part ends with a whole line, so that neither a character nor an escape is cut in two, unless the log is over or the
    line is longer than a part.
    """
    if file is None:
        return LogPart("", 0, False)
    try:
        piece = file.piece(offset, limit)
        if offset > piece.size:
            # A log that is shorter than before was begun again.
            piece = file.piece(0, limit)
    except FileGone:
        if over:
            raise
        return LogPart("", 0, False)
    data, start = piece.data, piece.start
    more = start + len(data) < piece.size
    if more or not over:
        cut = data.rfind(b"\n") + 1
        data = data if not cut and len(data) == limit else data[:cut]
    return LogPart(printable(data.decode(errors="replace")), start + len(data), more)


def printable(text: str) -> str:
    """Return a text without terminal escapes and control characters; line ends become newlines."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))
