# SPDX-License-Identifier: GPL-2.0-or-later
"""The straight path from submission to page, over a pretend kernel and a driver that plays guests."""

from __future__ import annotations

import re
import shutil
import socket

import pytest
from django.test import Client

from lab.models import Build, Experiment, Run, Sample
from lab.profiles.analysis.frame_tree import stacks_of, unpack
from lab.profiles.analysis.source_lines import merged_lines
from lab.runs.order import next_run
from lab.tests.factories import claim_run
from workers import local
from workers.build import build_claimed
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script, played
from workers.errors import GuestHung, GuestPanicked
from workers.tests.conftest import FakeLab, opens
from workers.tests.fakeprofile import profiled

pytestmark = pytest.mark.process

INODE = "fs/inode.c"


@pytest.fixture
def faster(fake_lab: FakeLab) -> str:
    return fake_lab.diff(INODE, "\tWARN_HERE();\n", "")


@pytest.fixture
def broken(fake_lab: FakeLab) -> str:
    return fake_lab.diff(INODE, "return inode;", "return nowhere;")


def outcome(experiment: Experiment, variant: str) -> tuple[str, str]:
    runs = experiment.runs.filter(variant__name=variant, purpose="measured")
    states = set(runs.values_list("outcome", flat=True))
    return ",".join(sorted(states - {""})), ",".join(sorted(set(runs.values_list("state", flat=True))))


def test_a_faster_variant_is_called_an_improvement_and_shown(
    fake_lab: FakeLab, faster: str, client: Client
) -> None:
    fake_lab.scripts["faster"] = lambda request: opens(800.0 + len(fake_lab.driver.requests) % 3)
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    assert experiment.state == "done"
    comparison = experiment.comparisons.get(metric="ns_per_open", variant__role="candidate")
    assert comparison.verdict == "improvement"
    assert comparison.ratio == pytest.approx(0.8, abs=0.01)
    page = client.get(f"/experiments/{experiment.pk}/comparison/").content.decode()
    assert "improvement" in page
    assert "faster" in page


def test_boots_of_the_variants_are_interleaved_in_blocks(fake_lab: FakeLab, faster: str) -> None:
    fake_lab.run(fake_lab.spec({"faster": faster}))
    order = [request.name.partition(":")[0] for request in fake_lab.driver.requests]
    blocks = [set(order[at : at + 3]) for at in range(0, 9, 3)]
    assert blocks == [{"base", "faster", "base-again"}] * 3
    assert fake_lab.driver.open_guests == 0


def test_the_kernel_that_is_booted_is_the_one_that_was_built(fake_lab: FakeLab, faster: str) -> None:
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    releases = dict(experiment.variants.values_list("name", "build__release"))
    assert len(set(releases.values())) == 2
    for request in fake_lab.driver.requests:
        assert request.release == releases[request.name.partition(":")[0]]
        assert request.kernel.is_file()


def test_the_same_submission_again_builds_nothing(fake_lab: FakeLab, faster: str) -> None:
    spec = fake_lab.spec({"faster": faster})
    first = fake_lab.run(spec)
    attempts = dict(Build.objects.values_list("pk", "attempt"))
    second = fake_lab.run(spec)
    assert second.pk != first.pk
    assert dict(Build.objects.values_list("pk", "attempt")) == attempts
    assert second.runs.filter(state="done").count() == first.runs.filter(state="done").count() == 9


def test_a_patch_that_does_not_compile_fails_alone_with_its_first_error(
    fake_lab: FakeLab, faster: str, broken: str, client: Client
) -> None:
    spec = fake_lab.spec({"faster": faster, "broken": broken}, design="one-at-a-time")
    experiment = fake_lab.run(spec)
    variant = experiment.variants.get(name="broken")
    assert variant.state == "failed"
    assert "fs/inode.c:16" in variant.problem
    assert "nowhere" in variant.problem
    assert outcome(experiment, "broken") == ("", "cancelled")
    assert outcome(experiment, "faster") == ("finished", "done")
    assert variant.build is not None
    page = client.get(f"/experiments/{experiment.pk}/").content.decode()
    assert "nowhere" in page
    log = client.get(f"/builds/{variant.build.pk}/log")
    assert log.status_code == 200
    assert "nowhere" in log.content.decode()


def test_a_kernel_that_panics_is_an_outcome_and_the_others_go_on(fake_lab: FakeLab, faster: str) -> None:
    oops = "BUG: kernel NULL pointer dereference\nRIP: 0010:find_inode_fast+0x4/0x20\nKernel panic - not syncing\n"
    panic = Script(problem=GuestPanicked("Kernel panic - not syncing: Fatal exception", oops), console=oops)
    fake_lab.scripts["faster"] = lambda request: panic
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    assert experiment.state == "done"
    assert outcome(experiment, "faster") == ("panicked", "cancelled,failed")
    assert outcome(experiment, "base") == ("finished", "done")
    run = experiment.runs.filter(outcome="panicked").first()
    assert run is not None
    assert run.blame == "kernel"
    assert "fs/inode.c:" in run.problem_detail
    assert {finding["kind"] for finding in run.findings} >= {"panic"}


