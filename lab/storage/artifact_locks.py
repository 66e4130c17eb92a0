# SPDX-License-Identifier: GPL-2.0-or-later
"""Lock the artifacts of this machine: boots and builds share a lock, removal needs it alone."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernels.files.scratch import locked


def artifact_lock(home: Path, name: str) -> Path:
    """The file that is locked for an artifact, by its key."""
    return home / "objects" / "locks" / f"artifact-{name}"


@contextmanager
def in_use(home: Path, key: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an artifact so that nobody removes it meanwhile, whether it is here yet or not."""
    with locked(artifact_lock(home, key), shared=True, on_wait=on_wait):
        yield


@contextmanager
def unless_in_use(home: Path, key: str) -> Iterator[bool]:
    """Return whether nobody here uses an artifact; nobody begins to while the block runs."""
    path = artifact_lock(home, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
