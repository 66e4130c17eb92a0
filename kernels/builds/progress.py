# SPDX-License-Identifier: GPL-2.0-or-later
"""Follows a build: keeps its log, its last lines and its first error, and counts its steps."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from kernels.builds.kbuild import first_error, is_error, is_step

_KEPT = 200
_ERRORS = 50
_FLUSH_S = 0.5
# An object whose assembly the sweep before make has placed beside it; make prints a line for it once more.
_READY = "  READY   "


class BuildProgress:
    """The progress that one call of Builder.build reports to its caller.

    memory: a directory of files with the number of steps that the last build of each kind took, without those counted beforehand.
    ahead: steps of a build that follows in the same call, such as a variant's after those of its missing base.
    """

    def __init__(
        self, memory: Path, on_line: Callable[[str], None], on_progress: Callable[[int, int], None]
    ) -> None:
        self._memory, self._on_line, self._on_progress = memory, on_line, on_progress
        self._log: TextIO | None = None
        self._last: deque[str] = deque(maxlen=_KEPT)
        self._errors: list[str] = []
        self._ready: set[str] = set()
        self._done, self._past, self._counted, self._expected = 0, 0, 0, 0
        self._kind, self._flushed = "", 0.0
        self.ahead = 0

    @contextlib.contextmanager
    def building(self, log: Path, kind: str, guess: int, counted: int = 0) -> Iterator[None]:
        """Write lines to a log file and count steps, for the duration of one build.

        counted: steps known beforehand; guess: the number of others to expect in the first build of its kind.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        self._last.clear()
        self._errors.clear()
        self._ready.clear()
        self._past, self._done, self._kind = self._past + self._done, 0, kind
        self._counted, self._expected = counted, counted + (self._remembered(kind) or guess)
        with log.open("w") as self._log:
            try:
                yield
            finally:
                self._log = None

    def succeeded(self) -> None:
        """Remember how many steps the build took."""
        self._memory.mkdir(parents=True, exist_ok=True)
        (self._memory / self._kind).write_text(str(max(1, self._done - self._counted)))
        self._past, self._done, self._expected = self._past + self._done, 0, 0
        self._report()

    def line(self, line: str) -> None:
        """Take one line of output."""
        self._last.append(line)
        if self._log is not None:
            self._log.write(line + "\n")
        if is_error(line) and len(self._errors) < _ERRORS:
            self._errors.append(line)
        if line.startswith(_READY):
            self._ready.add(line.removeprefix(_READY))
        self._done += is_step(line) and (line.startswith(_READY) or line.split()[-1] not in self._ready)
        self._on_line(line)

    def tick(self) -> None:
        """Report progress; called from time to time, whether or not the build printed anything."""
        now = time.monotonic()
        if self._log is not None and now - self._flushed > _FLUSH_S:
            self._log.flush()
            self._flushed = now
        self._report()

    def lines(self, count: int) -> Sequence[str]:
        """Return the last lines of the build."""
        return list(self._last)[-count:]

    def first_error(self) -> str:
        """Return the line that says why the build failed, or ""."""
        return first_error(self._errors)

    def _report(self) -> None:
        this = max(self._done, self._expected)
        self._on_progress(self._past + self._done, self._past + this + self.ahead)

    def _remembered(self, kind: str) -> int:
        path = self._memory / kind
        text = path.read_text() if path.is_file() else ""
        return int(text) if text.isdigit() else 0
