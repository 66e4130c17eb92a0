# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's figures for Prometheus, read from the tables at each scrape: any web process tells the same.

Labels are targets, queues, hosts, states: what an operator set up. Experiments, people and workers' processes are none.
"""

import shutil
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeHistogramMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lab.audit.refusals import refusals_of_the_day
from lab.models import Worker
from lab.operations import last_hour as vitals
from lab.operations.lab_faults import corrupt_artifacts_ever
from lab.operations.readiness import readiness
from lab.runs.open_claims import held_leases
from lab.runs.queue_list import queue_lines
from lab.runs.queues import target_queue
from lab.runs.workers import reported_workers
from lab.targets.health_overview import target_healths
from lab.targets.waiting_boots import WaitingBoots, waiting_boots
from web.durations import collected
from web.metrics_storage import storage_figures

# By labels, as many as the family has.
Values = Mapping[Any, float]


def exposition() -> bytes:
    """Everything in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Lab())
    return generate_latest(registry)


class _Lab(Collector):
    """The collector that the library calls."""

    def collect(self) -> Iterator[Metric]:
        """All families, read now."""
        workers, waiting = reported_workers(), waiting_boots()
        yield _gauge("kperflab_info", "The code that answers.", ("version",), {(version("kperflab"),): 1})
        yield _gauge(
            "kperflab_ready",
            "1 where what the lab needs is there.",
            ("check",),
            {(one.name,): one.ok for one in readiness()},
        )
        yield from _queues(workers, waiting)
        yield from _leases()
        yield from _targets(workers, waiting)
        yield from _workers(workers)
        yield from storage_figures()
        yield from _last_hour()
        yield _gauge(
            "kperflab_experiments",
            "Experiments by state.",
            ("state",),
            {(state,): number for state, number in vitals.experiments_by_state().items()},
        )
        yield _gauge(
            "kperflab_deliveries_waiting", "Events to be told.", (), {(): vitals.deliveries_waiting()}
        )
        late = CounterMetricFamily("kperflab_late_answers", "Answers refused since their claim was over.")
        late.add_metric((), vitals.late_answers_ever())
        yield late
        corrupt = CounterMetricFamily(
            "kperflab_corrupt_artifacts", "Artifacts found to be other than what was built."
        )
        corrupt.add_metric((), corrupt_artifacts_ever())
        yield corrupt
        yield _gauge(
            "kperflab_refusals_day",
            "What workers refused of git servers, builds, guests and machines in the last 24 hours.",
            ("where", "rule"),
            refusals_of_the_day(),
        )
        yield from collected()


def _gauge(name: str, about: str, labels: tuple[str, ...], values: Values) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family


def _queues(workers: Sequence[Worker], waiting: Sequence[WaitingBoots]) -> Iterator[Metric]:
    lines = queue_lines(workers, waiting)
    for name, about, values in (
        ("waiting", "Builds or boots that could be taken.", {(line.name,): line.waiting for line in lines}),
        ("running", "Builds or boots under way.", {(line.name,): line.running for line in lines}),
        (
            "oldest_wait_seconds",
            "Since the oldest could be taken.",
            {(line.name,): line.oldest_s for line in lines},
        ),
        (
            "workers",
            "Workers that live and take from it.",
            {(line.name,): len(line.workers) for line in lines},
        ),
    ):
        yield _gauge(f"kperflab_queue_{name}", about, ("queue",), values)


def _leases() -> Iterator[Metric]:
    held = {"build": (0, 0, 0.0), "run": (0, 0, 0.0)}
    for kind, left_s in held_leases():
        number, over, late_s = held[kind]
        held[kind] = (number + 1, over + (left_s < 0), max(late_s, -left_s))
    for place, name, about in (
        (0, "leases", "Claims that are held."),
        (1, "leases_expired", "Claims whose lease has expired and that are not yet returned."),
        (2, "lease_overdue_seconds", "How long ago the oldest of them ran out."),
    ):
        yield _gauge(
            f"kperflab_{name}", about, ("kind",), {(kind,): told[place] for kind, told in held.items()}
        )


