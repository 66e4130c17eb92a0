# SPDX-License-Identifier: GPL-2.0-or-later
"""The layers below a build: whole source trees, and the object directories of base builds.

Both are only ever read by the builds above them: each build writes to an overlay of its own, so a
variant costs what it changes, and dropping its overlay undoes it at no cost.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from kernels.artifacts.structures import FILE as STRUCTURES
from kernels.artifacts.structures import Structures, read_structures
from kernels.errors import DiskFull, LockBusy
from kernels.files.beneath import Beneath
from kernels.files.scratch import free_bytes, locked, patiently, scratch, sync_directory
from kernels.processes.environment import minimal
from kernels.sandbox.command import Layer, build_owner
from kernels.trees.extract import extract_changes, extract_tree
from kernels.trees.tree import SourceTree

# Sizes on disk, rounded up: 6.12's sources; the objects and artifact of a build from nothing.
SOURCE_BYTES = 2 << 30
COLD_BYTES = 2 << 30
VARIANT_BYTES = 512 << 20
# make compares times: sources must be older than every object, even if they are extracted again later.
_SOURCE_TIME_NS = 1_000_000_000 * 10**9
_SYNC_S = 600.0
_FOLDER, _FILE = 0o755, 0o644


class Layers:
    """Sources under `<home>/sources/<tree>-<tree id>`, objects of bases under `<home>/objects/<layer key>`."""

    def __init__(self, home: Path) -> None:
        self.sources = home / "sources"
        self.objects = home / "objects"
        self.scratch = self.objects / "tmp"

    def lock(self, name: str) -> Path:
        """Return the lock file for a name."""
        return self.objects / "locks" / name

    def objects_of(self, layer: str) -> Path:
        """Return the object directory of a base build; it may not be there."""
        return self.objects / layer / "obj"

    def has(self, layer: str) -> bool:
        """Return whether this base build's objects exist."""
        return self.objects_of(layer).is_dir()

    def is_ahead(self, layer: str) -> bool:
        """Return whether a layer was made later than now."""
        return self.has(layer) and self.objects_of(layer).stat().st_mtime > time.time() + 1

    def keep(self, layer: str, objects: Path, notes: Mapping[str, str], on_wait: Callable[[], None]) -> None:
        """Make a finished object directory the layer, atomically; it must be on the same file system. notes: texts of files beside it."""
        staged = objects.parent / "layer"
        staged.mkdir()
        objects.rename(staged / "obj")
        # newer_than() takes this for the newest time of all, and nothing is made after it. A file may have a later time than ours if the
        # clock was set back meanwhile.
        newest = max(time.time_ns(), *_file_times(staged / "obj"))
        os.utime(staged / "obj", ns=(newest, newest))
        for name, text in notes.items():
            (staged / name).write_text(text)
        patiently(partial(_sync, staged), on_wait)
        staged.rename(self.objects / layer)
        sync_directory(self.objects)

    def make_room(self, size: int, what: str, *, spare: int = 0) -> int:
        """Ensure that `size` bytes are free, and return how many layers and sources were removed: unused ones, longest unused first.

        spare: bytes that should be free, if possible. Raises DiskFull, and removes nothing, if even all of them are too small for `size`.
        """
        free, dropped = free_bytes(self.objects), 0
        kept = sorted(self._droppable()) if free < max(size, spare) else []
        most = free + sum(bytes_taken(place) for *_, place in kept)
        wanted = next((each for each in (max(size, spare), size) if each <= most), 0)
        for _, lock, place in kept:
            if free_bytes(self.objects) >= wanted:
                break
            with contextlib.suppress(LockBusy), locked(lock, seconds=0), scratch(self.scratch) as own:
                if place.exists():  # else another build has just removed it
                    # Renamed first, in one step: half of a layer would spoil the builds above it.
                    place.rename(own / "dropped")
                    dropped += 1
        need_room(self.objects, size, what)
        return dropped

    def _droppable(self) -> Iterator[tuple[float, Path, Path]]:
        """Yield, for each layer and source, the time it was last locked, its lock and its directory."""
        layers = [(f"layer-{path.parent.name}", path.parent) for path in self.objects.glob("*/obj")]
        sources = [(f"source-{path.name}", path) for path in self.sources.glob("*")]
        for name, place in (*layers, *sources):
            lock = self.lock(name)
            # Each use opens the lock for writing, which sets its time.
            yield (lock.stat().st_mtime if lock.exists() else 0.0), lock, place

    def structures(self, layer: str) -> Structures | None:
        """Return the structures of a base build; None if they were never looked for."""
        return read_structures(self.objects / layer / STRUCTURES)

    def keep_structures(self, layer: str, structures: Structures | None) -> None:
        """Keep the structures of a base that was built before layers had any, for its variants."""
        if structures is None:
            return
        part = self.objects / layer / f".{STRUCTURES}.{os.getpid()}"
        part.write_text(structures.model_dump_json())
        part.rename(self.objects / layer / STRUCTURES)

    @contextlib.contextmanager
    def source(self, tree: SourceTree, tree_id: str, on_wait: Callable[[], None]) -> Iterator[Path]:
        """Yield a tree's files on disk, extracted if missing, and locked while in use. Raises DiskFull.

        Files extracted from one repository are never used for another.
        """
        path = self.sources / f"{tree.name}-{tree_id}"
        lock = self.lock(f"source-{path.name}")
        while True:
            with locked(lock, shared=True, on_wait=on_wait):
                if path.is_dir():
                    yield path
                    return
            with locked(lock, on_wait=on_wait):
                if not path.is_dir():
                    patiently(partial(self._extract, tree, tree_id, path), on_wait)

    def _extract(self, tree: SourceTree, tree_id: str, path: Path) -> None:
        self.make_room(SOURCE_BYTES, f"the sources of {tree.name}")
        self.sources.mkdir(parents=True, exist_ok=True)
        with scratch(self.scratch) as own:
            extract_tree(tree, tree_id, own / "tree")
            _settle(own / "tree")
            _sync(own / "tree")
            (own / "tree").rename(path)


