# SPDX-License-Identifier: GPL-2.0-or-later
"""One machine's turns: guests that are timed by the wall clock have it to themselves, all else may share it.

Two lock files. The process that locks `machine.lock` may use the machine; a process that waits for it holds `machine.turn`, so that sharing
processes cannot keep the machine from a process that wants it alone. Both locks end with the process, however it ends.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

# free: the work is on another machine, or takes none of this one's time.
Turn = Literal["alone", "shared", "free"]


@contextmanager
def turn(home: Path, how: Turn) -> Iterator[None]:
    """Wait for this machine, and have it for the block. A signal's exception ends the wait."""
    if how == "free":
        yield
        return
    with (home / "machine.lock").open("a") as machine:
        with (home / "machine.turn").open("a") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(machine, fcntl.LOCK_EX if how == "alone" else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(machine, fcntl.LOCK_UN)
