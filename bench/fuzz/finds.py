# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts and finds of one fuzzing process: executions, refusals by class, and one input for each kind of crash."""

import hashlib
import json
import time
import traceback
from collections import Counter
from pathlib import Path

from bench.fuzz.targets import Reader, check_refusal

WRITE_EVERY_S = 2.0


class Session:
    """One process's run over a target; `execute` is called for every input."""

    def __init__(self, reader: Reader, folder: Path, stats: Path, seconds: float) -> None:
        self.reader, self.folder, self.stats = reader, folder, stats
        self.begun = time.monotonic()
        self.until = self.begun + seconds
        self.executions = self.accepted = 0
        self.refusals: Counter[str] = Counter()
        self.finds: dict[str, str] = {}
        self._written = 0.0

    def execute(self, data: bytes) -> bool:
        """Feed one input; return False once the time is up."""
        self.executions += 1
        try:
            self.reader.feed(data)
            self.accepted += 1
        except self.reader.refusals as exc:
            self.refusals[type(exc).__name__] += 1
            try:
                check_refusal(exc)
            except AssertionError as wrong:
                self._keep(data, wrong.with_traceback(exc.__traceback__))
        except Exception as exc:
            self._keep(data, exc)
        now = time.monotonic()
        if now - self._written > WRITE_EVERY_S:
            self._written = now
            self.write()
        return now < self.until

    def write(self) -> None:
        """Write the counts so far, so that they outlive a process that dies."""
        counts = {
            "seconds": round(time.monotonic() - self.begun, 1),
            "executions": self.executions,
            "accepted": self.accepted,
            "refusals": dict(self.refusals),
            "finds": self.finds,
        }
        self.stats.write_text(json.dumps(counts))

    def _keep(self, data: bytes, exc: Exception) -> None:
        """Keep the shortest input of each kind: an exception's class and the innermost frame that raised it."""
        frames = traceback.extract_tb(exc.__traceback__)
        ours = [frame for frame in frames if "/site-packages/" not in frame.filename]
        last = ours[-1] if ours else frames[-1]
        kind = f"{type(exc).__name__} in {Path(last.filename).name}:{last.name}"
        name = hashlib.sha256(kind.encode()).hexdigest()[:12]
        path = self.folder / f"{name}.input"
        if path.exists() and path.stat().st_size <= len(data):
            self.finds.setdefault(kind, path.name)
            return
        self.finds[kind] = path.name
        path.write_bytes(data)
        report = "".join(traceback.format_exception(exc))
        path.with_suffix(".txt").write_text(f"{kind}\n{ascii(str(exc))[:500]}\n{report}", errors="replace")
