# SPDX-License-Identifier: GPL-2.0-or-later
"""Logs and consoles: hostile text of any length, read from its end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# A page shows this much at most; the whole is a download.
TAIL_BYTES = 64 * 1024
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


def read_end(path: Path | None, *, limit: int = TAIL_BYTES) -> Log:
    """Read at most `limit` bytes from the end, beginning with a whole line."""
    if path is None:
        return Log("", 0, 0, "Nothing was written yet.")
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = file.seek(max(0, size - limit))
            data = file.read(limit)
    except OSError as exc:
        return Log("", 0, 0, f"The file cannot be read: {exc.strerror}.")
    if start:
        cut = data.find(b"\n") + 1
        data, start = data[cut:], start + cut
    return Log(printable(data.decode(errors="replace")), start, size)


def printable(text: str) -> str:
    """Without terminal escapes and control characters; line ends of either kind kept as one."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))
