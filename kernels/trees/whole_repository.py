# SPDX-License-Identifier: GPL-2.0-or-later
"""Create a repository whole or not at all, by one process at a time."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kernels.files.scratch import locked as hold_lock

LOCK_DEADLINE_S = 1800.0
REMOVE_DEADLINE_S = 5.0


def locked(name: str, root: Path) -> AbstractContextManager[None]:
    """Return a context in which only this process imports the tree. Raises LockBusy when it is entered."""
    return hold_lock(root / f".{name}.lock", seconds=LOCK_DEADLINE_S)


@contextmanager
def appearing(repository: Path) -> Iterator[Path]:
    """Yield a directory to fill, which becomes `repository` at the end or is removed; yield `repository` itself if it exists.

    Use it only under the lock of `locked`: it also removes directories that killed processes left.
    """
    if repository.is_dir():
        yield repository  # git's own ref updates are atomic
        return
    prefix = f".{repository.stem}="  # no tree's name has a "=", so no other tree has this prefix
    for left in repository.parent.glob(f"{prefix}*.partial"):
        _remove(left)
    place = Path(tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=repository.parent))
    place.chmod(0o755)  # mkdtemp makes it readable for us only
    try:
        yield place
        with (place / "config").open("rb") as config:  # git writes out its objects, but not this
            os.fsync(config.fileno())
        place.rename(repository)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _remove(left: Path) -> None:
    """Remove a directory that a killed process left. A git that it started may write there for a moment longer."""
    ends = time.monotonic() + REMOVE_DEADLINE_S
    shutil.rmtree(left, ignore_errors=True)
    while left.exists() and time.monotonic() < ends:
        time.sleep(0.1)
        shutil.rmtree(left, ignore_errors=True)
