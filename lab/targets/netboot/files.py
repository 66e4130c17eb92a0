# SPDX-License-Identifier: GPL-2.0-or-later
"""The two files a machine boots from: on this host, or in the store."""

import logging
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from kernels.architecture import BUILT
from lab.errors import LabError, StoreLacks
from lab.storage.artifacts import fetch_kernel
from lab.storage.store import Store, lab_store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BootFile:
    """A file that is read in parts. place: a path of this host, or a name in the store."""

    size: int
    place: Path | str

    def read(self, start: int, length: int) -> bytes:
        """At most `length` bytes from a place on. Raises what the store raises."""
        if isinstance(self.place, Path):
            with self.place.open("rb") as file:
                file.seek(start)
                return file.read(length)
        store = lab_store()
        if store is None:
            raise StoreLacks(f"there is no store to read {self.place} from")
        return store.part(self.place, start, length)[0]


def kernel_file(key: str) -> BootFile:
    """Return an artifact's bzImage, checked where it comes from the store.

    Raises StoreLacks where it is nowhere, ArtifactCorrupt, DiskFull, and what the store raises.
    """
    here = settings.HOME / "artifacts" / key / BUILT.image
    if here.is_file():
        return BootFile(here.stat().st_size, here)
    path = fetch_kernel(_store(f"artifact {key[:12]}"), settings.HOME / "papers", key)
    return BootFile(path.stat().st_size, path)


def initrd_file(name: str) -> BootFile:
    """A run's initrd. Raises as kernel_file."""
    here = settings.HOME / name
    if here.is_file():
        return BootFile(here.stat().st_size, here)
    return BootFile(_store(name).part(name, 0, 1)[1], name)


def offer_initrd(name: str) -> None:
    """Put a run's initrd into the store, where there is one, since the web server may run on another host."""
    store = lab_store()
    if store is not None:
        with (settings.HOME / name).open("rb") as file:
            store.put(name, file)


def withdraw_initrd(name: str) -> None:
    """Remove a run's initrd from the store; where the store does not answer, it goes with the run's other files."""
    try:
        store = lab_store()
        if store is not None:
            store.remove(name)
    except LabError as exc:
        # Raised, it would take the place of what became of the boot.
        log.warning("%s stays in the store for now: %s", name, exc)


def _store(what: str) -> Store:
    store = lab_store()
    if store is None:
        raise StoreLacks(f"{what} is not on this host, and there is no store")
    return store
