# SPDX-License-Identifier: GPL-2.0-or-later
"""Real guests while their QEMU and libvirt are killed under them: every boot is recorded once, whole, and none is left.

`bench.faults` does the same to a whole service, whose guests are made up.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, cast

import pytest
from django.conf import settings

import workers.app  # noqa: F401
from lab.experiments.spec import spec_from_mapping
from lab.models import Experiment, Sample
from workers import local
from workers.bench import make_bench
from workers.drivers.base import BootRequest
from workers.drivers.guest_session import GuestSession
from workers.drivers.libvirt import LibvirtDriver
from workers.tests.libvirtd import guests, start_libvirtd
from workloads.catalog import load_catalog
from workloads.guest.records import Record

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db]

Moment = Literal["booting", "working"]
GONE_S = 30.0
DESCRIPTION = {
    "name": "under faults",
    "tree": "debian-6.1",
    "patches": [{"name": "no-bh-lru", "catalog": "buffer-no-bh-lru"}],
    "cases": [{"workload": "bh-lookup", "preset": "smoke", "profile": False}],
    "measure": {"boots": 3, "iterations": 2, "warmup": 1, "seed": 11},
}


def test_boots_whose_qemu_or_libvirt_is_killed_are_taken_again_and_recorded_once(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    striker = Striker(
        driver.traces.prefix,
        [
            ("booting", kill),
            ("booting", kill_libvirtd),
            ("working", kill),
            ("working", kill_libvirtd),
        ],
    )
    striker.hook(monkeypatch)
    experiment_id = local.take_up(spec_from_mapping(DESCRIPTION), say=print)
    local.work_through(experiment_id)
    experiment = Experiment.objects.get(pk=experiment_id)
    assert (striker.left, experiment.state) == ([], "done"), experiment.problem
    runs = list(experiment.runs.filter(purpose="measured"))
    # The base boots twice in each of three blocks; a gate may have had more of them taken.
    assert len(runs) >= 9
    assert {run.state for run in runs} == {"done"}, [run.problem for run in runs]
    # A guest outlives its libvirtd, so only the two whose QEMU was killed must boot again.
    assert sum(run.attempt - 1 for run in runs) >= 2
    case = experiment.cases.get()
    wanted = {
        (metric, turn) for metric in load_catalog()["bh-lookup"].metrics_of(case.params) for turn in range(3)
    }
    for run in runs:
        rows = Counter(Sample.objects.filter(run=run).values_list("metric", "iteration"))
        assert rows == dict.fromkeys(wanted, 1), run.pk
    driver.close()
    assert driver.hypervisor.domains(driver.traces.prefix) == []
    assert list(guests(driver.traces.prefix)) == []


class Striker:
    """Strikes boots with one blow each, in the thread that listens to the guest, so that each lands at its moment.

    booting: QEMU is connected and the kernel has not reached its user space; working: the guest has begun a step.
    A blow that a boot survived by having sent everything before it landed goes to the next boot.
    """

    def __init__(self, prefix: str, blows: list[tuple[Moment, Callable[[set[int]], None]]]) -> None:
        self.prefix, self.left = prefix, blows
        self._before: set[int] = set()
        self._free = True

    def hook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have every boot of this process pass here."""
        boot, greet, following = LibvirtDriver.boot, GuestSession.greet, GuestSession._next

        @contextmanager
        def watched(driver: LibvirtDriver, request: BootRequest) -> Iterator[GuestSession]:
            self._before, self._free = set(guests(self.prefix)), True
            blows = self.left
            with boot(driver, request) as session:
                yield session
            if blows != self.left and blows[0][1] is kill:
                self.left = blows

        def greeted(session: GuestSession) -> None:
            self._strike("booting")
            greet(session)

        def followed(session: GuestSession, end: float, deadline_s: float) -> Record:
            record = following(session, end, deadline_s)
            if record.kind == "step":
                self._strike("working")
            return record

        monkeypatch.setattr(LibvirtDriver, "boot", watched)
        monkeypatch.setattr(GuestSession, "greet", greeted)
        monkeypatch.setattr(GuestSession, "_next", followed)

    def _strike(self, moment: Moment) -> None:
        if self._free and self.left and self.left[0][0] == moment:
            (_, blow), *self.left = self.left
            self._free = False
            blow(set(guests(self.prefix)) - self._before)


def kill(pids: set[int]) -> None:
    """End the QEMU that was started for this boot, and wait until the kernel has ended it."""
    (pid,) = pids
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        assert select.select([handle], [], [], GONE_S)[0], f"QEMU {pid} outlives SIGKILL"
    finally:
        os.close(handle)


def kill_libvirtd(_pids: set[int]) -> None:
    """As if its host's init started it again at once."""
    subprocess.run(["pkill", "-KILL", "-x", "libvirtd"], check=True)
    start_libvirtd()


@pytest.fixture
def driver() -> LibvirtDriver:
    """The one that boots in this process."""
    return cast(LibvirtDriver, make_bench(settings.HOME).drivers["libvirt"])
