# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole lab in one process: one experiment is carried out by the loop of every worker, over SQLite."""

from collections.abc import Callable
from time import sleep

from django.conf import settings
from django.core.management import call_command

from lab.errors import LabError
from lab.experiments.page import get_experiment
from lab.experiments.spec import ExperimentSpec
from lab.models.states import OPEN_EXPERIMENT
from lab.runs.claiming import is_worked_on
from lab.runs.expired_claims import return_dead_claims
from lab.runs.order import next_build, next_run
from lab.runs.settle import settle
from lab.submission.submit import find_unfinished, submit_experiment
from lab.targets.usable import why_unusable
from workers.drivers.libvirt import LibvirtDriver
from workers.drivers.metal import MetalDriver
from workers.loop import Scope, take_all, take_one
from workers.readiness import why_idle

Say = Callable[[str], None]
# How long to wait for work that another process does.
OTHERS_S = 0.2


def prepare() -> None:
    """Bring the tables up to date; quick when they are."""
    call_command("migrate", verbosity=0, interactive=False)


def take_up(spec: ExperimentSpec, *, say: Say) -> int:
    """Return the experiment to work on: the unfinished one of this very description, else a new one.

    What a killed process had claimed is put back first.
    """
    for returned in return_dead_claims():
        say(f"{returned.kind} {returned.id} was left by a process that has died; resuming it")
    unfinished = find_unfinished(spec)
    if unfinished is not None:
        say(f"experiment {unfinished.pk} of this description is unfinished; continuing it")
        return unfinished.pk
    return submit_experiment(spec=spec, on_progress=say).pk


def work_through(experiment_id: int) -> None:
    """Build, boot and compare until nothing of the experiment is open, beside a worker if there is one.

    Raises LabError where it would wait for an operator; what was measured is kept, and a second call continues.
    """
    while True:
        if take_one(Scope(experiment_id=experiment_id)):
            continue
        if settle(experiment_id) or get_experiment(experiment_id).state not in OPEN_EXPERIMENT:
            return
        return_dead_claims()
        why = why_idle(builds=next_build(experiment_id) is not None) or why_unusable(experiment_id)
        if why and not is_worked_on(experiment_id):
            raise LabError(f"experiment {experiment_id} waits: {why}")
        # Other workers have what is left, or more blocks were just queued.
        sleep(OTHERS_S)


def build_all(experiment_id: int) -> None:
    """Build the waiting kernels of an experiment."""
    take_all(Scope(experiment_id=experiment_id, boots=False))


def boot_next(experiment_id: int) -> bool:
    """Carry out the next boot of an experiment; return False if no boot, or this machine, is ready."""
    if take_one(Scope(experiment_id=experiment_id, builds=False)):
        return True
    if next_run(experiment_id) is None or why_idle(builds=False):
        return False
    # Its target boots for another worker.
    sleep(OTHERS_S)
    return True


def sweep() -> list[str]:
    """Remove guests and files that killed processes left, and turn off machines; returns their names. Raises LibvirtMissing."""
    return MetalDriver(settings.HOME).sweep() + LibvirtDriver(settings.HOME).sweep()
