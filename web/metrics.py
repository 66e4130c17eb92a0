# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's figures for Prometheus, read from the tables at each scrape: every web process reports the same.

Labels are targets, groups, queues, hosts and states, which operators set up; never experiments, people or workers' processes.
"""

import shutil
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version

from django.conf import settings
from prometheus_client import generate_latest

from lab.audit.log import refusals_of_the_day
from lab.models import Chore
from lab.operations.lab_faults import corrupt_artifacts_ever
from lab.operations.last_hour import (
    deliveries_waiting,
    drifts,
    experiments_by_state,
    last_hour,
    late_answers_ever,
    lost_claims,
)
from lab.operations.readiness import readiness
from lab.runs.open_claims import held_leases
from lab.runs.queue_list import queue_lines
from lab.runs.queues import target_queue
from lab.runs.workers import ReportedWorker, reported_workers
from lab.storage.directory import DiskRoom, room_of
from lab.storage.store_check import store_answer
from lab.targets.fleet import Fleet, read_fleet
from lab.targets.health_overview import last_checks
from web.metrics_text import counter, gauge, gauges, histogram
from web.requestlog import counted_requests

_QUEUES = (
    ("kperflab_queue_waiting", "Builds or boots that are ready for a worker."),
    ("kperflab_queue_running", "Running builds or boots."),
    ("kperflab_queue_oldest_wait_seconds", "Time since the oldest became ready."),
    ("kperflab_queue_workers", "Live workers that serve it."),
)
_TARGETS = (
    ("kperflab_target_up", "1 if it may boot and a worker serves its queue."),
    ("kperflab_target_enabled", "0 if an operator disabled it."),
    ("kperflab_target_quarantined", "1 after repeated faults of the lab."),
    ("kperflab_target_faults", "Faults of the lab in a row."),
    ("kperflab_target_last_check_timestamp_seconds", "When its health was last checked."),
    ("kperflab_target_check_ok", "How that check ended."),
    ("kperflab_target_drift_ratio", "Its calibration over the median of earlier ones, minus 1."),
)
_LEASES = (
    ("kperflab_leases", "Current claims."),
    ("kperflab_leases_expired", "Claims whose lease has expired and that are not yet returned."),
    ("kperflab_lease_overdue_seconds", "Time since the oldest of them expired."),
)


def exposition() -> bytes:
    """Everything in Prometheus' text format."""
    return "".join(_lines()).encode() + generate_latest(counted_requests())


def _lines() -> Iterator[str]:
    """All figures of the lab, read now."""
    workers, fleet = reported_workers(), read_fleet()
    yield from gauge(
        "kperflab_info", "The version of the running code.", ("version",), {(version("kperflab"),): 1}
    )
    ready = {(check.name,): check.ok for check in readiness()}
    yield from gauge("kperflab_ready", "1 if what the lab needs is available.", ("check",), ready)
    yield from _queues(workers, fleet)
    yield from _leases()
    yield from _targets(workers, fleet)
    yield from _workers(workers)
    yield from storage_figures()
    yield from _last_hour()
    states = {(state,): number for state, number in experiments_by_state().items()}
    yield from gauge("kperflab_experiments", "Experiments by state.", ("state",), states)
    waits = {(): deliveries_waiting()}
    yield from gauge("kperflab_deliveries_waiting", "Events that wait for delivery.", (), waits)
    late = late_answers_ever()
    yield from counter("kperflab_late_answers", "Results refused because their claim had expired.", late)
    lost = {(host,): number for host, number in lost_claims().items()}
    about = "Claims taken back in the last hour from processes that were gone or stalled."
    yield from gauge("kperflab_last_hour_lost_claims", about, ("host",), lost)
    about = "Artifacts that differ from what was built."
    yield from counter("kperflab_corrupt_artifacts", about, corrupt_artifacts_ever())
    about = "Input from git servers, builds, guests and machines that workers refused in the last 24 hours."
    yield from gauge("kperflab_refusals_day", about, ("where", "rule"), refusals_of_the_day())


