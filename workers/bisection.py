# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections and trends worked through in this process, by the same loop as any experiment."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lab.bisections.outcome import refused
from lab.bisections.search import attach, conclude_step, get_bisection, settle_step, step_spec, take_step
from lab.errors import SpecError, SubmissionRejected
from lab.experiments.spec import ExperimentSpec
from lab.models import BisectionStep
from lab.runs.expired_claims import return_dead_claims
from lab.submission.build_rows import build_over
from lab.submission.parts import find_target
from workers import local

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Screen:
    """Callbacks for showing progress. narrate: while an experiment is prepared; bar: while it is worked through."""

    narrate: Callable[[], AbstractContextManager[Say]]
    bar: Callable[[int], AbstractContextManager[None]]


def work_through(bisection_id: int, screen: Screen, on_step: Callable[[BisectionStep], None]) -> None:
    """Take step after step until the bisection is over; `on_step` receives each concluded step. Raises UnknownRow."""
    get_bisection(bisection_id)
    while (step := take_step(bisection_id)) is not None:
        on_step(work_on(step, screen))


def work_on(step: BisectionStep, screen: Screen) -> BisectionStep:
    """Carry out one step, or go on with it; returns it concluded.

    Raises SubmissionRejected while the target is disabled.
    """
    experiment_id = step.experiment_id
    # A disabled target says nothing about the revision: the same command continues once it is enabled.
    find_target(step.bisection.target.name)
    with screen.narrate() as say:
        for returned in return_dead_claims():
            say(f"{returned.kind} {returned.id} was left by a process that has died; resuming it")
        if experiment_id is None:
            try:
                experiment_id = local.take_up(step_spec(step), say=say)
            except (SpecError, SubmissionRejected) as exc:
                # The commits up to this revision cannot be taken as patches: treated like one that does not build.
                return settle_step(step.pk, refused(exc))
            attach(step.pk, experiment_id)
    with screen.bar(experiment_id):
        local.work_through(experiment_id)
    return conclude_step(step.pk)


def measure(specs: list[ExperimentSpec], screen: Screen) -> list[int]:
    """Work through several experiments, their boots in shuffled rounds; returns their numbers.

    All are built first, then booted in turn, so that drift of this machine affects all revisions alike.
    """
    with screen.narrate() as say:
        experiments = [local.take_up(spec, say=say) for spec in specs]
    for experiment_id in experiments:
        with screen.bar(experiment_id):
            local.build_all(experiment_id)
        build_over(experiments[0], experiments[1:])
    generator = random.Random(len(experiments))  # noqa: S311 (order, not secrecy)
    waiting = list(experiments)
    with screen.narrate() as say:
        while waiting:
            say(f"booting {len(waiting)} revisions in turn")
            generator.shuffle(waiting)
            waiting = [experiment_id for experiment_id in waiting if local.boot_next(experiment_id)]
    for experiment_id in experiments:
        local.work_through(experiment_id)
    return experiments
