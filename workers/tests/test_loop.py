# SPDX-License-Identifier: GPL-2.0-or-later
"""The loop that every worker enters, however it was woken."""

from __future__ import annotations

from typing import Any

import pytest

from lab.errors import LabError
from lab.models import Experiment, Run, Target
from lab.runs.claiming import claim_next_build
from lab.runs.order import ready_targets
from lab.submission.submit import submit_experiment
from lab.targets.drivers import DRIVERS
from lab.tests.factories import ME, finish_builds, make_grid
from workers import local, loop, wakeups
from workers.bench import MAKERS
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.errors import LibvirtMissing
from workers.loop import Scope
from workers.tests.conftest import FakeLab, opens

pytestmark = pytest.mark.django_db


def test_targets_come_in_the_order_of_their_best_boots() -> None:
    later = make_grid(blocks=1)
    urgent = make_grid(blocks=1)
    Experiment.objects.filter(pk=urgent.pk).update(priority=1, target=Target.objects.create(name="z"))
    finish_builds(later)
    finish_builds(urgent)
    assert ready_targets() == ["z", "guest"]
    assert ready_targets(later.pk) == ["guest"]
    Target.objects.filter(name="z").update(enabled=False)
    assert ready_targets() == ["guest"]
    Run.objects.update(state="done")
    assert ready_targets() == []


def test_a_build_of_any_queue_is_claimed_where_none_is_named() -> None:
    experiment = make_grid(blocks=1)
    assert claim_next_build(queue="build.riscv64.gcc", by=ME) is None
    assert claim_next_build(by=ME, experiment_id=experiment.pk + 1) is None
    assert claim_next_build(by=ME) is not None


def test_one_machine_and_a_fleet_take_the_same_pieces_in_the_same_order(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, int]] = []
    guarded = loop._guarded

    def noted(claim: Any) -> Any:
        taken.append((claim.kind, claim.id))
        return guarded(claim)

    monkeypatch.setattr(loop, "_guarded", noted)
    woken = submit_experiment(spec=fake_lab.spec({}, name="woken"), home=fake_lab.home)
    wakeups.build_next("build.x86_64.gcc")
    wakeups.boot_next("guest")
    by_message, taken[:] = list(taken), []
    polled = submit_experiment(spec=fake_lab.spec({}, name="polled"), home=fake_lab.home)
    local.work_through(polled.pk)
    woken.refresh_from_db()
    polled.refresh_from_db()
    assert (woken.state, polled.state) == ("done", "done")
    # The second experiment shares the first one's kernel.
    assert [kind for kind, _ in by_message] == ["build", *["run"] * 6]
    assert [kind for kind, _ in taken] == ["run"] * 6
    positions = [list(Run.objects.order_by("pk").values_list("pk", flat=True)).index(pk) for _, pk in taken]
    assert positions == [6 + place for place in range(6)]


def test_an_experiment_of_one_machine_that_is_not_ready_ends_with_the_reason(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = submit_experiment(spec=fake_lab.spec({}, name="no room"), home=fake_lab.home)
    monkeypatch.setattr("workers.loop.why_idle", lambda builds: "no room")
    monkeypatch.setattr("workers.local.why_idle", lambda builds: "no room")
    with pytest.raises(LabError, match=f"experiment {experiment.pk} waits: no room"):
        local.work_through(experiment.pk)
    assert not loop.take_one(Scope())
    assert not Run.objects.exclude(state="queued").exists()


def test_a_libvirt_that_restarts_has_time_before_its_target_is_out_of_service(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(loop, "sleep", pauses.append)
    tries = iter(range(2))

    def script(_request: BootRequest) -> Script:
        if next(tries, None) is not None:
            raise LibvirtMissing("libvirt does not answer")
        return opens(1000.0)

    fake_lab.scripts[""] = script
    assert fake_lab.run(fake_lab.spec({})).state == "done"
    assert pauses == [loop.UNREADY_S] * 2
    assert set(Run.objects.values_list("attempt", flat=True)) == {1}
    assert Target.objects.get(name="guest").quarantined_at is None


def test_every_declared_driver_can_be_made() -> None:
    assert set(MAKERS) == set(DRIVERS)
