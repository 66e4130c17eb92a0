# SPDX-License-Identifier: GPL-2.0-or-later
"""Artifacts between this machine and the store: sent after a build, fetched before a boot; the oldest local ones are deleted for space.

Without a store all artifacts are in HOME, and nothing here copies or removes any.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from django.conf import settings

from kernels.artifacts.store import METADATA, Artifact
from kernels.errors import ArtifactCorrupt, ArtifactMissing
from kernels.files.scratch import locked
from lab.errors import LabError, StoreLacks, StoreUnreachable
from lab.storage.artifacts import (
    artifact_lock,
    artifacts_of,
    drop_artifact,
    fetch_artifact,
    in_store,
    in_use,
    send_artifact,
    unless_in_use,
)
from lab.storage.store import lab_store

log = logging.getLogger(__name__)

_Done = TypeVar("_Done")

# One part in this many of the disk, where KPERFLAB_CACHE_GIB is not set.
CACHE_SHARE = 4
# Wait for a store that is down: the boot or build is not at fault, and its attempts would be used up in seconds.
AWAY_S, PAUSE_S = 600.0, 1.0
# One line for each try would be hundreds for one cause.
SAY_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class _Kept:
    key: str
    size: int
    used_at: float


@contextmanager
def at_hand(home: Path, key: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[Artifact]:
    """An artifact on this machine, fetched from the store if it is missing, for as long as the block runs.

    Every byte of it is checked against what a machine of this lab signed: no other artifact is booted.
    Raises ArtifactMissing; ArtifactCorrupt, after the bad copy was removed wherever it was; DiskFull, StoreUnreachable, StoreRefused.
    """
    artifacts = artifacts_of(home)
    with in_use(home, key, on_wait):
        if not artifacts.has(key):
            bring(home, key, on_wait)
        try:
            artifact = artifacts.verify(key)
        except ArtifactCorrupt:
            artifacts.remove(key)
            raise
        with suppress(OSError):
            os.utime(artifact.directory / METADATA)
        yield artifact


def bring(home: Path, key: str, on_wait: Callable[[], None] = lambda: None) -> Artifact:
    """Fetch an artifact from the store, once for all processes here. Raises as at_hand."""
    artifacts, store = artifacts_of(home), lab_store()
    with locked(artifact_lock(home, f"fetch-{key}"), on_wait=on_wait):
        if store is None or artifacts.has(key):
            return artifacts.get(key)
        make_room(home)
        try:
            return _until_it_answers(lambda: fetch_artifact(store, artifacts, key, on_wait), on_wait)
        except ArtifactCorrupt:
            log.warning("artifact %s in the store is corrupt: removed there, to be built again", key[:12])
            drop_artifact(store, key)
            raise


def bring_if_there(home: Path, key: str, on_wait: Callable[[], None] = lambda: None) -> None:
    """Fetch an artifact that the store may have, to avoid building it again; a corrupt one counts as missing."""
    if lab_store() is not None and not artifacts_of(home).has(key):
        with suppress(ArtifactMissing, ArtifactCorrupt):
            bring(home, key, on_wait)


def send(home: Path, artifact: Artifact, on_wait: Callable[[], None] = lambda: None) -> None:
    """Put an artifact into the store, where there is one.

    Raises ArtifactCorrupt if it is no longer what was built, after removing it here; StoreUnreachable, StoreRefused.
    """
    store = lab_store()
    if store is None:
        return
    try:
        if sent := _until_it_answers(lambda: send_artifact(store, artifact, on_wait), on_wait):
            log.info("artifact %s sent: %.1f MiB", artifact.key[:12], sent / (1 << 20))
    except ArtifactCorrupt:
        log.warning("artifact %s on this machine is corrupt: removed, to be built again", artifact.key[:12])
        artifacts_of(home).remove(artifact.key)
        raise
    make_room(home)


def _until_it_answers(transfer: Callable[[], _Done], on_wait: Callable[[], None]) -> _Done:
    """Repeat a transfer while the store is down, for AWAY_S at most. Raises StoreUnreachable, StoreLacks, what `transfer` and `on_wait` raise."""
    began = monotonic()
    said_at: float | None = None
    while True:
        try:
            done = transfer()
        # A store that lacks what is being written is treated like one that is down.
        except (StoreUnreachable, StoreLacks) as exc:
            now = monotonic()
            if now > began + AWAY_S:
                raise
            if said_at is None or now >= said_at + SAY_AGAIN_S:
                said_at = now
                log.warning("waiting for the store: %s", exc)
            sleep(PAUSE_S)
            on_wait()
            continue
        if said_at is not None:
            log.info("the store is back after %.0f s", monotonic() - began)
        return done


def make_room(home: Path) -> int:
    """Drop artifacts that the store has and nobody uses, longest unused first, until the rest fits what this machine may keep.

    Returns the bytes freed. Nothing is dropped if there is no store, or it does not answer.
    """
    if lab_store() is None:
        return 0
    kept = sorted(_kept(home / "artifacts"), key=lambda artifact: artifact.used_at)
    over = sum(artifact.size for artifact in kept) - most_bytes(home)
    freed = 0
    for artifact in kept:
        if freed >= over:
            break
        with suppress(LabError):
            if _drop(home, artifact.key):
                freed += artifact.size
    return freed


def most_bytes(home: Path) -> int:
    """Return how many bytes of artifacts this machine may keep."""
    if settings.CACHE_GIB:
        return int(settings.CACHE_GIB * (1 << 30))
    return shutil.disk_usage(home).total // CACHE_SHARE


def _drop(home: Path, key: str) -> bool:
    """Remove an artifact here unless it is in use, or the store lacks it."""
    with unless_in_use(home, key) as free:
        if not free or not in_store(key):
            return False
        artifacts_of(home).remove(key)
        log.info("artifact %s dropped here for room; the store has it", key[:12])
        return True


def _kept(root: Path) -> Iterator[_Kept]:
    for path in root.glob(f"*/{METADATA}"):
        with suppress(OSError):
            size = sum(each.lstat().st_size for each in path.parent.rglob("*"))
            yield _Kept(path.parent.name, size, path.stat().st_mtime)
