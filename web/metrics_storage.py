# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the places where the lab keeps files, and of the chores that make room there.

How full a disk is, is one system call; the store is asked by a thread of its own, every five seconds at most. How much of it is the
lab's, and what is in a bucket, nobody can tell without reading every name: that is what the retention policy found when it did so last.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from lab.models import Chore
from lab.storage.directory import DiskRoom, room_of
from lab.storage.store_check import store_answer


def storage_figures() -> Iterator[Metric]:
    """Of the state root, the store and the chores."""
    used = GaugeMetricFamily(
        "kperflab_storage_used_bytes", "Taken of its disk, by whomever.", labels=("place", "host")
    )
    free = GaugeMetricFamily("kperflab_storage_free_bytes", "Left of its disk.", labels=("place", "host"))
    for labels, room in _rooms().items():
        used.add_metric(labels, room.used)
        free.add_metric(labels, room.free)
    kept = GaugeMetricFamily(
        "kperflab_kept_bytes",
        "What builds and boots left, after the last turn of the retention policy.",
        labels=("place", "kind"),
    )
    done = GaugeMetricFamily(
        "kperflab_chore_done_timestamp_seconds", "When it was last done.", labels=("chore",)
    )
    for chore in Chore.objects.order_by("name"):
        if chore.done_at:
            done.add_metric((chore.name,), chore.done_at.timestamp())
        for place, by_kind in chore.found.items():
            for kind, size in by_kind.items():
                kept.add_metric((place, kind), size)
    yield from (used, free, kept, done)


def _rooms() -> dict[tuple[str, str], DiskRoom]:
    """By place and host; a store belongs to none. A place that is away has no figures: readiness names it."""
    found: dict[tuple[str, str], DiskRoom] = {}
    with suppress(OSError):
        found["home", socket.gethostname()] = room_of(settings.HOME)
    answer = store_answer()
    if answer is not None and answer.room is not None:
        found["store", ""] = answer.room
    return found
