# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine's speed while something is measured: what one small compilation costs, again and again beside it."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean

from bench.command import spent

PAUSE_S = 8.0
# Some 0.3 s of gcc 12: long enough to be read from a process's times, short enough to cost the measured work little.
SOURCE = "".join(
    f"int f{n}(int *a, int n) {{ int s = {n}; for (int i = 0; i < n; i++) s += a[i] * {n + 3} ^ (s >> {n % 7}); return s; }}\n"
    for n in range(60)
)


@dataclass
class Used:
    """CPU seconds of what was measured, and those of each small compilation beside it."""

    seconds: float = 0.0
    beside: list[float] = field(default_factory=list)

    @property
    def small(self) -> float:
        """The mean CPU seconds of the small compilations."""
        return mean(self.beside)


@contextmanager
def cpu_seconds() -> Iterator[Used]:
    """CPU seconds used meanwhile, by this process and by all that ended: the sandbox and what it started among them."""
    used, ended = Used(), threading.Event()
    beside = threading.Thread(target=_repeat, args=(used.beside, ended))
    before = spent(own=True)
    beside.start()
    try:
        yield used
    finally:
        ended.set()
        beside.join()
        used.seconds = spent(own=True) - before - sum(used.beside)


def _repeat(seconds: list[float], ended: threading.Event) -> None:
    seconds.append(_compile())
    while not ended.wait(PAUSE_S):
        seconds.append(_compile())


def _compile() -> float:
    """Compile SOURCE; return the CPU seconds. Raises CalledProcessError."""
    command = ["gcc", "-O2", "-xc", "-", "-S", "-o", os.devnull]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin
        process.stdin.write(SOURCE)
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime
