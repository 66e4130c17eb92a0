# SPDX-License-Identifier: GPL-2.0-or-later
"""Combine the many small packs of a tree's repository: each fetch leaves one, and each access to an object searches them all.

Packs are rolled up by size, so that the large first one is hardly ever written again. Nothing is dropped: variants and old experiments
need commits that no branch has any more. Git writes the new pack before it removes the old ones; a reader that has an old pack open
continues to read it, and other readers list the packs again.
"""

from contextlib import suppress
from pathlib import Path

from kernels.errors import DiskFull, GitFailed
from kernels.trees.git import try_git

# Up to this many packs stay as they are; a roll-up leaves a handful.
MOST_PACKS = 30
DEADLINE_S = 600.0
_ROLL_UP = ("repack", "--geometric=2", "-d", "-q", "--no-write-bitmap-index")


def packs(repository: Path) -> list[Path]:
    """Return the packs of a bare repository."""
    return sorted((repository / "objects" / "pack").glob("pack-*.pack"))


def roll_up(repository: Path, *, seconds: float, memory: int, room: int) -> bool:
    """Combine packs if there are more than MOST_PACKS; return whether that was done.

    Call it with the tree locked. seconds, memory, room: its limits in time and bytes. If it fails everything stays
    as it is, and the next fetch tries again.
    """
    if len(packs(repository)) <= MOST_PACKS:
        return False
    settings = ("-c", "pack.threads=1", "-c", "pack.windowMemory=64m", "-c", "pack.deltaCacheSize=64m")
    done = False
    with suppress(GitFailed, DiskFull):
        result = try_git(
            repository,
            *settings,
            *_ROLL_UP,
            deadline_s=min(seconds, DEADLINE_S),
            limits={"fsize": max(0, room), "data": memory},
        )
        done = result.returncode == 0
    for left_over in (repository / "objects" / "pack").glob("*tmp*"):
        left_over.unlink(missing_ok=True)
    return done