def _queues(workers: Sequence[ReportedWorker], fleet: Fleet) -> Iterator[str]:
    rows = {
        (line.name,): (line.waiting, line.running, line.oldest_s, len(line.workers))
        for line in queue_lines(workers, fleet)
    }
    yield from gauges(_QUEUES, ("queue",), rows)


def _leases() -> Iterator[str]:
    held = {("build",): (0, 0, 0.0), ("run",): (0, 0, 0.0)}
    for kind, left_s in held_leases():
        number, over, late_s = held[kind,]
        held[kind,] = (number + 1, over + (left_s < 0), max(late_s, -left_s))
    yield from gauges(_LEASES, ("kind",), held)


def _targets(workers: Iterable[ReportedWorker], fleet: Fleet) -> Iterator[str]:
    served = {
        queue for worker in workers if not worker.gone and not worker.idle_reason for queue in worker.queues
    }
    drift, checks = drifts(), last_checks()
    rows = {}
    for row in fleet.targets:
        check = checks.get(row.id)
        up = row.enabled and row.quarantined_at is None and target_queue(row.name) in served
        checked, passed = (check.at.timestamp(), check.ok) if check else (None, None)
        states = up, row.enabled, row.quarantined_at is not None, row.faults
        rows[row.name,] = (*states, checked, passed, drift.get(row.name))
    yield from gauges(_TARGETS, ("target",), rows)


def _workers(workers: Iterable[ReportedWorker]) -> Iterator[str]:
    states: Counter[tuple[str, ...]] = Counter()
    room = shutil.disk_usage(settings.HOME)
    here = (socket.gethostname(),)
    free: dict[tuple[str, ...], float] = {here: room.free}
    size: dict[tuple[str, ...], float] = {here: room.total}
    for worker in workers:
        states[worker.host, "gone" if worker.gone else "idle" if worker.idle_reason else "working"] += 1
        if worker.disk_free is not None and worker.disk_total is not None and not worker.gone:
            free[worker.host,] = min(free.get((worker.host,), worker.disk_free), worker.disk_free)
            size[worker.host,] = worker.disk_total
    about = "Workers; gone ones have not reported lately."
    yield from gauge("kperflab_workers", about, ("host", "state"), states)
    yield from gauge(
        "kperflab_disk_free_bytes", "Free space on the disk of the lab's state root.", ("host",), free
    )
    yield from gauge("kperflab_disk_size_bytes", "Size of that disk.", ("host",), size)


def _last_hour() -> Iterator[str]:
    hour = last_hour()
    about, labels = "Builds that ended in the last hour.", ("queue", "state", "blame")
    yield from gauge("kperflab_last_hour_builds", about, labels, hour.builds)
    about, labels = "Boots that ended in the last hour.", ("target", "outcome", "blame")
    yield from gauge("kperflab_last_hour_runs", about, labels, hour.runs)
    retries = {(kind,): number for kind, number in hour.retries.items()}
    about = "Attempts beyond the first, of builds and boots that ended in the last hour."
    yield from gauge("kperflab_last_hour_retries", about, ("kind",), retries)
    built = {(queue,): durations for queue, durations in hour.build_s.items()}
    about = "What was compiled in the last hour."
    yield from histogram("kperflab_last_hour_build_seconds", about, ("queue",), built)
    # By target, each step would have fifteen buckets for each of a thousand targets.
    about = "Duration of each step of the last hour's boots, by group or target without one; run: from claim to record."
    yield from histogram("kperflab_last_hour_step_seconds", about, ("step", "group"), hour.steps_s)


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
    """Return the disk space by place and host; a store has no host. A place that is down has no figures: readiness names it."""
    rooms: dict[tuple[str, str], DiskRoom] = {}
    with suppress(OSError):
        rooms["home", socket.gethostname()] = room_of(settings.HOME)
    answer = store_answer()
    if answer is not None and answer.room is not None:
        rooms["store", ""] = answer.room
    return rooms
