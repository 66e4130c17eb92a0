# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of built kernels, addressed by the hash of everything that went into them.

An artifact appears by one rename when it is whole; until then nothing of it is in the store.
"""

from __future__ import annotations

import hashlib
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from kernels.architecture import BUILT
from kernels.artifacts.metadata import (
    METADATA,
    ArtifactMetadata,
    ArtifactRecord,
    is_signed,
    read_record,
    write_record,
)
from kernels.artifacts.signature import Seal
from kernels.artifacts.structures import FILE as STRUCTURES
from kernels.errors import ArtifactCorrupt, ArtifactMissing, ArtifactRefused
from kernels.files.scratch import remove_tree, sync_directory, write_synced

__all__ = ["METADATA", "Artifact", "ArtifactMetadata", "ArtifactRecord", "ArtifactStore"]

KEYS = "keys"
"""The folder of signing keys, beside that of the artifacts."""
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of one build."""

    key: str
    directory: Path
    metadata: ArtifactMetadata

    @property
    def image(self) -> Path:
        """Return the compressed image, for boot loaders."""
        return self.directory / BUILT.image

    @property
    def vmlinux(self) -> Path:
        """Return the ELF kernel with symbols and line tables."""
        return self.directory / "vmlinux"

    @property
    def boot_vmlinux(self) -> Path:
        """Return the ELF kernel with all but what is loaded stripped; QEMU boots it through its PVH note."""
        return self.directory / "vmlinux.boot"

    @property
    def system_map(self) -> Path:
        """Return the path of the list of addresses and symbols."""
        return self.directory / "System.map"

    @property
    def structures(self) -> Path:
        """Return the path of the fields of structures; older artifacts have no such file."""
        return self.directory / STRUCTURES

    @property
    def config(self) -> Path:
        """Return the resolved .config."""
        return self.directory / "config"

    @property
    def modules(self) -> Path:
        """Return the directory of *.ko files, the tree's own and the external ones side by side."""
        return self.directory / "modules"

    @property
    def log(self) -> Path:
        """Return the path of make's output."""
        return self.directory / "build.log"

    @property
    def reproducer(self) -> Path:
        """Return a script that builds the same bytes from a checkout of the base."""
        return self.directory / "reproducer.sh"


class ArtifactStore:
    """Artifacts under one directory, each in `<root>/<key>`, signed when it was built.

    seal: the key that signs here, and the keys that are accepted; only this machine's if None.
    """

    def __init__(self, root: Path, seal: Seal | None = None) -> None:
        self.root = root
        self.seal = seal or Seal(root.parent / KEYS)

    def has(self, key: str) -> bool:
        """Return whether get would find it; artifacts from before signing do not count."""
        try:
            return bool(_KEY.fullmatch(key)) and is_signed((self.root / key / METADATA).read_bytes())
        except OSError:
            return False

    def get(self, key: str) -> Artifact:
        """Return the artifact of a key.

        Raises ArtifactMissing, or ArtifactCorrupt where no machine of ours signed it or a file has another size.
        """
        if not self.has(key):
            raise ArtifactMissing(f"no artifact {key[:12]} under {self.root}; build it again")
        directory = self.root / key
        record = self.record(key)
        for name, (size, _) in record.files.items():
            if _size(directory / name) != size:
                raise _corrupt(directory, name)
        return Artifact(key, directory, record.metadata)

    def record(self, key: str) -> ArtifactRecord:
        """Return the contents of an artifact's metadata.json without checking its files. Raises ArtifactCorrupt."""
        directory = self.root / key
        try:
            return read_record((directory / METADATA).read_bytes(), key, self.seal)
        except ValueError as exc:
            raise _corrupt(directory, METADATA, str(exc)) from exc
        except OSError as exc:
            raise _corrupt(directory, METADATA) from exc

    def checksums(self, key: str) -> dict[str, str]:
        """Return the SHA-256 of each file as it was built, by its path. Raises as get."""
        self.get(key)
        return {name: digest for name, (_, digest) in self.record(key).files.items()}

    def verify(self, key: str) -> Artifact:
        """Return the artifact of a key, after a check of every file's bytes. Raises as get."""
        artifact = self.get(key)
        for name, digest in self.checksums(key).items():
            if sha256_of(artifact.directory / name) != digest:
                raise _corrupt(artifact.directory, name)
        return artifact

    def add(self, key: str, directory: Path, metadata: ArtifactMetadata) -> Artifact:
        """Sign a directory of finished files (from take_files.take) and move it in under the key, atomically.

        It must be on the same file system. If the key exists already, that artifact stays. Raises HostUnfit.
        """
        names = [path for path in sorted(directory.rglob("*")) if path.is_file()]
        files = {str(path.relative_to(directory)): (_size(path), sha256_of(path)) for path in names}
        record = ArtifactRecord(metadata, files)
        write_synced(directory / METADATA, write_record(key, record, self.seal))
        return self.adopt(key, directory)

    def adopt(self, key: str, directory: Path) -> Artifact:
        """Move a directory with a complete artifact into the store under its key, atomically; an existing one stays."""
        if not _KEY.fullmatch(key):
            raise ArtifactRefused(f'"{key[:80]}" is not an artifact key')
        self.root.mkdir(parents=True, exist_ok=True)
        sync_directory(directory)
        try:
            directory.rename(self.root / key)
        except OSError:
            if not self.has(key):  # an artifact from before signing, or an incomplete one
                self.remove(key)
                directory.rename(self.root / key)
            # else another process was first
        sync_directory(self.root)
        return self.get(key)

    def remove(self, key: str) -> None:
        """Forget an artifact; nothing happens when there is none."""
        if _KEY.fullmatch(key):
            remove_tree(self.root / key)


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def sha256_of(path: Path) -> str:
    """Return the checksum of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _corrupt(directory: Path, name: str, why: str = "") -> ArtifactCorrupt:
    reason = f": {why}" if why else ""
    return ArtifactCorrupt(
        f"{directory / name} is not what was built{reason}; remove {directory} and build again"
    )
