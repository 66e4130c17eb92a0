# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a log that grows on this machine, for pages that another one serves."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from lab.storage.files import name_of, put_tail
from lab.storage.store import lab_store
from workers.repeating import repeating

EVERY_S = 2.0


def shown_live(path: Path, home: Path) -> AbstractContextManager[None]:
    """Put the end of a file into the cache every two seconds while the block runs; without a store nobody else needs it."""
    if lab_store() is None:
        return nullcontext()
    name = name_of(path, home)
    # A cache that is down does not fail a boot.
    return repeating(f"telling the end of {name}", lambda: put_tail(name, path), every_s=EVERY_S)
