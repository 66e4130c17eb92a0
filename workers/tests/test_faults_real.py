# SPDX-License-Identifier: GPL-2.0-or-later
"""Real guests while their QEMU and libvirt are killed under them: every boot is recorded once, whole, and none is left.

`bench.faults` does the same to a whole service, whose guests are made up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest
from django.conf import settings

import workers.app  # noqa: F401
from lab.experiments.spec import spec_from_mapping
from lab.models import Experiment, Sample
from workers import local
from workers.bench import make_bench
from workers.drivers.libvirt import LibvirtDriver
from workers.tests.libvirtd import guests, start_libvirtd
from workloads.catalog import load_catalog

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db]

BOOTING_S, WORKING_S = 0.3, 1.6
DESCRIPTION = {
    "name": "under faults",
    "tree": "debian-6.1",
    "patches": [{"name": "no-bh-lru", "catalog": "buffer-no-bh-lru"}],
    "cases": [{"workload": "bh-lookup", "preset": "smoke", "profile": False}],
    "measure": {"boots": 3, "iterations": 2, "warmup": 1, "seed": 11},
}


def test_boots_whose_qemu_or_libvirt_is_killed_are_taken_again_and_recorded_once(
    driver: LibvirtDriver,
) -> None:
    blows: list[tuple[Callable[[int], None], float]] = [
        (kill, BOOTING_S),
        (kill_libvirtd, BOOTING_S),
        (kill, WORKING_S),
        (kill_libvirtd, WORKING_S),
    ]
    experiment_id = local.take_up(spec_from_mapping(DESCRIPTION), say=print)
    striker = Striker(driver.traces.prefix, blows)
    striker.start()
    local.work_through(experiment_id)
    striker.join(30)
    experiment = Experiment.objects.get(pk=experiment_id)
    assert (striker.left, experiment.state) == ([], "done"), experiment.problem
    runs = list(experiment.runs.filter(purpose="measured"))
    # The base boots twice in each of three blocks; a gate may have had more of them taken.
    assert len(runs) >= 9
    assert {run.state for run in runs} == {"done"}, [run.problem for run in runs]
    # Those whose QEMU was killed at least; a guest outlives its libvirtd.
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


class Striker(threading.Thread):
    """Hits each guest that appears with the next blow, so long after it appeared."""

    def __init__(self, prefix: str, blows: list[tuple[Callable[[int], None], float]]) -> None:
        super().__init__(daemon=True)
        self.prefix, self.left = prefix, blows
        self._seen: set[int] = set()

    def run(self) -> None:
        while self.left:
            for pid in set(guests(self.prefix)) - self._seen:
                self._seen.add(pid)
                strike, after_s = self.left[0]
                time.sleep(after_s)
                strike(pid)
                self.left = self.left[1:]
                break
            time.sleep(0.02)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_libvirtd(_pid: int) -> None:
    """As if its host's init started it again at once."""
    subprocess.run(["pkill", "-KILL", "-x", "libvirtd"], check=True)
    start_libvirtd()


@pytest.fixture
def driver() -> LibvirtDriver:
    """The one that boots in this process."""
    return cast(LibvirtDriver, make_bench(settings.HOME).drivers["libvirt"])
