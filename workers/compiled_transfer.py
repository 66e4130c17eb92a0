# SPDX-License-Identifier: GPL-2.0-or-later
"""Exchange what the compiler front compiled of trusted bases with the lab's other builders, through the store.

Neither direction may fail a build: without the store its files are compiled here.
"""

import logging
from collections.abc import Callable

from kernels.builds.builder import Builder
from kernels.builds.compiled_files import CompiledFiles
from kernels.errors import KernelsError
from lab.errors import LabError
from lab.storage.compiled_packs import fetch_packs, send_packs
from lab.storage.store import Store, lab_store

log = logging.getLogger(__name__)


def bring_compiled_files(builder: Builder, on_wait: Callable[[], None]) -> None:
    """Fetch the files that other machines have sent since the last call."""
    _exchange(builder, "fetched", lambda store, files: fetch_packs(store, builder.home, files, on_wait))


def send_compiled_files(builder: Builder) -> None:
    """Send the files that the build added; other builders compile the files that cannot be sent."""
    _exchange(builder, "sent", lambda store, files: send_packs(store, builder.home, files))


def _exchange(builder: Builder, done: str, move: Callable[[Store, CompiledFiles], int]) -> None:
    """Log an error instead of raising it, and count it among the front's events, which operators see."""
    try:
        if (
            builder.compiled_files
            and (store := lab_store())
            and (many := move(store, builder.compiled_files))
        ):
            log.info("%d compiled files %s", many, done)
    except (LabError, KernelsError, OSError) as exc:
        log.warning("compiled files are not exchanged: %s", exc)
        builder.front_events["unreachable"] += 1
