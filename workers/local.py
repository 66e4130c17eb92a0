# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole lab in one process: the same tasks as a worker's, in order, over SQLite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from lab.errors import SubmissionRejected
from lab.queries.executions import running_build_log
from lab.queries.experiments import get_experiment
from lab.queries.hardware import target_lines
from lab.queue import next_build, next_run, return_dead_claims
from lab.settle import cancel_experiment, settle
from lab.spec import ExperimentSpec
from lab.submit import find_unfinished, submit_experiment
from workers.drivers.libvirt import LibvirtDriver
from workers.tasks import boot_kernel, build_kernel

Say = Callable[[str], None]
TAIL_BYTES = 4096
NOT_LOCAL = "there is no server to talk to yet: add --local to work on this machine alone"


def prepare() -> None:
    """Bring the tables up to date; quick when they are."""
    call_command("migrate", verbosity=0, interactive=False)


def take_up(spec: ExperimentSpec, *, say: Say) -> int:
    """Return the experiment to work on: the unfinished one of this very description, else a new one.

    What a killed process had claimed is put back first.
    """
    for returned in return_dead_claims():
        say(f"{returned.kind} {returned.id} was left by a process that is gone; taking it up again")
    unfinished = find_unfinished(spec)
    if unfinished is not None:
        say(f"experiment {unfinished.pk} of this description is unfinished; going on with it")
        return unfinished.pk
    return submit_experiment(spec=spec, on_progress=say).pk


def work_through(experiment_id: int) -> None:
    """Build, boot and compare until nothing of the experiment is open."""
    while build_next(experiment_id) or boot_next(experiment_id):
        pass
    settle(experiment_id)


def build_next(experiment_id: int) -> bool:
    """Make the next kernel that waits; False if none does."""
    build_id = next_build(experiment_id)
    if build_id is not None:
        build_kernel.delay(build_id)
    return build_id is not None


def boot_next(experiment_id: int) -> bool:
    """Carry out the next boot that is ready; False if none is."""
    run_id = next_run(experiment_id)
    if run_id is not None:
        boot_kernel.delay(run_id)
    return run_id is not None


def latest_build_line() -> str:
    """What the running build printed last, nothing if none runs."""
    log = running_build_log()
    if not log:
        return ""
    try:
        with Path(log).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines[:-1]) if line.strip()), "")


def cancel(experiment_id: int) -> None:
    """Cancel an experiment. Raises UnknownRow, SubmissionRejected when it is over."""
    state = get_experiment(experiment_id).state
    if not cancel_experiment(experiment_id):
        raise SubmissionRejected(f"experiment {experiment_id} is {state}: there is nothing to cancel")


def targets() -> tuple[str, ...]:
    """Return a line for each target."""
    return target_lines()


def serve(port: int) -> None:
    """Serve the pages on the loopback address until interrupted."""
    bind = f"127.0.0.1:{port}"
    gunicorn = Path(sys.executable).with_name("gunicorn")
    argv = [str(gunicorn), "--bind", bind, "--threads", "4", "--log-level", "warning", "web.wsgi"]
    os.execv(gunicorn, argv)  # noqa: S606


def sweep() -> list[str]:
    """Remove guests and files that killed processes left; returns what it removed. Raises LibvirtMissing."""
    return LibvirtDriver(settings.HOME).sweep()