def test_a_guest_that_hangs_names_the_deadline(fake_lab: FakeLab, faster: str) -> None:
    hung = Script(problem=GuestHung("the guest did not finish within 300 s; it was in step open"))
    fake_lab.scripts["faster"] = lambda request: hung
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    assert outcome(experiment, "faster") == ("hung", "cancelled,failed")
    run = experiment.runs.filter(outcome="hung").first()
    assert run is not None
    assert "300 s" in run.problem


def test_a_workload_that_fails_shows_its_stderr(fake_lab: FakeLab, faster: str) -> None:
    failing = Script(records=played("open", "", status=1, err="showgids: cannot open /sys/x: no such file\n"))
    fake_lab.scripts["faster"] = lambda request: failing
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    assert outcome(experiment, "faster") == ("workload-failed", "cancelled,failed")
    run = experiment.runs.filter(outcome="workload-failed").first()
    assert run is not None
    assert "cannot open /sys/x" in run.problem


def test_one_bad_boot_loses_nothing_that_was_measured(fake_lab: FakeLab, faster: str) -> None:
    third = Script(problem=GuestHung("the guest did not finish within 300 s"))
    boots: list[int] = []

    def script(_request: object) -> Script:
        boots.append(1)
        return third if len(boots) == 3 else opens(800.0)

    fake_lab.scripts["faster"] = script
    five = {"boots": 5, "iterations": 2, "warmup": 1}
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}, measure=five))
    assert experiment.runs.filter(variant__name="faster", state="done").count() == 4
    comparison = experiment.comparisons.get(metric="ns_per_open", variant__role="candidate")
    assert comparison.boots == 4
    assert (comparison.verdict, comparison.partial) == ("improvement", True)


def test_what_a_dead_process_had_claimed_is_taken_up_and_nothing_recorded_is_lost(
    fake_lab: FakeLab, faster: str
) -> None:
    spec = fake_lab.spec({"faster": faster})
    experiment_id = local.take_up(spec, say=print)
    local.build_all(experiment_id)
    for _ in range(3):
        local.boot_next(experiment_id)
    before = set(Sample.objects.values_list("pk", flat=True))
    claimed = next_run(experiment_id)
    assert claimed is not None
    # A process of this host that is gone: its pid cannot exist.
    assert claim_run(claimed, by=f"{socket.gethostname()}:4194305:1") is not None
    said: list[str] = []
    assert local.take_up(spec, say=said.append) == experiment_id
    assert any("resuming it" in line for line in said)
    local.work_through(experiment_id)
    assert before <= set(Sample.objects.values_list("pk", flat=True))
    assert Run.objects.filter(experiment=experiment_id, state="done").count() == 9


def test_an_artifact_that_was_cleared_away_is_built_again(fake_lab: FakeLab, faster: str) -> None:
    experiment_id = local.take_up(fake_lab.spec({"faster": faster}), say=print)
    local.build_all(experiment_id)
    shutil.rmtree(fake_lab.home / "artifacts")
    local.work_through(experiment_id)
    assert Run.objects.filter(experiment=experiment_id, state="done").count() == 9
    assert set(Build.objects.values_list("state", flat=True)) == {"built"}


def test_a_fault_of_ours_is_kept_with_its_traceback_and_is_no_verdict(
    fake_lab: FakeLab, faster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("workers.loop.build_claimed", fails)
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}))
    build = Build.objects.get(variants__experiment=experiment, variants__name="base")
    assert (build.state, build.blame) == ("failed", "lab")
    assert "ZeroDivisionError: ours" in build.problem
    assert "Traceback" in build.problem_detail
    assert experiment.state == "failed"
    assert build_claimed is not fails
    assert experiment.comparisons.exclude(verdict="inconclusive").count() == 0


def test_a_profiled_boot_leaves_profiles_counters_and_what_was_not_there(
    fake_lab: FakeLab, faster: str
) -> None:
    said = opens(1000.0).records[-2][2].decode()

    def script(request: BootRequest) -> Script:
        return profiled(request, "open", said) if "profiled" in request.name else opens(1000.0)

    fake_lab.scripts[""] = script
    measure = {"boots": 2, "iterations": 2, "warmup": 1, "profile": True, "profile_boots": 1}
    experiment = fake_lab.run(fake_lab.spec({"faster": faster}, measure=measure))
    runs = experiment.runs.filter(purpose="profiled")
    assert {run.state for run in runs} == {"done"}
    for run in runs:
        assert run.counters == {"perf stat": {"context-switches": 12.0}, "vmstat": {"pgfault": 7}}
        assert {row["what"] for row in run.unavailable} == {
            *("cycles", "slab", "the kernel's build id", "waits for spinlocks"),
        }
        cpu, lock = run.profiles.order_by("kind")
        assert cpu.samples == 3
        assert cpu.overhead == pytest.approx(0.25)
        assert (lock.kind, lock.samples, lock.waits) == ("lock", 500, 1)
        for profile in (cpu, lock):
            # The kernel of the test is built with line tables as every other is; the first of its files is linked first.
            functions = {name for names, _ in stacks_of(unpack(bytes(profile.tree))) for name in names[1:]}
            lines = merged_lines([profile.lines])
            assert lines.keys() == functions
            assert all(re.fullmatch(r"(fs|init)/\w+\.c:\d+", line) for line in lines.values()), lines
    assert not experiment.runs.filter(purpose="measured").exclude(counters={}).exists()
