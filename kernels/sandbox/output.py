# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the output of an untrusted command line by line, within a limit."""

import os
import selectors
import subprocess
from collections.abc import Iterator
from typing import Self

# Longer lines are cut into several, so that they cannot fill the memory.
MAX_LINE = 4096
_CHUNK = 65536
# Control characters would act on the terminal or the page that shows the log.
_CONTROL = dict.fromkeys((*range(9), *range(10, 32), *range(127, 160)))


class LineReader:
    """The lines of a child's standard output, as they come.

    ended: whether the child closed its output. overflow: whether it wrote more than `limit` bytes.
    """

    def __init__(self, child: subprocess.Popen[bytes], limit: int) -> None:
        if child.stdout is None:
            raise ValueError("the child has no pipe")
        self._stream = child.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stream, selectors.EVENT_READ)
        self._left = limit
        self._rest = b""
        self.ended = False

    @property
    def overflow(self) -> bool:
        """Return whether the child wrote more than the limit."""
        return self._left < 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._selector.close()
        self._stream.close()

    def lines(self, seconds: float) -> Iterator[str]:
        """Yield the lines that arrive within `seconds`; stop early after the first portion."""
        if not self._selector.select(seconds):
            return
        data = os.read(self._stream.fileno(), _CHUNK)
        self._left -= len(data)
        self.ended = not data
        *whole, self._rest = (self._rest + data).split(b"\n")
        if self._rest and (self.ended or len(self._rest) > MAX_LINE):
            whole, self._rest = [*whole, self._rest], b""
        for line in whole:
            for start in range(0, max(1, len(line)), MAX_LINE):
                yield clean(line[start : start + MAX_LINE])


def clean(line: bytes) -> str:
    """Return a line as text without control characters (tabs stay)."""
    return line.decode("utf-8", "replace").translate(_CONTROL)
