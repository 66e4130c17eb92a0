# SPDX-License-Identifier: GPL-2.0-or-later
"""Real guests under libvirt in a lab under faults: their experiments, and what hits their QEMU and their worker."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.faults.blow import Blow
from bench.faults.lab import GUEST
from bench.faults.machine import kill
from bench.faults.real_kernel import RealKernel
from bench.faults.stages import Held, Moment, Scene, Stage
from lab.experiments.spec import spec_from_mapping
from lab.models import Experiment, Run
from lab.submission.submit import submit_experiment
from workers.drivers.leftovers import Traces
from workers.tests.libvirtd import guests as qemus


class GuestLoad:
    """Submits experiments with real guests, one at a time, of the base alone: its kernel is built once for all of them."""

    def __init__(self, home: Path, artifact: Path) -> None:
        (home / "real").mkdir()
        self._home, self._kernel = home, RealKernel(home / "real", artifact)

    def keep_going(self) -> None:
        """Submit one unless one is open."""
        if Experiment.objects.filter(state__in=("queued", "running"), target__name=GUEST).exists():
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

    def moment(self, stage: Stage, scene: Scene) -> Moment | None:
        """Return the moment, with the claim on it, if a guest boots, or works, now."""
        for held in _held(scene):
            with suppress(FileNotFoundError):  # the guest has just ended
                if _stage_of(self._home, held) == stage:
                    return Moment(stage, held)
        return None


def _held(scene: Scene) -> Iterator[Held]:
    if not scene.runs:
        return iter(())
    ours = set(Run.objects.filter(target__name=GUEST, state="running").values_list("pk", flat=True))
    return (held for held in scene.runs if held.id in ours)


def _stage_of(home: Path, held: Held) -> Stage | None:
    """Return "booting" for as long as the last guest took to say hello, "workload" after that; None without a QEMU.

    What a guest sends is in its file only at the end, so the file does not tell.
    """
    ages = [time.time() - Path(f"/proc/{pid}").stat().st_ctime for pid in _qemus(home, held)]
    if not ages:
        return None
    return "booting" if ages[0] < _boot_s() else "workload"


def _boot_s() -> float:
    """Return the seconds from power-on to hello of the last guest, 3 before there was one."""
    steps = (
        Run.objects.filter(target__name=GUEST, state="done").order_by("-pk").values_list("steps", flat=True)
    )
    return float((steps.first() or {}).get("boot", 3.0))


def _qemus(home: Path, held: Held) -> list[int]:
    """Return the QEMU of a boot: a guest is named after the worker that started it, which boots one at a time."""
    _, pid, started = held.holder.rsplit(":", 2)
    return list(qemus(f"{Traces(home).prefix}{pid}-{started}-"))


def _strike(blow: Blow, number: signal.Signals) -> list[int]:
    """Send a signal to the QEMU of the boot that was aimed at; return the processes."""
    assert blow.moment.work is not None
    struck = [pid for pid in _qemus(blow.lab.home, blow.moment.work) if kill(pid, number)]
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
