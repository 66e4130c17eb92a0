# SPDX-License-Identifier: GPL-2.0-or-later
"""Send the files of a boot to the store and remove them here; if that fails, try again after a later boot.

Without a store they stay where they are.
"""

import fcntl
import logging
import re
from contextlib import suppress
from pathlib import Path

from kernels.files.scratch import remove_tree
from lab.errors import LabError
from lab.runs.pages import is_under_way, raw_profiles, runs_under_way
from lab.storage.files import drop_tail, name_in_store, name_of
from lab.storage.raw_profiles import raw_path
from lab.storage.store import Store, lab_store

log = logging.getLogger(__name__)

_RUN = re.compile(r"(\d{1,18})-\d{1,6}")
# The guest's input, and files that are sent under their own hash.
_NOT_SENT = re.compile(r"initrd|perf(\.[a-z-]+)?\.data|\..*")


def send_runs(home: Path) -> int:
    """Send the files of all boots that are over, and remove them here; returns their number. Without an answer of the store the files stay."""
    try:
        store = lab_store()
        return _send_all(store, home) if store is not None else 0
    except LabError as exc:
        log.warning("run files stay on this machine for now: %s", exc)
        return 0


def send_log(home: Path, path: Path | None) -> None:
    """Send the log of a failed build; the log of any other is in its artifact."""
    try:
        store = lab_store()
        if store is not None and path is not None and path.is_file():
            name = name_of(path, home)
            with path.open("rb") as file:
                store.put(name_in_store(name), file)
            drop_tail(name)
    except LabError as exc:
        log.warning("the log %s stays on this machine: %s", path, exc)


def _send_all(store: Store, home: Path) -> int:
    lock = home / "objects" / "locks" / "send-runs"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        # List the folders before asking about their runs: so a folder that is made meanwhile is not in the list.
        folders = {
            path: match
            for path in sorted((home / "runs").glob("*-*"))
            if (match := _RUN.fullmatch(path.name))
        }
        busy = runs_under_way([int(match[1]) for match in folders.values()])
        over = [path for path in folders if path.name not in busy and path.is_dir()]
        return sum(_send(store, home, folder) for folder in over)


def _send(store: Store, home: Path, folder: Path) -> bool:
    """Send the files of one boot and remove them here; False if the boot, once returned to the queue, has begun again meanwhile."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink() and not _NOT_SENT.fullmatch(path.name):
            with path.open("rb") as file:
                store.put(name_of(path, home), file)
            drop_tail(name_of(path, home))
    raw = [raw_path(home, sha256) for sha256 in raw_profiles(int(folder.name.partition("-")[0]))]
    for path in raw:
        if path.exists() and not store.has(name_of(path, home)):
            with path.open("rb") as file:
                store.put(name_of(path, home), file)
    # The sending of many boots may take minutes, and a boot that is returned to the queue keeps its attempt, and so its folder.
    if is_under_way(folder.name):
        return False
    remove_tree(folder)
    for path in raw:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return True
