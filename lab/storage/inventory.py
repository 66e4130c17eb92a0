# SPDX-License-Identifier: GPL-2.0-or-later
"""List what the state root and the store hold for the lab's rows, each with its size."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from kernels.artifacts.store import METADATA
from lab.storage.directory import StoreEntry
from lab.storage.store import Store

_NEVER = datetime.min.replace(tzinfo=UTC)

Kind = Literal["artifact", "run", "profile", "source", "log", "compiled"]
KINDS: tuple[Kind, ...] = ("artifact", "run", "profile", "source", "log", "compiled")
# Patterns of names in the store, by kind.
_OF: dict[Kind, re.Pattern[str]] = {
    "artifact": re.compile(r"artifacts/([0-9a-f]{64})/.+"),
    "run": re.compile(r"runs/(\d{1,18}-\d{1,6})/.+"),
    "profile": re.compile(r"profiles/[0-9a-f]{2}/([0-9a-f]{64})"),
    "source": re.compile(r"sources/([0-9a-f]{40,64})\.bundle"),
    "log": re.compile(r"logs/([0-9a-f]{64})\.log"),
    "compiled": re.compile(r"compiled/([0-9a-f]{64})"),
}
# The same things below a state root, where their folders have other names; sources belong to the trees there.
_FOLDERS = {
    "artifacts": "artifacts",
    "papers": "artifacts",
    "runs": "runs",
    "profiles": "profiles",
    "objects/logs": "logs",
}


@dataclass(slots=True)
class InventoryItem:
    """One thing: the files of an artifact (by its key), of a boot (`<id>-<attempt>`), one perf.data, bundle, log or pack of compiled files.

    here, stored: bytes on this machine and in the store. whole: whether an artifact has its metadata, in either place.
    """

    kind: Kind
    name: str
    here: int = 0
    stored: int = 0
    written_at: datetime = _NEVER
    whole: bool = False

    def add(self, entry: StoreEntry, *, here: bool) -> None:
        """Count a file in."""
        if here:
            self.here += entry.size
        else:
            self.stored += entry.size
        self.written_at = max(self.written_at, entry.written_at)
        self.whole = self.whole or entry.name.endswith(f"/{METADATA}")


def inventory(home: Path, store: Store | None) -> tuple[InventoryItem, ...]:
    """Everything there is, by kind and name. Raises StoreUnreachable, StoreRefused."""
    items: dict[tuple[Kind, str], InventoryItem] = {}
    _count(items, _files(home), here=True)
    if store is not None:
        _count(items, store.entries(), here=False)
    return tuple(items[key] for key in sorted(items))


def _count(
    items: dict[tuple[Kind, str], InventoryItem], entries: Iterator[StoreEntry], *, here: bool
) -> None:
    for entry in entries:
        for kind, pattern in _OF.items():
            if match := pattern.fullmatch(entry.name):
                items.setdefault((kind, match[1]), InventoryItem(kind, match[1])).add(entry, here=here)


def _files(home: Path) -> Iterator[StoreEntry]:
    for folder, name in _FOLDERS.items():
        top = home / folder
        for place, _, files in os.walk(top):
            for file in files:
                path = Path(place) / file
                with suppress(OSError):  # somebody removes what is listed
                    status = path.lstat()
                    written = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield StoreEntry(f"{name}/{path.relative_to(top)}", status.st_size, written)
