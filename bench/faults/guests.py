# SPDX-License-Identifier: GPL-2.0-or-later
"""Real guests under libvirt in a lab under faults: their experiments, and what hits their QEMU and their worker."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.faults.blow import Blow
from bench.faults.lab import GUEST
from bench.faults.machine import kill
from bench.faults.real_kernel import RealKernel
from bench.faults.stages import Held, Moment, Scene, Stage, look
from lab.experiments.spec import spec_from_mapping
from lab.models import Experiment, Run
from lab.submission.submit import submit_experiment
from workers.drivers.base import RECORDS_FILE
from workers.drivers.leftovers import Traces
from workers.tests.libvirtd import guests as qemus

# Boots of a busy machine are slow, and a place of a block may be booted again.
PATIENCE_S = 240.0


class GuestLoad:
    """Submits experiments with real guests, one at a time, of the base alone: its kernel is built once for all of them."""

    def __init__(self, home: Path, artifact: Path) -> None:
        (home / "real").mkdir()
        self._home, self._kernel = home, RealKernel(home / "real", artifact)

    def keep_going(self) -> None:
        """Submit one unless one is open."""
        if Experiment.objects.filter(state__in=("queued", "running"), runs__target__name=GUEST).exists():
            return
        description = {
            "name": "real guests under faults",
            "git": str(self._kernel.work),
            "base": self._kernel.base.commit,
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 2, "iterations": 2, "warmup": 1},
            "target": GUEST,
        }
        submit_experiment(spec=spec_from_mapping(description), home=self._home)

    def await_stage(self, stage: Stage) -> Moment | None:
        """Return the next moment that a guest boots, or works, with the claim on it; None where none does within the patience."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.keep_going()
            scene = look()
            for held in _held(scene):
                if _stage_of(self._home, held) == stage:
                    return Moment(stage, scene, held)
            time.sleep(0.1)
        return None


def _held(scene: Scene) -> Iterator[Held]:
    ours = set(Run.objects.filter(target__name=GUEST, state="running").values_list("pk", flat=True))
    return (held for held in scene.runs if held.id in ours)


def _stage_of(home: Path, held: Held) -> Stage | None:
    """Return "booting" until the guest has sent its first record, "workload" then; None without a QEMU."""
    if not _qemus(home, held.id):
        return None
    records = [path for path in (home / "runs").glob(f"{held.id}-*/{RECORDS_FILE}") if path.stat().st_size]
    return "workload" if records else "booting"


def _qemus(home: Path, run: int) -> list[int]:
    return list(qemus(f"{Traces(home).prefix}{run}-"))


def _strike(blow: Blow, number: signal.Signals) -> list[int]:
    """Send a signal to the QEMU of the boot that was aimed at; return the processes."""
    assert blow.moment.work is not None
    struck = [pid for pid in _qemus(blow.lab.home, blow.moment.work.id) if kill(pid, number)]
    blow.landed = bool(struck)
    return struck


@contextmanager
def qemu_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the QEMU of a guest."""
    _strike(blow, signal.SIGKILL)
    yield


@contextmanager
def qemu_frozen(blow: Blow) -> Iterator[None]:
    """The QEMU of a guest stands still for a few seconds."""
    struck = _strike(blow, signal.SIGSTOP)
    try:
        yield
        time.sleep(blow.draw.uniform(2.0, 6.0))
    finally:
        for pid in struck:
            kill(pid, signal.SIGCONT)


@contextmanager
def guest_worker_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the worker of a guest, which outlives it: nothing may boot beside it, and it must not stay."""
    assert blow.moment.work is not None
    pid = int(blow.moment.work.holder.rsplit(":", 2)[1])
    blow.victims.add(pid)
    blow.landed = kill(pid)
    yield
