# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the places where the lab keeps files, and of the chores that make room there.

How full a disk is, is one system call; the store is asked by a thread of its own, every five seconds at most. How much of it is the
lab's, and what is in a bucket, nobody can tell without reading every name: that is what the retention policy found when it did so last.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings

from lab.models import Chore
from lab.storage.directory import DiskRoom, room_of
from lab.storage.store_check import store_answer
from web.metrics_text import gauge, gauges

_ROOMS = (
    ("kperflab_storage_used_bytes", "Used space of its disk."),
    ("kperflab_storage_free_bytes", "Free space of its disk."),
)


def storage_figures() -> Iterator[str]:
    """Write the figures of the state root, the store and the chores."""
    rooms = {key: (room.used, room.free) for key, room in _rooms().items()}
    yield from gauges(_ROOMS, ("place", "host"), rooms)
    kept: dict[tuple[str, ...], float] = {}
    done: dict[tuple[str, ...], float] = {}
    for chore in Chore.objects.order_by("name"):
        if chore.done_at:
            done[chore.name,] = chore.done_at.timestamp()
        for place, by_kind in chore.found.items():
            kept |= {(place, kind): size for kind, size in by_kind.items()}
    about = "Files of builds and boots, after the last run of the retention policy."
    yield from gauge("kperflab_kept_bytes", about, ("place", "kind"), kept)
    yield from gauge("kperflab_chore_done_timestamp_seconds", "When it last ran.", ("chore",), done)


def _rooms() -> dict[tuple[str, str], DiskRoom]:
    """By place and host; a store belongs to none. A place that is down has no figures: readiness names it."""
    found: dict[tuple[str, str], DiskRoom] = {}
    with suppress(OSError):
        found["home", socket.gethostname()] = room_of(settings.HOME)
    answer = store_answer()
    if answer is not None and answer.room is not None:
        found["store", ""] = answer.room
    return found
