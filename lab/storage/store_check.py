# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the store in a thread of its own, so that a hanging mount blocks nothing else."""

from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic

from lab.errors import LabError
from lab.storage.directory import DiskRoom
from lab.storage.store import Store, lab_store

# How long an answer is valid, and how long a caller waits for one.
KEPT_S = 5.0
DEADLINE_S = 3.0
# With less free space in a store that is a directory, the lab is not ready. What fits is still stored.
LEAST_FREE = 1 << 30


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """The state of a store. message: one line that names it without credentials. room: for an existing directory."""

    ok: bool
    message: str
    room: DiskRoom | None = None


class _Asking:
    """The thread and what it last found; one thread, since each has a connection to the bucket of its own."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wanted: Store | None = None
        self._since = 0.0
        self._found: tuple[Store, float, StoreStatus] | None = None

    def answer(self, store: Store) -> StoreStatus:
        """Return the state of the store, checked again if the last check is too old."""
        with self._changed:
            if (known := self._known(store)) is not None:
                return known
            if self._wanted is None:
                self._wanted, self._since = store, monotonic()
                self._begin()
                self._changed.notify_all()
            # A later caller waits only for the remaining time; no caller waits for an answer that is long overdue.
            self._changed.wait_for(
                lambda: self._known(store) is not None, max(0.0, self._since + DEADLINE_S - monotonic())
            )
            waited = monotonic() - self._since
            return self._known(store) or StoreStatus(
                False, f"the store {store.address} has not answered for {waited:.0f} s"
            )

    def _known(self, store: Store) -> StoreStatus | None:
        if self._found is None or self._found[0] != store or monotonic() - self._found[1] > KEPT_S:
            return None
        return self._found[2]

    def _begin(self) -> None:
        # Nor is it alive in a process that was forked off the one that started it.
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._serve, name="store-answer", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None)
                store = self._wanted
            if store is None:
                continue
            status = _checked(store)
            with self._changed:
                self._found, self._wanted = (store, monotonic(), status), None
                self._changed.notify_all()


def _checked(store: Store) -> StoreStatus:
    began = monotonic()
    try:
        store.reach()
        room = store.room()
    except LabError as exc:
        return StoreStatus(False, str(exc))
    except Exception as exc:  # the thread goes on, whatever a library raises
        return StoreStatus(False, f"the store {store.address}: {type(exc).__name__}: {exc}"[:300])
    message = f"{store.address}, answers in {1000 * (monotonic() - began):.0f} ms"
    if room is None:
        return StoreStatus(True, message)
    message += f", {room.free / (1 << 30):.1f} GiB free"
    if room.free >= LEAST_FREE:
        return StoreStatus(True, message, room)
    wanted = (
        f"{LEAST_FREE / (1 << 30):.1f} are needed: free space with labctl lab expire, or use a larger disk"
    )
    return StoreStatus(False, f"{message}, {wanted}", room)


_asking = _Asking()


def store_answer() -> StoreStatus | None:
    """Return the state of the lab's store within the last seconds; None for a lab without one."""
    try:
        store = lab_store()
    except LabError as exc:
        return StoreStatus(False, str(exc))
    return None if store is None else _asking.answer(store)
