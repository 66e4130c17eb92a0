# SPDX-License-Identifier: GPL-2.0-or-later
"""A memory limit over everything a command starts, where we may set one.

The limits of prlimit hold for each process alone; a control group holds them together, so that a
hostile build meets its own limit before the machine's. Only root may make one; others do without.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "kperflab-build"
# The kernel may take a moment to see that the last process is gone.
_END_S = 2.0
_numbers = itertools.count(1)


def physical_memory() -> int:
    """Bytes of memory this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def memory_group(limit: int, root: Path = _ROOT) -> Iterator[str]:
    """The cgroup.procs file of a new group with this limit in bytes, or "" where there can be none."""
    group = _make(limit, root)
    try:
        yield str(group / "cgroup.procs") if group else ""
    finally:
        if group:
            _remove(group, _END_S)


def _make(limit: int, root: Path) -> Path | None:
    # Version 2 has one tree, version 1 one for each resource.
    for parent, file in ((root, "memory.max"), (root / "memory", "memory.limit_in_bytes")):
        group = parent / f"{_PREFIX}.{os.getpid()}.{next(_numbers)}"
        with contextlib.suppress(OSError):
            _remove_leftovers(parent)
            group.mkdir()
            # Not there: the directory is no control group, or its parent hands down no memory limits.
            if (group / file).exists():
                (group / file).write_text(str(limit))
                return group
        _remove(group, 0)
    return None


def _remove_leftovers(parent: Path) -> None:
    for group in parent.glob(f"{_PREFIX}.*.*"):
        if not Path("/proc", group.name.split(".")[1]).exists():
            _remove(group, 0)


def _remove(group: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while group.exists():
        try:
            group.rmdir()
        except OSError:  # still in use; the next build removes it
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
