# SPDX-License-Identifier: GPL-2.0-or-later
"""Explain why an experiment makes no progress at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from lab.models import Build, Experiment, Target
from lab.models.states import BuildState
from lab.runs.claiming import is_worked_on
from lab.runs.queues import target_queue
from lab.runs.workers import WorkerLine, worker_lines
from lab.targets.usable import usable_targets, why_unusable


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason for waiting, as a sentence. forsaken: its queue has no worker, so one must be started."""

    why: str
    forsaken: bool = False


def wait_of(experiment_id: int, *, operator: bool) -> Wait | None:
    """Return why an open experiment waits; None while it is being worked on.

    operator: the reader is an operator; others see neither machines nor their paths.
    """
    if is_worked_on(experiment_id):
        return None
    builds = Build.objects.filter(state=BuildState.QUEUED, variants__experiment=experiment_id)
    queues = frozenset(builds.values_list("queue", flat=True))
    if not queues:
        if unusable := why_unusable(experiment_id):
            return Wait(f"It waits: {unusable}.")
        queues = _target_queues(experiment_id)
    return _wait_in(queues, operator=operator)


def _target_queues(experiment_id: int) -> frozenset[str]:
    experiment = Experiment.objects.only("group", "target").get(pk=experiment_id)
    asked = (
        usable_targets().filter(group=experiment.group)
        if experiment.group
        else Target.objects.filter(pk=experiment.target_id)
    )
    return frozenset(map(target_queue, asked.values_list("name", flat=True)))


def _wait_in(queues: frozenset[str], *, operator: bool) -> Wait:
    takers = [
        worker_line
        for worker_line in worker_lines()
        if not worker_line.gone and queues.intersection(worker_line.queues)
    ]
    if not takers:
        return Wait(f"Nothing works on it: no worker takes from {_named(queues)}.", forsaken=True)
    if all(taker.idle_reason for taker in takers):
        return Wait(f"It waits: {_said(takers) if operator else _hinted(len(takers))}.")
    return Wait("It waits for its turn.")


def _named(queues: frozenset[str]) -> str:
    return " or ".join(f"“{queue}”" for queue in sorted(queues))


def _said(takers: list[WorkerLine]) -> str:
    return "; ".join(
        dict.fromkeys(f"{taker.host} takes nothing now, {taker.idle_reason}" for taker in takers)
    )


def _hinted(takers: int) -> str:
    which = "its worker takes" if takers == 1 else "its workers take"
    return f"{which} nothing at the moment; operators see why on /lab/"
