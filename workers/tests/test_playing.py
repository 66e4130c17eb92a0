# SPDX-License-Identifier: GPL-2.0-or-later
"""A fake target plays what its access says, and plays the same for the same seed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.errors import LabError
from lab.models import Experiment, Run, Sample, Target
from lab.targets.quarantine import FAULTS_IN_A_ROW, release_target
from lab.tests.factories import quarantine_target
from workers.bench import MAKERS
from workers.drivers.base import BootRequest, Machine
from workers.drivers.fake import FakeDriver
from workers.drivers.fake_guest import play
from workers.errors import GuestPanicked, GuestSilent, TargetUnready
from workers.run import Bench
from workers.tests.conftest import FakeLab
from workloads.catalog import load_catalog
from workloads.guest.pack import append_plan, pack_plan


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """A boot of showgids, two warm-ups and three iterations, by run and access."""
    (tmp_path / "base").write_bytes(b"")
    showgids = load_catalog()["showgids"]
    plan = showgids.plan({}, iterations=3, warmup=2, purpose="measured", clock="wall", off_cpu=False)
    append_plan(tmp_path / "base", pack_plan(plan, {}), tmp_path / "initrd")

    def make(run: str = "1-1", **access: Any) -> BootRequest:
        return BootRequest(
            name="base: showgids",
            kernel=tmp_path / "vmlinux",
            initrd=tmp_path / "initrd",
            cmdline="",
            machine=Machine(1, 64, "none"),
            disks=(),
            release="6.1.7-lab",
            directory=tmp_path / run,
            boot_deadline_s=5,
            silence_deadline_s=5,
            target="fake-1",
            access=access,
        )

    return make


def lines(request: BootRequest) -> list[dict[str, Any]]:
    with FakeDriver(play).boot(request) as session:
        out = b"".join(record.payload for record in session.records(5) if record.kind == "out")
    return [json.loads(line) for line in out.splitlines()]


def test_a_fake_target_runs_as_many_iterations_as_its_plan_says(asked: Any) -> None:
    iterations = lines(asked(ns_per_open=900, noise=0))
    assert [line["warmup"] for line in iterations] == [True, True, False, False, False]
    assert {round(line["values"]["ns_per_open"]) for line in iterations} == {900}


def test_the_same_attempt_plays_the_same_and_another_one_other_numbers(asked: Any) -> None:
    assert lines(asked("1-1")) == lines(asked("1-1"))
    assert lines(asked("1-1")) != lines(asked("1-2"))
    assert lines(asked("1-1", seed=1)) != lines(asked("1-1", seed=2))


def test_a_boot_takes_its_seconds_with_heartbeats(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 100 + sum(slept), sleep=slept.append)
    monkeypatch.setattr("workers.drivers.fake.time", clock)
    with FakeDriver(play).boot(asked(seconds=0.5)) as session:
        kinds = [record.kind for record in session.records(5)]
    assert sum(slept) == pytest.approx(0.5)
    assert kinds[-4:] == ["beat", "beat", "beat", "bye"]


@pytest.mark.parametrize(
    ("behaviour", "error"), [("panics", GuestPanicked), ("hangs", GuestSilent), ({"hangs": 1.0}, GuestSilent)]
)
def test_a_guest_may_end_badly(asked: Any, behaviour: Any, error: type[Exception]) -> None:
    with FakeDriver(play).boot(asked(behaviour=behaviour)) as session, pytest.raises(error):
        list(session.records(5))


def test_behaviours_are_drawn_by_their_weights(asked: Any) -> None:
    mixed = {"finishes": 0.7, "panics": 0.3}
    scripts = [play(asked(f"{run}-1", behaviour=mixed)) for run in range(200)]
    assert 30 < sum(script.problem is not None for script in scripts) < 90


@pytest.mark.parametrize(
    ("access", "told"),
    [
        ({"behaviour": "explodes"}, "behaviour"),
        ({"seconds": -1}, "seconds"),
        ({"speed": 1}, "speed"),
        ({"behaviour": {"finishes": -1}}, "behaviour.finishes"),
        ({"behaviour": {"finishes": 0}}, "no behaviour"),
    ],
)
def test_an_access_that_makes_no_sense_is_told_with_its_place(
    asked: Any, access: dict[str, Any], told: str
) -> None:
    with pytest.raises(TargetUnready, match=f'fake target "fake-1".*{told}'):
        play(asked(**access))


@pytest.mark.process
def test_an_experiment_on_a_fake_target_is_played_by_its_access(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    Target.objects.create(name="fake-1", driver="fake", access={"ns_per_open": 500, "noise": 0.001})
    driver = MAKERS["fake"](fake_lab.home)
    monkeypatch.setattr("workers.loop.make_bench", lambda home: Bench(home, {"fake": driver}))
    experiment = fake_lab.run(fake_lab.spec({}, target="fake-1"))
    assert experiment.state == "done"
    assert set(Run.objects.values_list("outcome", flat=True)) == {"finished"}
    values = Sample.objects.filter(metric="ns_per_open").values_list("value", flat=True)
    assert all(495 < value < 505 for value in values)


@pytest.mark.process
def test_an_access_that_makes_no_sense_costs_no_run_and_puts_its_target_into_quarantine(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    Target.objects.create(name="fake-1", driver="fake", access={"seconds": "soon"})
    driver = MAKERS["fake"](fake_lab.home)
    monkeypatch.setattr("workers.loop.make_bench", lambda home: Bench(home, {"fake": driver}))
    spec = fake_lab.spec({}, target="fake-1")
    pattern = (
        r'"fake-1" is in quarantine: 3 faults .*fake target "fake-1": seconds.*labctl target release fake-1'
    )
    with pytest.raises(LabError, match=pattern):
        fake_lab.run(spec)
    assert set(Run.objects.values_list("state", "attempt")) == {("queued", 0)}, "no boot was begun"
    target = Target.objects.get(name="fake-1")
    assert target.faults == FAULTS_IN_A_ROW
    Target.objects.filter(pk=target.pk).update(access={"seconds": 0})
    release_target(target_id=target.pk, by=None)
    assert fake_lab.run(spec).state == "done"
    assert set(Run.objects.values_list("state", "attempt")) == {("done", 1)}


@pytest.mark.process
def test_what_waits_for_a_target_in_quarantine_goes_on_once_it_is_released(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target.objects.create(name="fake-1", driver="fake", access={"ns_per_open": 500})
    driver = MAKERS["fake"](fake_lab.home)
    monkeypatch.setattr("workers.loop.make_bench", lambda home: Bench(home, {"fake": driver}))
    quarantine_target(target.pk, "it smokes")
    spec = fake_lab.spec({}, target="fake-1")
    with pytest.raises(LabError, match="it smokes"):
        fake_lab.run(spec)
    release_target(target_id=target.pk, by=None)
    assert fake_lab.run(spec).state == "done"
    assert Experiment.objects.count() == 1
