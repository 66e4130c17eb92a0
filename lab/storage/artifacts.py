# SPDX-License-Identifier: GPL-2.0-or-later
"""Artifacts in the store: sent file by file, their metadata last; fetched whole and checked, or not at all.

A file lies under the SHA-256 of its bytes, so that two workers that made the same kernel cannot mix their files: logs differ.
All but bzImage are compressed: of debian-6.1's 72 MB with the guest's config 24 are sent.
"""

import errno
import fcntl
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kernels.architecture import BUILT
from kernels.artifacts.metadata import read_record
from kernels.artifacts.signature import Seal
from kernels.artifacts.store import KEYS, METADATA, Artifact, ArtifactRecord, ArtifactStore, sha256_of
from kernels.errors import ArtifactCorrupt, ArtifactMissing, DiskFull
from kernels.files.scratch import free_bytes, locked, remove_leftovers, scratch
from kernels.sandbox.take_files import FOLDER
from lab.errors import StoreLacks
from lab.storage.signing_keys import is_ours
from lab.storage.store import Store, lab_store

# Compressed by the kernel's own makefile.
PACKED_ALREADY = frozenset({BUILT.image})
# Without these there is nothing to boot and nothing to say about it.
NEEDED = frozenset(
    {BUILT.image, "config", "build.log", "reproducer.sh", "System.map", "vmlinux", "vmlinux.boot"}
)
# The files that pages show of an artifact that is not on their machine.
PAPERS = frozenset({"config", "build.log", "reproducer.sh"})
MOST_METADATA = 8 << 20
_CHUNK = 1 << 20
_GZIP = 31
_COMING = ".coming"
# Room that is left to others while an artifact is fetched.
_SPARE = 64 << 20


def artifacts_of(home: Path) -> ArtifactStore:
    """Return the artifacts of a state root; those that any machine of this lab signed count, unless its key was revoked."""
    return ArtifactStore(home / "artifacts", Seal(home / KEYS, is_ours))


def recorded(artifact: Artifact) -> ArtifactRecord:
    """Return what an artifact's metadata says, wherever below a state root it lies. Raises ArtifactCorrupt."""
    root = artifact.directory.parent
    return ArtifactStore(root, artifacts_of(root.parent).seal).record(artifact.key)


def name_in_store(key: str, digest: str = "") -> str:
    """Return the name of an artifact's file in the store; metadata has no digest."""
    return f"artifacts/{key}/{digest or METADATA}"


def in_store(key: str) -> bool:
    """Return whether there is a store, and it has the artifact."""
    store = lab_store()
    return bool(key) and store is not None and store.has(name_in_store(key))


def is_kept(key: str, root: Path) -> bool:
    """Return whether an artifact is here or in the store. root: the state root."""
    return artifacts_of(root).has(key) or in_store(key)


def send_artifact(store: Store, artifact: Artifact, on_wait: Callable[[], None] = lambda: None) -> int:
    """Send an artifact that the store lacks; returns the bytes sent, 0 where it was there.

    Raises ArtifactCorrupt where a file is not what was built, and what the store raises.
    """
    if store.has(name_in_store(artifact.key)):
        return 0
    data, sent = (artifact.directory / METADATA).read_bytes(), 0
    for name, (_, digest) in recorded(artifact).files.items():
        on_wait()
        with _packed(artifact.directory, name, digest) as file:
            sent += file.seek(0, 2)
            file.seek(0)
            store.put(name_in_store(artifact.key, digest), file)
    store.put(name_in_store(artifact.key), data)
    return sent + len(data)


def fetch_artifact(
    store: Store, artifacts: ArtifactStore, key: str, on_wait: Callable[[], None] = lambda: None
) -> Artifact:
    """Bring an artifact here, every byte checked; it appears at once and whole.

    Raises ArtifactMissing, ArtifactCorrupt where the store's files are not what was built, DiskFull, and what the store raises.
    """
    data, record = _record(store, key, artifacts.seal)
    if lacking := sorted(NEEDED - set(record.files)):
        raise _corrupt(store, key, f"it has no {lacking[0]}")
    with _room(artifacts.root, sum(size for size, _ in record.files.values())) as place:
        (place / "artifact").mkdir(mode=0o755)
        (place / "artifact" / FOLDER).mkdir(mode=0o755)
        _bring(store, key, record, frozenset(record.files), place / "artifact", on_wait)
        (place / "artifact" / METADATA).write_bytes(data)
        return artifacts.adopt(key, place / "artifact")


def fetch_papers(store: Store, folder: Path, key: str) -> Artifact:
    """Bring an artifact's config, log and script to `<folder>/<key>`, for machines that boot nothing. Raises as fetch_artifact."""
    papers = ArtifactStore(folder, artifacts_of(folder.parent).seal)
    if not papers.has(key):
        data, record = _record(store, key, papers.seal)
        with _room(folder, 0) as place:
            (place / "papers").mkdir(mode=0o755)
            _bring(store, key, record, PAPERS & set(record.files), place / "papers", lambda: None)
            (place / "papers" / METADATA).write_bytes(data)
            try:
                (place / "papers").rename(folder / key)
            except OSError:  # another process was first
                if not papers.has(key):
                    raise
    return Artifact(key, folder / key, papers.record(key).metadata)