def over_base(
    tree: SourceTree, lower: Path, base_tree_id: str, tree_id: str, upper: Path, stamp: float = 0.0
) -> Layer:
    """Return the source layer of a variant: its changed files, and marks for deleted ones, above the base.

    stamp: the changed files' time, see newer_than; 0 leaves it.
    """
    if tree_id == base_tree_id:
        return Layer(lower)
    upper.mkdir(mode=0o755)
    changed = extract_changes(tree, base_tree_id, tree_id, upper)
    with Beneath(upper) as place:
        for file in changed:
            if file.deleted:
                place.mark_absent(file.path)
            elif stamp:
                place.set_time(file.path, stamp)
    return Layer(lower, upper)


def newer_than(objects: Path) -> float:
    """Return a time later than that of every object that make compares, even if our clock was set back."""
    return max(time.time(), objects.stat().st_mtime + 1)


def own_directory(path: Path) -> Path:
    """Return a new directory that belongs to the build user."""
    path.mkdir()
    hand_over(path)
    return path


def hand_over(path: Path) -> None:
    """Give a file or directory to the build user."""
    if os.geteuid() == 0:
        os.chown(path, *build_owner(), follow_symlinks=False)


def need_room(path: Path, size: int, what: str) -> None:
    """Raise DiskFull unless there are `size` bytes free where path is."""
    free = free_bytes(path)
    if free < size:
        raise DiskFull(
            f"{what} need {size / (1 << 30):.1f} GiB free under {path.parent}, there are {free / (1 << 30):.1f} GiB; "
            "free some space, or set KPERFLAB_HOME to a larger disk"
        )


def bytes_taken(top: Path) -> int:
    """Return the bytes that a directory takes on its disk, without what is removed meanwhile."""
    size = 0
    with contextlib.suppress(FileNotFoundError):
        for _, _, files, descriptor in os.fwalk(top):
            for name in files:
                size += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_blocks * 512
    return size


def _file_times(top: Path) -> Iterator[int]:
    """Yield the time of each file below a directory, in nanoseconds."""
    for _, _, files, descriptor in os.fwalk(top):
        for name in files:
            yield os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime_ns


def _sync(folder: Path) -> None:
    """Write a folder to the disk: one that is half written after a power cut would spoil every build above it."""
    subprocess.run(["sync", "-f", str(folder)], check=True, timeout=_SYNC_S, env=minimal())


def _settle(top: Path) -> None:
    """Give all files an old time, and make them readable for the build user whatever our umask was."""
    top.chmod(_FOLDER)
    for _, folders, files, descriptor in os.fwalk(top):
        for name in (*folders, *files):
            mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            if not stat.S_ISLNK(mode):
                os.chmod(name, _FOLDER if mode & 0o111 else _FILE, dir_fd=descriptor)
            os.utime(name, ns=(_SOURCE_TIME_NS,) * 2, dir_fd=descriptor, follow_symlinks=False)
