# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a log that grows on this machine, for pages that another one serves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from lab.storage.files import name_of, put_tail
from lab.storage.store import lab_store

log = logging.getLogger(__name__)

EVERY_S = 2.0
_LAST_S = 10.0


@contextmanager
def shown_live(path: Path, home: Path) -> Iterator[None]:
    """Tell the end of a file every two seconds for as long as the block runs; without a store nobody else needs it."""
    if lab_store() is None:
        yield
        return
    stopped, name = Event(), name_of(path, home)

    def tell() -> None:
        failed = False
        while not stopped.wait(EVERY_S):
            try:
                put_tail(name, path)
            except Exception:  # a cache that is away costs nobody a boot
                if not failed:
                    log.exception("the end of %s cannot be told; it goes on being tried", name)
                failed = True

    thread = Thread(target=tell, name="tail", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_LAST_S)