def _targets(workers: Iterable[Worker], waiting: Sequence[WaitingBoots]) -> Iterator[Metric]:
    served = {queue for one in workers if not one.gone and not one.idle_reason for queue in one.queues}
    lines = target_healths(waiting=waiting)
    enabled = {(line.row.name,): float(line.row.enabled) for line in lines}
    quarantined = {(line.row.name,): float(line.row.quarantined_at is not None) for line in lines}
    up = {
        (line.row.name,): float(
            line.row.enabled and not line.row.quarantined_at and target_queue(line.row.name) in served
        )
        for line in lines
    }
    checked = {(line.row.name,): line.checked_at.timestamp() for line in lines if line.checked_at}
    passed = {(line.row.name,): float(bool(line.check_ok)) for line in lines if line.checked_at}
    drift = {(name,): ratio for name, ratio in vitals.drifts().items()}
    for name, about, values in (
        ("up", "1 where it may boot and a worker takes from its queue.", up),
        ("enabled", "0 where an operator disabled it.", enabled),
        ("quarantined", "1 after repeated faults of the lab.", quarantined),
        (
            "faults",
            "Faults of the lab in a row.",
            {(line.row.name,): float(line.row.faults) for line in lines},
        ),
        ("last_check_timestamp_seconds", "When its health was checked last.", checked),
        ("check_ok", "How that check ended.", passed),
        ("drift_ratio", "Its calibration over the median of those before, minus 1.", drift),
    ):
        yield _gauge(f"kperflab_target_{name}", about, ("target",), values)


def _workers(workers: Iterable[Worker]) -> Iterator[Metric]:
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
    yield _gauge(
        "kperflab_workers", "Workers: gone ones were not heard of lately.", ("host", "state"), states
    )
    yield _gauge("kperflab_disk_free_bytes", "Room left where the lab works.", ("host",), free)
    yield _gauge("kperflab_disk_size_bytes", "Size of that disk.", ("host",), size)


def _last_hour() -> Iterator[Metric]:
    told = vitals.last_hour()
    yield _gauge(
        "kperflab_last_hour_builds",
        "Builds that ended in the last hour.",
        ("queue", "state", "blame"),
        told.builds,
    )
    yield _gauge(
        "kperflab_last_hour_runs",
        "Boots that ended in the last hour.",
        ("target", "outcome", "blame"),
        told.runs,
    )
    yield _gauge(
        "kperflab_last_hour_retries",
        "Attempts beyond the first, of what ended in the last hour.",
        ("kind",),
        {(kind,): number for kind, number in told.retries.items()},
    )
    yield _histogram(
        "kperflab_last_hour_build_seconds",
        "What was compiled in the last hour.",
        ("queue",),
        {(queue,): one for queue, one in told.build_s.items()},
    )
    yield _histogram(
        "kperflab_last_hour_step_seconds",
        "Steps of the boots of the last hour; run is all of one, from claim to record.",
        ("step", "target"),
        told.steps_s,
    )


def _histogram(
    name: str, about: str, labels: tuple[str, ...], values: Mapping[Any, vitals.DurationHistogram]
) -> GaugeHistogramMetricFamily:
    """Of a window, so its counts fall as well: a quantile is taken of the buckets as they are, without a rate."""
    family = GaugeHistogramMetricFamily(name, about, labels=labels)
    bounds = [*map(str, vitals.BOUNDS), "+Inf"]
    for key, one in sorted(values.items(), key=lambda pair: pair[0]):
        below, buckets = 0, []
        for bound, number in zip(bounds, one.buckets, strict=True):
            below += number
            buckets.append((bound, below))
        family.add_metric(key, buckets, one.sum_s)
    return family
