# SPDX-License-Identifier: GPL-2.0-or-later
"""Small artifacts that no compiler made."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from kernels.artifacts.store import Artifact, ArtifactMetadata, ArtifactStore
from kernels.builds.request import local_version
from lab.storage.artifacts import NEEDED


def key_of(number: int) -> str:
    """The key of the artifact of that number."""
    return hashlib.sha256(f"artifact {number}".encode()).hexdigest()


def make_artifact(root: Path, number: int = 1, *, size: int = 3000, log: str = "CC fs/inode.o\n") -> Artifact:
    """An artifact in HOME; equal numbers are equal kernels, whose logs may differ."""
    key, drawn = key_of(number), random.Random(number)
    artifacts = ArtifactStore(root / "artifacts")
    if artifacts.has(key):
        return artifacts.get(key)
    place = root / f"made-{number}"
    (place / "modules").mkdir(parents=True)
    for name in sorted(NEEDED | {"modules/lab_bh.ko"}):
        (place / name).write_bytes(drawn.randbytes(size) + name.encode() * 50)
    (place / "build.log").write_text(log)
    (place / "config").write_text(f'CONFIG_LOCALVERSION="{number}"\n')
    metadata = ArtifactMetadata(
        release=f"6.1.192{local_version(key)}",
        tree="tiny",
        revision="1" * 40,
        tree_id="2" * 40,
        base="3" * 40,
        config_sha256="4" * 64,
        toolchain="gcc",
        toolchain_identity="5",
        code_hash="6",
        seconds_cpu=1.0,
        seconds_wall=2.0,
        layer="",
        built_at="2026-01-01T00:00:00+00:00",
    )
    return artifacts.add(key, place, metadata)


def files_of(artifact: Artifact) -> dict[str, bytes]:
    """All bytes of an artifact."""
    folder = artifact.directory
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
