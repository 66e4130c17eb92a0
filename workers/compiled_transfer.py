# SPDX-License-Identifier: GPL-2.0-or-later
"""Exchange what the compiler front compiled of trusted bases with the lab's other builders, through the store.

Neither direction may fail a build: without the store its files are compiled here.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernels.builds.builder import Builder
from kernels.errors import KernelsError
from lab.errors import LabError
from lab.storage.compiled_packs import fetch_packs, send_packs
from lab.storage.store import lab_store

log = logging.getLogger(__name__)


def bring_compiled_files(builder: Builder, on_wait: Callable[[], None]) -> None:
    """Fetch the files that other machines have sent since the last call."""
    if builder.compiled_files is None:
        return
    with _at_no_cost(builder):
        if (store := lab_store()) is not None and (
            taken := fetch_packs(store, builder.home, builder.compiled_files, on_wait)
        ):
            log.info("%d compiled files fetched", taken)


def send_compiled_files(builder: Builder) -> None:
    """Send the files that the build added; other builders compile the files that cannot be sent."""
    if builder.compiled_files is None:
        return
    with _at_no_cost(builder):
        if (store := lab_store()) is not None and (
            sent := send_packs(store, builder.home, builder.compiled_files)
        ):
            log.info("%d compiled files sent", sent)


@contextmanager
def _at_no_cost(builder: Builder) -> Iterator[None]:
    """Log an error instead of raising it, and count it among the front's events, which operators see."""
    try:
        yield
    except (LabError, KernelsError, OSError) as exc:
        log.warning("compiled files are not exchanged: %s", exc)
        builder.front_events["unreachable"] += 1
