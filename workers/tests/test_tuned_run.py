# SPDX-License-Identifier: GPL-2.0-or-later
"""A declared tuning goes with every boot, and a machine that does not obey it leaves its boots out."""

from __future__ import annotations

import pytest

from lab.models import Run, Target
from workers.tests.conftest import FakeLab

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def test_boots_of_a_machine_that_is_not_tuned_as_declared_do_not_count(fake_lab: FakeLab) -> None:
    Target.objects.filter(name="guest").update(tuning={"governor": "performance"})
    fake_lab.run(fake_lab.spec({}, measure={"boots": 2, "iterations": 2, "warmup": 1}))
    assert all("kperflab.governor=performance" in request.cmdline for request in fake_lab.driver.requests)
    run = Run.objects.order_by("position")[0]
    line = "governor: asked performance, is unknown to its kernel"
    assert run.environment["tuning"] == {"asked": {"governor": "performance"}, "untuned": [line]}
    assert run.invalid == [f"the machine was not tuned: {line}"]


def test_nothing_asked_is_nothing_added(fake_lab: FakeLab) -> None:
    fake_lab.run(fake_lab.spec({}, measure={"boots": 2, "iterations": 2, "warmup": 1}))
    assert all("kperflab." not in request.cmdline for request in fake_lab.driver.requests)
    assert all("tuning" not in run.environment and run.invalid == [] for run in Run.objects.all())
