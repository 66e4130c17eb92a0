# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between processes, and scratch directories that are removed with their process.

A lock is flock on a file: the kernel drops it with the process, however the process ends. A scratch
directory is locked by the process that fills it; a directory without a lock belongs to a process that was killed.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from kernels.errors import LockBusy
from kernels.processes.environment import minimal

_LOCK = ".lock"
_POLL_S = 0.2
_TICK_S = 0.5
# Between mkdir and flock another process may try the lock and get it: a directory this young is left alone, unless its lock
# file says that it was held once.
_YOUNG_S = 60.0
_REMOVE_S = 600.0


@contextlib.contextmanager
def locked(
    path: Path, *, shared: bool = False, seconds: float = 7200.0, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Lock a file; create it if missing. on_wait is called while another process has the lock. Raises LockBusy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("w") as file:
        while not _try(file.fileno(), kind):
            if time.monotonic() > deadline:
                raise LockBusy(
                    f"another process has held {path.name} for {seconds:.0f} s; wait for it, or end it"
                )
            on_wait()
            time.sleep(_POLL_S)
        yield


@contextlib.contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """Yield a new directory under root, removed at the end; files moved out of it stay."""
    root.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=root))
    path.chmod(0o755)
    with (path / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            file.write("held\n")
            file.flush()
            yield path
        finally:
            remove_tree(path)


def remove_leftovers(root: Path) -> int:
    """Remove the scratch directories of processes that were killed; return their number."""
    count = 0
    for path in root.iterdir() if root.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and _abandoned(path):
            remove_tree(path)
            count += 1
    return count


def remove_tree(path: Path) -> None:
    """Remove a directory that an untrusted build wrote, whatever its modes, depth and links.

    rm walks by descriptors and never follows a link, so that nothing outside is reached.
    """
    command = ["rm", "-rf", "--one-file-system", "--", str(path)]
    subprocess.run(command, check=False, capture_output=True, timeout=_REMOVE_S, env=minimal())
    if path.exists():  # it holds a directory that we own but have no permissions for
        opening = ["chmod", "-R", "u+rwX", "--", str(path)]
        subprocess.run(opening, check=False, capture_output=True, env=minimal())
        subprocess.run(command, check=False, capture_output=True, timeout=_REMOVE_S, env=minimal())


def patiently(work: Callable[[], object], on_wait: Callable[[], None]) -> None:
    """Do work that reports no progress itself, and call on_wait every half second meanwhile.

    An exception that on_wait raises is passed on, but only once the work has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not wait([future], timeout=_TICK_S).done:
            on_wait()
        future.result()


def free_bytes(path: Path) -> int:
    """Return the bytes that are free for us on the file system where path is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _abandoned(path: Path) -> bool:
    try:
        with (path / _LOCK).open("r") as file:
            if not _try(file.fileno(), fcntl.LOCK_EX):
                return False
            if file.read(1):
                return True
    except FileNotFoundError:
        pass
    with contextlib.suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > _YOUNG_S
    return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sync_directory(path: Path) -> None:
    """Make a rename or creation in this directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_synced(made: Path, path: Path) -> None:
    """Move a finished file to the name by which others use it, so that after a power cut it has all of its bytes there or is not there."""
    with made.open("rb") as file:
        os.fsync(file.fileno())
    made.rename(path)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file so that it survives a power cut."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
