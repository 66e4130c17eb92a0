# SPDX-License-Identifier: GPL-2.0-or-later
"""A deadline that passes: the submission's fault where it had the CPUs or did not want them, the lab's where others had them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.errors import BuildInterrupted, BuildTimedOut, ConfigRejected
from kernels.sandbox import memory as cgroup
from kernels.sandbox.cpu_time import CpuUse
from kernels.sandbox.tests.test_killed import configuring
from kernels.tests.inside import LIMITS, attempt, new_place
from kernels.tests.pretend import PretendKernel

pytestmark = [pytest.mark.hostile, pytest.mark.process]

SPIN = "while :; do :; done"
WORK = "python3 -c 'sum(range(40_000_000))'"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a control group")


@pytest.fixture
def busy_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host gives what is ready to run no CPU time at all, as far as the counters tell."""
    monkeypatch.setattr("kernels.sandbox.cpu_time._LEAST_S", 0.0)
    monkeypatch.setattr(cgroup.MemoryGroup, "cpu_seconds", lambda group: 0.0)


def limited(builder: Builder, **limits: float) -> Builder:
    return Builder(builder.home, Limits(**{"cores": 2, **limits}))  # type: ignore[arg-type]


@pytest.mark.usefixtures("busy_host")
def test_a_config_on_a_host_without_time_for_it_is_tried_again(
    builder: Builder, pretend: PretendKernel
) -> None:
    with pytest.raises(
        BuildInterrupted, match="less than half of the CPU time that it was ready to use"
    ) as caught:
        limited(builder, seconds=4).key(pretend.request(configuring(pretend, SPIN)))
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


@pytest.mark.usefixtures("busy_host")
def test_a_build_on_a_host_without_time_for_it_is_tried_again(
    builder: Builder, pretend: PretendKernel
) -> None:
    revision = pretend.edited("Makefile", "trouble-none:", f"trouble-none:\n\t@{SPIN}")
    builder.build(pretend.request())
    with pytest.raises(BuildInterrupted, match="the build was stopped") as caught:
        limited(builder, seconds=5).build(pretend.request(revision))
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


@pytest.mark.usefixtures("busy_host")
def test_a_config_that_waits_for_itself_is_the_submissions_fault_on_the_busiest_host(
    builder: Builder, pretend: PretendKernel
) -> None:
    requests = [pretend.request(configuring(pretend, idle)) for idle in ("sleep 1000", "kill -STOP 0")]
    with ThreadPoolExecutor() as pool:  # their deadlines pass at the same time
        for asked in [pool.submit(limited(builder, seconds=20).key, request) for request in requests]:
            with pytest.raises(ConfigRejected, match="it did not end within 20 s") as caught:
                asked.result()
            assert caught.value.blame == "submission"


def test_a_config_that_had_its_time_is_the_submissions_fault(
    builder: Builder, pretend: PretendKernel
) -> None:
    with pytest.raises(ConfigRejected, match="it used more than 1 s of CPU time"):
        limited(builder, seconds=120, cpu_seconds=1).key(pretend.request(configuring(pretend, SPIN)))


def test_a_build_that_sleeps_timed_out_by_itself(builder: Builder, pretend: PretendKernel) -> None:
    builder.build(pretend.request())
    with pytest.raises(BuildTimedOut):
        limited(builder, seconds=3).build(pretend.request(pretend.variant({"trouble.h": "hang"})))


@ROOT
@pytest.mark.parametrize(
    "script",
    [
        WORK,
        "python3 -c 'import signal, subprocess; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        'subprocess.Popen(["python3", "-c", "sum(range(40_000_000))"]).wait()\'',
        f'(setsid sh -c "{WORK}; touch done" &); until [ -e done ]; do sleep 0.1; done',
        "printf 'kperflab-sandbox:\\n0m0.0s 0m0.0s\\n0m0.0s 0m0.0s\\n'; " + f"{WORK}; kill -9 $PPID",
    ],
)
def test_no_process_hides_its_cpu_time(tmp_path: Path, script: str) -> None:
    spent = attempt(new_place(tmp_path), script, limits=replace(LIMITS, seconds=60)).ended.cpu_seconds
    assert spent > 0.2


def test_without_groups_the_time_is_summed_over_the_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cgroup, "_make", lambda limit, root: None)
    limits = replace(LIMITS, seconds=60, cpu_seconds=1)
    assert attempt(new_place(tmp_path), SPIN, limits=limits).ended.stopped == "cpu"


def test_processes_beyond_the_cores_are_not_counted_as_ready() -> None:
    with cgroup.memory_group(1 << 30, Path("/nowhere")) as group:
        use = CpuUse(group, os.getpid(), 1)
        use.look(every=0)
        assert use.ready_seconds >= 0
        assert not use.starved()
