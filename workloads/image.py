# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden ext4 images: one per shape, the same bytes on every machine.

A run gets an overlay of the image, so that every run starts from equal bytes.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workloads.environment import minimal
from workloads.errors import GuestNotMade
from workloads.guest.plan import DiskShape

_BLOCK = 4096
_INODE_SIZE = 256
_RECIPE = 1  # raise it when the way images are made changes: cached ones are then made again
# Everything that mke2fs would otherwise draw at random or take from the clock.
_UUID = "6b706572-666c-6162-0000-000000000001"
_TIME = "1718127677"  # of the mail that asked for this tree
_MINUTES_PER_MILLION = 10
_RESERVED_INODES = 11  # 1 to 10, and lost+found
# The features for ext4 in Debian's mke2fs.conf; written down, because that file differs between machines.
_FEATURES = (
    "has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,"
    "sparse_super,large_file,huge_file,dir_nlink,extra_isize,metadata_csum"
)


def _own_inodes(shape: DiskShape) -> int:
    return shape.threads * (1 + shape.dirs * (1 + shape.files))


def inode_count(shape: DiskShape) -> int:
    """Return the value of mke2fs -N: a fifth more than the files, like the mail's 24 million for 20 million.

    It is never less than the tree's own inodes, lost+found and the reserved ones.
    """
    return max(shape.threads * shape.dirs * shape.files * 12 // 10, _own_inodes(shape) + 64)


def image_bytes(shape: DiskShape) -> int:
    """Size of the file system in bytes: inode table, directories, journal and a reserve."""
    per_dir = -(-shape.files * 24 // (_BLOCK * 3 // 4)) + 3  # entries of 16 to 20 bytes, index blocks
    tree = shape.threads * (shape.dirs * per_dir + shape.dirs // 100 + 4) * _BLOCK
    size = inode_count(shape) * _INODE_SIZE + tree + (24 << 20)
    return -(-size * 21 // 20 // (1 << 20)) * (1 << 20)


def image_name(shape: DiskShape) -> str:
    """Return a file name that contains the shape and a hash of it with the recipe's version."""
    text = f"{_RECIPE}:{shape!r}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{shape.kind}-{shape.threads}x{shape.dirs}x{shape.files}-{digest}.ext4"


def build_image(shape: DiskShape, root: Path) -> Path:
    """The raw ext4 image of a shape, made at first use and never written again.

    root: the state directory's `images/`. Raises GuestNotMade (a shape without files,
    a full disk, an mke2fs that fails).
    """
    if min(shape.threads, shape.dirs, shape.files) < 1:
        raise GuestNotMade(
            f"a {shape.kind} disk needs at least one thread, directory and file, not {shape!r}"
        )
    root.mkdir(parents=True, exist_ok=True)
    image = root / image_name(shape)
    if image.exists():
        return image
    with _only_builder(root / (image.name + ".lock")):
        if not image.exists():  # another process may have made it while this one waited
            _make(shape, image)
    return image


@contextmanager
def _only_builder(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make(shape: DiskShape, image: Path) -> None:
    making = f"making-{image.name}-"
    # Only one process makes this image at a time, so what is there was left by one that was killed.
    for left in image.parent.glob(f"{making}*"):
        shutil.rmtree(left, ignore_errors=True)
    free = os.statvfs(image.parent)
    if free.f_bavail * free.f_frsize < image_bytes(shape):
        raise GuestNotMade(
            f"no room for the {shape.threads}×{shape.dirs}×{shape.files} disk: "
            f"{image_bytes(shape) >> 20} MiB are needed in {image.parent}"
        )
    try:
        with tempfile.TemporaryDirectory(dir=image.parent, prefix=making) as place:
            unfinished, script = Path(place, "image"), Path(place, "script")
            with script.open("w") as lines:
                lines.writelines(_debugfs_script(shape))
            _format(shape, script, unfinished)
            unfinished.chmod(0o444)
            unfinished.rename(image)
    except OSError as exc:
        raise GuestNotMade(f"cannot make the disk {image.name}: {exc}") from exc


def _debugfs_script(shape: DiskShape) -> Iterator[str]:
    """Yield the commands that create the tree inside the image, without a host directory.

    `mke2fs -d` would need all files on the host first, and copies their times and owners.
    """
    yield f"set_current_time @{_TIME}\n"
    for thread in range(shape.threads):
        yield f"mkdir /t{thread}\n"
        for directory in range(shape.dirs):
            path = f"/t{thread}/d{directory}"
            yield f"mkdir {path}\ncd {path}\n"
            yield from (f"write /dev/null f{file}\n" for file in range(shape.files))
            yield "cd /\n"


def _format(shape: DiskShape, script: Path, image: Path) -> None:
    deadline = 120 + 60 * _MINUTES_PER_MILLION * shape.threads * shape.dirs * shape.files / 1e6
    blocks = image_bytes(shape) // _BLOCK
    # No lazy initialisation: its kernel thread would write while the guest measures.
    extended = f"hash_seed={_UUID},lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
    make = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", _FEATURES, "-b", str(_BLOCK), "-I", str(_INODE_SIZE)]
    make += ["-m", "0", "-J", "size=4", "-N", str(inode_count(shape)), "-U", _UUID, "-E", extended]
    _run([*make, str(image), str(blocks)], deadline)
    _run(["debugfs", "-w", "-f", str(script), str(image)], deadline)
    # debugfs makes linear directories; the kernel would have indexed directories of this size (dir_index).
    report = _run(["e2fsck", "-f", "-y", "-D", str(image)], deadline, good=(0, 1))
    # debugfs exits with 0 even after errors, so the inodes are counted.
    want = _own_inodes(shape) + _RESERVED_INODES
    match = re.search(r": (\d+)/\d+ files", report)
    if not match or int(match[1]) != want:
        raise GuestNotMade(
            f"the disk {image.name} holds {match and match[1]} inodes instead of {want}", report
        )


def _environment() -> dict[str, str]:
    return minimal(E2FSPROGS_FAKE_TIME=_TIME, E2FSCK_TIME=_TIME, MKE2FS_CONFIG="/dev/null")


def _run(argv: list[str], deadline: float, good: tuple[int, ...] = (0,)) -> str:
    """Run a tool and return its output; for debugfs, which echoes every command, only its errors."""
    chatty = argv[0] == "debugfs"
    try:
        done = subprocess.run(
            argv,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if chatty else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=deadline,
        )
    except FileNotFoundError as exc:
        raise GuestNotMade(f"{argv[0]} is not installed; install the Debian package e2fsprogs") from exc
    except subprocess.TimeoutExpired as exc:
        raise GuestNotMade(f"{argv[0]} did not end within {deadline:.0f} s") from exc
    said = (done.stdout or "") + done.stderr
    if done.returncode not in good:
        raise GuestNotMade(f"{argv[0]} ended with status {done.returncode}", detail=said)
    return said
