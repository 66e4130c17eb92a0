# SPDX-License-Identifier: GPL-2.0-or-later
"""Copy files from a directory that untrusted code wrote.

Every directory and file is opened without following links and relative to the directory it was found in;
it must be of the expected kind and have a plain name, and its size is limited. The code that wrote it has ended.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kernels.errors import ArtifactRefused, DiskFull
from kernels.sandbox.disk_quota import free_room

MAX_FILE = 2 << 30
MAX_TOTAL = 6 << 30
MAX_FILES = 20_000
# Bytes of holes that are allowed beyond as many as were written; and bytes that stay free on the disk.
HOLES, RESERVE = 64 << 20, 256 << 20
# The only directory in an artifact.
FOLDER = "modules"

# A valid file name in an artifact.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,150}")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 1 << 20
# QEMU's user must be able to read the kernel.
_MODE_FOLDER, _MODE_FILE = 0o755, 0o644


def take(source: Path, target: Path) -> None:
    """Copy the files of source and of its `modules` to the new directory target.

    Sizes are apparent sizes, holes included, because a copy fills the holes; they are added up before anything is
    copied. Raises ArtifactRefused for a link, a device, another directory, an odd name, or too many or too large files; DiskFull.
    """
    _refuse_large(source, target)
    for folder in (target, target / FOLDER):
        folder.mkdir()
        folder.chmod(_MODE_FOLDER)
    with _folder(str(source)) as top, _folder(FOLDER, top) as inner:
        left = _take_folder(top, target, MAX_TOTAL, skip=FOLDER)
        _take_folder(inner, target / FOLDER, left)


def _refuse_large(source: Path, target: Path) -> None:
    """Raise ArtifactRefused if the copy would be larger than allowed, DiskFull if it would not fit on the disk."""
    length = taken = 0
    for folder in (source, source / FOLDER):
        with _folder(str(folder)) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue  # refused later, with its name
                length, taken = length + status.st_size, taken + status.st_blocks * 512
                if status.st_size > MAX_FILE:
                    raise ArtifactRefused(
                        f'the build made "{entry.name[:80]}" larger than {MAX_FILE >> 20} MiB; refused'
                    )
    if length > MAX_TOTAL:
        raise ArtifactRefused(f"the build hands out {length >> 20} MiB; at most {MAX_TOTAL >> 20} are taken")
    if length > 2 * taken + HOLES:
        raise ArtifactRefused(
            f"the build hands out {length >> 20} MiB of which it wrote {taken >> 20}: files of holes are refused"
        )
    if length + RESERVE > (free := free_room(target.parent).size):
        raise DiskFull(
            f"{length >> 20} MiB of a build are to be kept under {target.parent}, there are {free >> 20} MiB free; free some space"
        )


def read_bounded(path: Path, limit: int) -> bytes:
    """Return the bytes of one file that untrusted code wrote into a directory of ours. Raises ArtifactRefused."""
    with _folder(str(path.parent)) as folder, _open_file(path.name, folder) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ArtifactRefused(f'the build made "{path.name}" larger than {limit >> 10} KiB; refused')
    return data


def _take_folder(folder: int, target: Path, left: int, skip: str = "") -> int:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if len(names) > MAX_FILES:
        raise ArtifactRefused(f"the build hands out {len(names)} files; at most {MAX_FILES} are taken")
    for name in names:
        if name == skip:
            continue
        if not PLAIN_NAME.fullmatch(name):
            raise ArtifactRefused(f"the build hands out a file with an odd name: {name[:80]!a}")
        with _open_file(name, folder) as file:
            left -= _copy(file, target / name, min(left, MAX_FILE))
    return left


@contextmanager
def _folder(name: str, within: int | None = None) -> Iterator[int]:
    try:
        descriptor = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=within)
    except OSError as exc:
        raise ArtifactRefused(
            f'the build made "{Path(name).name}" something else than a directory; refused'
        ) from exc
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_file(name: str, within: int) -> IO[bytes]:
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=within)
    except OSError as exc:
        raise ArtifactRefused(f'the build made "{name[:80]}" a link or nothing; refused') from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ArtifactRefused(f'the build made "{name[:80]}" something else than a plain file; refused')
    return os.fdopen(descriptor, "rb")


def _copy(file: IO[bytes], target: Path, limit: int) -> int:
    size = 0
    with target.open("xb") as out:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise ArtifactRefused(
                    f'the build made "{target.name}" larger than {limit >> 20} MiB; refused'
                )
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    target.chmod(_MODE_FILE)
    return size
