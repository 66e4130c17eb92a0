# SPDX-License-Identifier: GPL-2.0-or-later
"""Find open experiments that nothing works on: why, what gets them going again, and whose turn it is.

The pages, REST and labctl take their progress from here, so that a dead worker looks dead everywhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from django.db import connection
from django.utils import timezone

from lab.errors import one_row
from lab.experiments.progress import ExperimentProgress, Work, progress_of, work_of
from lab.figures import duration
from lab.leases.process import is_alive
from lab.models import Experiment, Worker
from lab.models.hardware import GONE_S
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState
from lab.runs.claiming import lease_seconds
from lab.runs.queue_places import queue_places
from lab.runs.queues import target_queue
from lab.targets.usable import usable_targets, why_unusable

# In leases: a worker that was silent for longer, or work that nobody took for longer, is stalled.
PATIENCE_LEASES = 1.5
_START = "Start a worker (labctl work), or run it on the lab's machine: labctl run {id} --local."
_BACK = "Its work returns to the queue as soon as any worker runs. " + _START
_ASK = "Operators see the reason on /lab/."
_PAUSED = "The workers for this experiment take no work at the moment"
_RELEASE = "An operator can enable the target on /lab/, or the experiment can be cancelled and cloned for another one."


@dataclass(frozen=True, slots=True)
class _Held:
    """A build or boot that a process claimed."""

    label: str
    claimed_by: str
    lease_until: datetime | None

    def lost_s(self, now: datetime) -> float | None:
        """Return for how many seconds its lease has been over, 0 where its process died before; None while it is held."""
        over = (now - self.lease_until).total_seconds() if self.lease_until else 0.0
        return over if over > 0 else (None if is_alive(self.claimed_by) else 0.0)


@dataclass(frozen=True, slots=True)
class _Listener:
    """A worker: the queues it takes from, and why it takes nothing now, "" while it does."""

    host: str
    queues: frozenset[str]
    reason: str


def current_progress(experiment_id: int, *, operator: bool = False) -> ExperimentProgress:
    """Return how far an experiment is, and whether it is stalled or waits for its turn. Raises UnknownRow.

    operator: the reader is an operator; others see neither machines nor their paths.
    """
    row = one_row(
        Experiment.objects.filter(pk=experiment_id).select_related("target").defer("spec"),
        f"experiment {experiment_id}",
    )
    return current_progress_of([row], operator=operator)[experiment_id]


def current_progress_of(
    experiments: Sequence[Experiment], *, operator: bool = False
) -> dict[int, ExperimentProgress]:
    """Return by number how far experiments are; what is stalled has its reason, a way out and no time left.

    Queued work has its place in the queue.
    """
    work = work_of(experiments)
    progress = progress_of(experiments, work)
    rows = [row for row in experiments if row.state in OPEN_EXPERIMENT]
    if not rows:
        return progress
    held = {row.pk: _held(work[row.pk]) for row in rows}
    queues = _queues(rows, work)
    workers = _listening(set().union(*queues.values()))
    for row in rows:
        why = way_out = ""
        if held[row.pk]:
            why, way_out = _dead(held[row.pk])
        else:
            takers = [worker for worker in workers if queues[row.pk] & worker.queues]
            # Workers that report that they take nothing are believed at once.
            if not _is_moving(row, work[row.pk]) or (takers and all(taker.reason for taker in takers)):
                why, way_out = _unusable(row, progress[row.pk]) or _untaken(queues[row.pk], takers, operator)
        if why:
            way_out = way_out.format(id=row.pk)
            progress[row.pk] = replace(progress[row.pk], eta_s=None, stalled=why, way_out=way_out)
    waiting = [row.pk for row in rows if not held[row.pk] and not progress[row.pk].stalled]
    for pk, place in queue_places(waiting).items():
        progress[pk] = replace(progress[pk], queue=place)
    return progress


def _held(work: Work) -> list[_Held]:
    """Return what processes have claimed; a shared build is held for each experiment that waits for it."""
    building = [
        _Held(f"building {names[0]}", build.claimed_by, build.lease_until)
        for build, names in work.builds.items()
        if build.state == BuildState.BUILDING
    ]
    booting = [
        _Held(f"booting {run.variant}", run.claimed_by, run.lease_until)
        for run in work.boots
        if run.state == RunState.RUNNING
    ]
    return building + booting


def _queues(rows: Sequence[Experiment], work: Mapping[int, Work]) -> Mapping[int, set[str]]:
    """Return by experiment the queues that its next piece of work waits in: builds first, else its target's."""
    queues = {
        row.pk: {build.queue for build in work[row.pk].builds if build.state == BuildState.QUEUED}
        for row in rows
    }
    of_group: dict[str, set[str]] = defaultdict(set)
    groups = {row.group for row in rows if row.group and not queues[row.pk]}
    for group, name in usable_targets().filter(group__in=groups).values_list("group", "name"):
        of_group[group].add(target_queue(name))
    for row in rows:
        if not queues[row.pk]:
            queues[row.pk] |= of_group[row.group] if row.group else {target_queue(row.target.name)}
    return queues


def _listening(queues: Collection[str]) -> list[_Listener]:
    """Return the workers that reported lately and take from any of these queues."""
    silent_s = min(GONE_S, PATIENCE_LEASES * lease_seconds())
    seen = Worker.objects.filter(seen_at__gt=timezone.now() - timedelta(seconds=silent_s))
    if connection.vendor == "postgresql":  # SQLite looks for keys of objects alone
        seen = seen.filter(queues__has_any_keys=list(queues))
    rows = seen.order_by("pk").values_list("host", "queues", "idle_reason")
    return [_Listener(host, frozenset(queues), reason) for host, queues, reason in rows]


def _dead(held: Iterable[_Held]) -> tuple[str, str]:
    """Return why no claimed work is going on, and the way out; empty while some is."""
    now = timezone.now()
    lost = [(claim.label, claim.lost_s(now)) for claim in held]
    if any(seconds is None for _, seconds in lost):
        return "", ""
    label, seconds = max(lost, key=lambda pair: pair[1] or 0.0)
    ago = f"its lease expired {duration(seconds)} ago" if seconds else "its process is gone"
    return f"The worker that was {label} stopped: {ago}.", _BACK


def _unusable(row: Experiment, progress: ExperimentProgress) -> tuple[str, str] | None:
    """Return why the targets of a built experiment may not boot, and the way out; None if one may."""
    if progress.builds_over < progress.builds_total or not (why := why_unusable(row.pk)):
        return None
    return f"{why[:1].upper()}{why[1:]}.", _RELEASE


def _untaken(queues: set[str], takers: Sequence[_Listener], operator: bool) -> tuple[str, str]:
    """Return why no worker takes the waiting work, and the way out; empty if one will."""
    if not queues or not all(taker.reason for taker in takers):
        return "", ""
    if not takers:
        return f"No worker takes work from {' or '.join(sorted(queues))}.", _START
    if operator:
        reasons = dict.fromkeys(f"{taker.host}, {taker.reason}" for taker in takers)
        return f"{_PAUSED}: {'; '.join(reasons)}.", ""
    return f"{_PAUSED}.", _ASK


def _is_moving(row: Experiment, work: Work) -> bool:
    """Return whether something began or finished lately: the next piece may be about to be taken."""
    since = timezone.now() - timedelta(seconds=PATIENCE_LEASES * lease_seconds())
    ends = chain(
        (build.finished_at for build in work.builds),
        (run.finished_at for run in work.boots),
    )
    return row.created_at > since or any(end and end > since for end in ends)
