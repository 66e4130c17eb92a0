# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of built kernels, addressed by the hash of everything that went into them.

An artifact appears by one rename when it is whole; until then nothing of it is in the store.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kernels.errors import ArtifactCorrupt, ArtifactMissing, ArtifactRefused
from kernels.handout import FOLDER, MAX_FILE, MAX_FILES, MAX_TOTAL, PLAIN_NAME
from kernels.scratch import remove_tree, sync_directory, write_synced

METADATA = "metadata.json"
_FORMAT = 1
_KEY = re.compile(r"[0-9a-f]{64}")
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class ArtifactMetadata:
    """What a build was made of and how it went.

    release: what `uname -r` says in it. revision: commit. code_hash: equal for kernels whose loaded
    code and data are equal but for the release. layer: the base's build it was built over, "" if
    from nothing. Seconds are those of this build alone.
    """

    release: str
    tree: str
    revision: str
    tree_id: str
    base: str
    config_sha256: str
    toolchain: str
    toolchain_identity: str
    code_hash: str
    seconds_cpu: float
    seconds_wall: float
    layer: str
    built_at: str


@dataclass(frozen=True, slots=True)
class ArtifactRecord:
    """What metadata.json says. files: size in bytes and SHA-256 of each, by its path in the artifact."""

    metadata: ArtifactMetadata
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of one build."""

    key: str
    directory: Path
    metadata: ArtifactMetadata

    @property
    def bzimage(self) -> Path:
        """The compressed image, for boot loaders."""
        return self.directory / "bzImage"

    @property
    def vmlinux(self) -> Path:
        """The ELF kernel with symbols and line tables."""
        return self.directory / "vmlinux"

    @property
    def boot_vmlinux(self) -> Path:
        """The ELF kernel with all but what is loaded stripped; QEMU boots it through its PVH note."""
        return self.directory / "vmlinux.boot"

    @property
    def system_map(self) -> Path:
        """Addresses and symbols."""
        return self.directory / "System.map"

    @property
    def config(self) -> Path:
        """The resolved .config."""
        return self.directory / "config"

    @property
    def modules(self) -> Path:
        """The directory of *.ko files, the tree's own and the external ones side by side."""
        return self.directory / "modules"

    @property
    def log(self) -> Path:
        """What make printed."""
        return self.directory / "build.log"

    @property
    def reproducer(self) -> Path:
        """A script that builds the same bytes from a checkout of the base."""
        return self.directory / "reproducer.sh"


class ArtifactStore:
    """Artifacts under one directory, each in `<root>/<key>`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def has(self, key: str) -> bool:
        """Whether get would find it."""
        return bool(_KEY.fullmatch(key)) and (self.root / key / METADATA).is_file()

    def get(self, key: str) -> Artifact:
        """The artifact of a key. Raises ArtifactMissing, or ArtifactCorrupt when a file has another size."""
        if not self.has(key):
            raise ArtifactMissing(f"no artifact {key[:12]} under {self.root}; build it again")
        directory = self.root / key
        record = self.record(key)
        for name, (size, _) in record.files.items():
            if _size(directory / name) != size:
                raise _corrupt(directory, name)
        return Artifact(key, directory, record.metadata)

    def record(self, key: str) -> ArtifactRecord:
        """What an artifact's metadata.json says; its files are not looked at. Raises ArtifactCorrupt."""
        directory = self.root / key
        try:
            return read_record((directory / METADATA).read_bytes())
        except (ValueError, OSError) as exc:
            raise _corrupt(directory, METADATA) from exc

    def checksums(self, key: str) -> dict[str, str]:
        """The SHA-256 of each file as it was built, by its path. Raises as get."""
        self.get(key)
        return {name: digest for name, (_, digest) in self.record(key).files.items()}

    def verify(self, key: str) -> Artifact:
        """As get, and every file still has the bytes it came with. Raises as get."""
        artifact = self.get(key)
        for name, digest in self.checksums(key).items():
            if _sha256(artifact.directory / name) != digest:
                raise _corrupt(artifact.directory, name)
        return artifact

    def add(self, key: str, directory: Path, metadata: ArtifactMetadata) -> Artifact:
        """Move a directory of finished files (from handout.take) in under the key, at once.

        It must be on the same file system. If the key is there already, that artifact stays.
        """
        if not _KEY.fullmatch(key):
            raise ArtifactRefused(f'"{key[:80]}" is no artifact key')
        self.root.mkdir(parents=True, exist_ok=True)
        names = [path for path in sorted(directory.rglob("*")) if path.is_file()]
        files = {str(path.relative_to(directory)): (_size(path), _sha256(path)) for path in names}
        record = {"format": _FORMAT, "metadata": asdict(metadata), "files": files}
        write_synced(directory / METADATA, json.dumps(record, indent=1).encode())
        return self.adopt(key, directory)

    def adopt(self, key: str, directory: Path) -> Artifact:
        """Move a directory that holds a whole artifact in under the key, at once; one that is there already stays."""
        if not _KEY.fullmatch(key):
            raise ArtifactRefused(f'"{key[:80]}" is no artifact key')
        self.root.mkdir(parents=True, exist_ok=True)
        sync_directory(directory)
        try:
            directory.rename(self.root / key)
        except OSError:  # another process was first
            if not self.has(key):
                raise
        sync_directory(self.root)
        return self.get(key)

    def remove(self, key: str) -> None:
        """Forget an artifact; nothing happens when there is none."""
        if _KEY.fullmatch(key):
            remove_tree(self.root / key)


def read_record(data: bytes) -> ArtifactRecord:
    """Read a metadata.json that anybody may have written.

    Raises ValueError for what no build of ours says: names that lead elsewhere, or more and larger files than a build hands out.
    """
    try:
        found = json.loads(data)
        given, listed = found["metadata"], found["files"]
        wanted = {field.name: str if field.type == "str" else float for field in fields(ArtifactMetadata)}
        if not isinstance(given, dict) or set(given) != set(wanted) or not isinstance(listed, dict):
            raise ValueError("it says other things than a build does")
        told: dict[str, Any] = {name: _of_kind(given[name], kind) for name, kind in wanted.items()}
        files = {name: (size, digest) for name, (size, digest) in listed.items()}
    except (TypeError, KeyError, RecursionError) as exc:
        raise ValueError("it is not a build's") from exc
    if len(files) > MAX_FILES:
        raise ValueError(f"it lists {len(files)} files")
    for name, (size, digest) in files.items():
        if not PLAIN_NAME.fullmatch(name.removeprefix(f"{FOLDER}/")) or name in (METADATA, FOLDER):
            raise ValueError(f"it lists {name[:80]!a}")
        if type(size) is not int or not 0 <= size <= MAX_FILE or not isinstance(digest, str):
            raise ValueError(f"it gives {name[:80]!a} no size and hash")
        if not _KEY.fullmatch(digest):
            raise ValueError(f"it gives {name[:80]!a} no SHA-256")
    if sum(size for size, _ in files.values()) > MAX_TOTAL:
        raise ValueError("it lists more bytes than a build hands out")
    return ArtifactRecord(ArtifactMetadata(**told), files)


def _of_kind(value: object, kind: type) -> object:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str) and len(value) <= _LONGEST:
        return value
    raise ValueError("it says something of another kind than a build does")


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _corrupt(directory: Path, name: str) -> ArtifactCorrupt:
    return ArtifactCorrupt(f"{directory / name} is not what was built; remove {directory} and build again")
