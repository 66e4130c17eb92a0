# SPDX-License-Identifier: GPL-2.0-or-later
"""Made profiles of the size of real ones: some thousand nodes, some ten kilobytes when packed."""

from __future__ import annotations

import numpy as np

from lab.profiles.analysis.frame_tree import build_tree, pack

_PARTS = ("vfs", "ext4", "kernfs", "rcu", "sched", "page", "slab", "rwsem", "dentry", "inode", "bio", "tty")
_VERBS = (
    "lookup",
    "read_iter",
    "write_iter",
    "alloc",
    "free",
    "lock",
    "unlock",
    "walk",
    "flush",
    "permission",
)
_NAMES = tuple(f"{part}_{verb}_{at}" for part in _PARTS for verb in _VERBS for at in range(12))
_STACKS = 2500


def profile_body(draw: np.random.Generator) -> tuple[bytes, int]:
    """Return a packed tree of call chains that share their beginnings, and its samples."""
    chain = ["entry_SYSCALL_64", "do_syscall_64"]
    stacks = []
    for _ in range(_STACKS):
        chain = chain[: max(2, len(chain) - int(draw.integers(0, 5)))]
        while len(chain) < 40 and draw.random() < 0.7:
            chain.append(_NAMES[int(draw.zipf(1.3)) % len(_NAMES)])
        stacks.append((tuple(chain), int(draw.geometric(0.2))))
    return pack(build_tree(stacks)), sum(samples for _, samples in stacks)
