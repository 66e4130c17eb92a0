# SPDX-License-Identifier: GPL-2.0-or-later
"""Find open experiments that nothing works on: why, and what gets them going again.

The pages, REST and labctl take their progress from here, so that a dead worker looks dead everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone

from lab.errors import UnknownRow
from lab.experiments.progress import ExperimentProgress, progress_of
from lab.leases.process import is_alive
from lab.models import Build, Experiment, Run, Worker
from lab.models.states import BuildState, ExperimentState, RunState
from lab.runs.claiming import lease_seconds
from lab.runs.queues import GONE_S, target_queue
from lab.targets.usable import why_unusable

# In leases: a worker that was silent for longer, or work that nobody took for longer, is stalled.
PATIENCE_LEASES = 1.5
OPEN = (ExperimentState.QUEUED, ExperimentState.RUNNING)
_START = "Start a worker (labctl work), or carry it out on the lab's machine: labctl run {id} --local."
_BACK = "It goes back into the queue as soon as any worker runs. " + _START
_ASK = "Operators see the reason on /lab/."
_RELEASE = "An operator can enable the target on /lab/, or the experiment can be cancelled and cloned for another one."


@dataclass(frozen=True, slots=True)
class _Held:
    """A build or boot that a process claimed."""

    label: str
    claimed_by: str
    lease_until: datetime | None

    def lost_s(self, now: datetime, alive: Callable[[str], bool]) -> float | None:
        """Return for how many seconds its lease has been over, 0 where its process died before; None while it is held."""
        over = (now - self.lease_until).total_seconds() if self.lease_until else 0.0
        return over if over > 0 else (None if alive(self.claimed_by) else 0.0)


def current_progress(experiment_id: int) -> ExperimentProgress:
    """Return how far an experiment is, and whether it is stalled. Raises UnknownRow."""
    row = Experiment.objects.filter(pk=experiment_id).select_related("target").defer("spec").first()
    if row is None:
        raise UnknownRow(f"there is no experiment {experiment_id}")
    return current_progress_of([row])[experiment_id]


def current_progress_of(
    experiments: Sequence[Experiment], alive: Callable[[str], bool] = is_alive
) -> dict[int, ExperimentProgress]:
    """Return by number how far experiments are; what is stalled has its reason, a way out and no time left."""
    found = progress_of(experiments)
    rows = [row for row in experiments if row.state in OPEN]
    if not rows:
        return found
    held, queues, workers, moving = _held(rows), _queues(rows), _listening(), _moving(rows)
    for row in rows:
        why = way_out = ""
        if held[row.pk]:
            why, way_out = _dead(held[row.pk], alive)
        elif row.pk not in moving:
            why, way_out = _untaken(row, found[row.pk], queues[row.pk], workers)
        if why:
            way_out = way_out.format(id=row.pk)
            found[row.pk] = replace(found[row.pk], eta_s=None, stalled=why, way_out=way_out)
    return found


def _held(rows: Sequence[Experiment]) -> Mapping[int, list[_Held]]:
    """Return what processes have claimed, by experiment; a shared build is held for each that waits for it."""
    builds = Build.objects.filter(state=BuildState.BUILDING, variants__experiment__in=rows).values_list(
        "variants__experiment", "variants__name", "claimed_by", "lease_until"
    )
    runs = Run.objects.filter(state=RunState.RUNNING, experiment__in=rows).values_list(
        "experiment", "variant__name", "claimed_by", "lease_until"
    )
    held: dict[int, list[_Held]] = defaultdict(list)
    for verb, claimed in (("building", builds), ("booting", runs)):
        for experiment, variant, claimed_by, lease_until in claimed:
            held[experiment].append(_Held(f"{verb} {variant}", claimed_by, lease_until))
    return held


def _queues(rows: Sequence[Experiment]) -> Mapping[int, set[str]]:
    """Return by experiment the queues that its next piece of work waits in: builds first, else its target's."""
    queues: dict[int, set[str]] = defaultdict(set)
    waiting = Build.objects.filter(state=BuildState.QUEUED, variants__experiment__in=rows)
    for experiment, queue in waiting.values_list("variants__experiment", "queue"):
        queues[experiment].add(queue)
    for row in rows:
        if not queues[row.pk] and not row.group:
            queues[row.pk].add(target_queue(row.target.name))
    return queues


def _listening() -> list[tuple[set[str], str]]:
    """Return the queues of each worker that reported lately, and why it takes nothing, "" while it does."""
    silent_s = min(GONE_S, PATIENCE_LEASES * lease_seconds())
    seen = Worker.objects.filter(seen_at__gt=timezone.now() - timedelta(seconds=silent_s))
    return [(set(queues), reason) for queues, reason in seen.values_list("queues", "idle_reason")]


def _dead(held: Iterable[_Held], alive: Callable[[str], bool]) -> tuple[str, str]:
    """Return why nothing claimed is worked on, and the way out; empty while anything is."""
    now = timezone.now()
    lost = [(one.label, one.lost_s(now, alive)) for one in held]
    if any(seconds is None for _, seconds in lost):
        return "", ""
    label, seconds = max(lost, key=lambda pair: pair[1] or 0.0)
    ago = f"its lease expired {_ago(seconds or 0.0)} ago" if seconds else "its process is gone"
    return f"The worker that was {label} stopped: {ago}.", _BACK


def _untaken(
    row: Experiment, progress: ExperimentProgress, queues: set[str], workers: Sequence[tuple[set[str], str]]
) -> tuple[str, str]:
    """Return why no worker takes the waiting work, and the way out; empty if one will."""
    if progress.builds_over == progress.builds_total and (unusable := why_unusable(row.pk)):
        return f"{unusable[:1].upper()}{unusable[1:]}.", _RELEASE
    takers = [reason for takes, reason in workers if queues & takes]
    if not queues or (takers and not all(takers)):
        return "", ""
    if takers:
        return "The workers for this experiment take nothing at the moment.", _ASK
    return f"No worker takes work from {' or '.join(sorted(queues))}.", _START


def _moving(rows: Sequence[Experiment]) -> set[int]:
    """Return the experiments that began or finished something lately: their next piece may be about to be taken."""
    since = timezone.now() - timedelta(seconds=PATIENCE_LEASES * lease_seconds())
    builds = Build.objects.filter(variants__experiment__in=rows, finished_at__gt=since)
    runs = Run.objects.filter(experiment__in=rows, finished_at__gt=since)
    return {
        *(row.pk for row in rows if row.created_at > since),
        *builds.values_list("variants__experiment", flat=True),
        *runs.values_list("experiment", flat=True),
    }


def _ago(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