def fetch_kernel(store: Store, folder: Path, key: str) -> Path:
    """Bring an artifact's bzImage beside its papers, for a host that hands it to a machine. Raises as fetch_artifact."""
    artifact = fetch_papers(store, folder, key)
    path = artifact.image
    if not path.is_file():
        record = recorded(artifact)
        with _room(folder, record.files[path.name][0]) as place:
            _bring(store, key, record, frozenset({path.name}), place, lambda: None)
            (place / path.name).rename(path)
    return path


def drop_artifact(store: Store, key: str) -> int:
    """Remove an artifact from the store, its metadata first: from then on it is not there. Returns the bytes freed."""
    store.remove(name_in_store(key))
    freed = 0
    for entry in list(store.entries(f"artifacts/{key}")):
        store.remove(entry.name)
        freed += entry.size
    return freed


def _record(store: Store, key: str, seal: Seal) -> tuple[bytes, ArtifactRecord]:
    try:
        data = store.read(name_in_store(key), MOST_METADATA + 1)
    except StoreLacks as exc:
        raise ArtifactMissing(
            f"neither this machine nor the store has artifact {key[:12]}; build it again"
        ) from exc
    try:
        if len(data) > MOST_METADATA:
            raise ValueError("it is too long")
        return data, read_record(data, key, seal)
    except ValueError as exc:
        raise _corrupt(store, key, f"{METADATA}: {exc}") from exc


def _bring(
    store: Store,
    key: str,
    record: ArtifactRecord,
    names: frozenset[str],
    place: Path,
    on_wait: Callable[[], None],
) -> None:
    for name in sorted(names):
        size, digest = record.files[name]
        try:
            with store.reading(name_in_store(key, digest)) as stream, (place / name).open("xb") as out:
                _unpack(stream.read, out, name, size, on_wait)
            actual = sha256_of(place / name)
        except StoreLacks as exc:
            if not store.has(name_in_store(key)):  # removed meanwhile
                raise ArtifactMissing(
                    f"artifact {key[:12]} was just removed from the store; build it again"
                ) from exc
            raise _corrupt(store, key, f"{name} is not there") from exc
        except (zlib.error, ValueError) as exc:
            raise _corrupt(store, key, f"{name}: {exc}") from exc
        if actual != digest:
            raise _corrupt(store, key, f"{name} differs from what was built")
        (place / name).chmod(0o644)


def _unpack(
    read: Callable[[int], bytes], out: IO[bytes], name: str, size: int, on_wait: Callable[[], None]
) -> None:
    """Write the content of a file of the store, exactly `size` bytes. Raises ValueError for more or fewer, zlib.error."""
    inflater = None if name in PACKED_ALREADY else zlib.decompressobj(_GZIP)
    left = size
    while piece := read(_CHUNK):
        on_wait()
        while piece:
            plain = piece if inflater is None else inflater.decompress(piece, left + 1)
            left -= len(plain)
            if left < 0:
                raise ValueError(f"it is longer than the {size} bytes that were built")
            out.write(plain)
            piece = b"" if inflater is None else inflater.unconsumed_tail
    if left or (inflater is not None and not inflater.eof):
        raise ValueError(f"it ends {left} bytes early")
    out.flush()
    os.fsync(out.fileno())


@contextmanager
def _packed(directory: Path, name: str, digest: str) -> Iterator[IO[bytes]]:
    """A temporary file of what goes into the store. Raises ArtifactCorrupt where the bytes are not the digest's."""
    hashed = hashlib.sha256()
    with (directory / name).open("rb") as file, tempfile.TemporaryFile(prefix="kperflab-send-") as out:
        # Level 1, no time in the head: equal bytes are equal in the store, too.
        deflater = None if name in PACKED_ALREADY else zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
            out.write(deflater.compress(chunk) if deflater else chunk)
        out.write(deflater.flush() if deflater else b"")
        if hashed.hexdigest() != digest:
            raise ArtifactCorrupt(f"{directory / name} is not what was built; the kernel must be rebuilt")
        out.seek(0)
        yield out


@contextmanager
def _room(root: Path, size: int) -> Iterator[Path]:
    """Yield a temporary folder beside the artifacts to receive one. Raises DiskFull if there is, or will be, too little room."""
    free = free_bytes(root)
    if free < size + _SPARE:
        raise DiskFull(
            f"an artifact needs {size >> 20} MiB under {root}, there are {free >> 20} MiB free; free some space"
        )
    try:
        remove_leftovers(root / _COMING)
        with scratch(root / _COMING) as place:
            yield place
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"the disk of {root} filled up while an artifact was received; free some space"
            ) from exc
        raise


def _corrupt(store: Store, key: str, why: str) -> ArtifactCorrupt:
    return ArtifactCorrupt(f"artifact {key[:12]} in the store {store.address} is not what was built: {why}")


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
    """Yield whether no process here uses an artifact; if so, none can begin to during the block."""
    path = artifact_lock(home, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
