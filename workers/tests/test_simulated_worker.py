# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulated worker of bench/fleet claims, renews, records and sends as a real one does."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

import pytest

from bench.fleet import guests
from bench.fleet.farm import Farm, Share
from lab.models import Experiment, Run, Sample, Target
from lab.tests.factories import make_grid

pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def farm(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Farm:
    settings.REDIS = "redis://127.0.0.1:1/0"
    for name in ("CRASHING", "LOST", "DYING", "BROKEN"):
        monkeypatch.setattr(guests, name, 0.0)
    share = Share(0, ("sim-0000",), 1, 1e6, 1, str(tmp_path / "hosts"), str(tmp_path / "result"))
    return Farm(share)


def carry_on(farm: Farm, target: str) -> None:
    """Wake a worker, and do what is due until it finds nothing more."""
    (post,) = (post for posts in farm._idle.values() for post in posts if post.target == target)
    farm._idle[post.queue].remove(post)
    post.busy = True
    farm._due.clear()
    farm._take(post)
    while post.busy and farm._due:
        heapq.heappop(farm._due)[3]()


def test_an_experiment_is_carried_to_its_end(farm: Farm) -> None:
    experiment = make_grid(blocks=2)
    Target.objects.filter(pk=experiment.target_id).update(name="sim-0000", driver="fake")
    carry_on(farm, "")
    carry_on(farm, "sim-0000")
    assert set(Run.objects.values_list("state", flat=True)) == {"done"}
    assert Experiment.objects.get().state == "done"
    wanted = len(guests.METRICS) * (experiment.iterations + experiment.warmup)
    assert Sample.objects.count() == wanted * Run.objects.count()
    assert farm.tally.counts["recorded"] == Run.objects.count()


def test_a_worker_that_dies_keeps_its_claim_and_comes_back_as_another(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_grid(blocks=1)
    Target.objects.filter(pk=experiment.target_id).update(name="sim-0000", driver="fake")
    carry_on(farm, "")
    monkeypatch.setattr(guests, "DYING", 1.0)
    (post,) = (post for posts in farm._idle.values() for post in posts if post.target)
    name = post.identity
    farm._take(post)
    run = Run.objects.get(state="running")
    assert (run.claimed_by, farm.tally.died) == (name, [run.token])
    dead = [post.dead]
    (come_back,) = (act for _, _, kind, act in farm._due if kind == "claim")
    come_back()
    assert [*dead, post.dead] == [True, False]
    assert post.identity != name
