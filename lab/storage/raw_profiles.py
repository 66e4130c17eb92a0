# SPDX-License-Identifier: GPL-2.0-or-later
"""perf.data as guests sent it: stored under the hash of its bytes, equal files once.

A file of the store is `<home>/profiles/<2 digits>/<64 digits>`; the run's own directory holds a hard link to it.
"""

import hashlib
import os
import re
from pathlib import Path

from lab.errors import UnknownRow

_HASH = re.compile(r"[0-9a-f]{64}")


def raw_path(home: Path, sha256: str) -> Path:
    """Return the path of the perf.data with this hash. Raises UnknownRow for anything but a hash."""
    if not _HASH.fullmatch(sha256):
        raise UnknownRow(f"{sha256[:80]!r} is not a hash of a perf.data")
    return home / "profiles" / sha256[:2] / sha256


def keep_raw(home: Path, file: Path) -> str:
    """Put a file into the store and return its hash; the file itself becomes a link to what is there."""
    with file.open("rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    kept = raw_path(home, sha256)
    kept.parent.mkdir(parents=True, exist_ok=True)
    if _whole(kept, file):
        _link(kept, file)
    else:
        _link(file, kept)
    return sha256


def _whole(kept: Path, file: Path) -> bool:
    """Return whether the store has the file already, and not just a beginning that a full disk left."""
    return kept.exists() and kept.stat().st_size == file.stat().st_size


def _link(source: Path, place: Path) -> None:
    """Make `place` a link to `source` in one step, whatever is there."""
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.hardlink_to(source)
    fresh.replace(place)
    # Two links of one file replace nothing: the fresh one then stays.
    fresh.unlink(missing_ok=True)
