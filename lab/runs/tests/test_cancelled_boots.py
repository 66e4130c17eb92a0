# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots that nobody will make any more are cancelled, whatever changes meanwhile: none keeps its experiment open."""

from typing import Any

import pytest

from lab.models import Build
from lab.models.states import move
from lab.runs import settle as settling
from lab.runs.hand_back import release
from lab.runs.record import Failure, forget_artifact, record_build_failure
from lab.runs.settle import cancel_runs
from lab.tests.factories import claimed_build, claimed_run, finish_builds, finish_run, make_grid

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_boot_whose_state_changes_while_it_is_cancelled_is_cancelled_all_the_same(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    first = experiment.runs.order_by("position").first()
    assert first is not None
    claim = claimed_run(first) if state == "running" else None
    meanwhile = [lambda: release(claim)] if claim else [lambda: claimed_run(first)]

    def moved_by_others(*args: Any, **fields: Any) -> bool:
        while meanwhile:
            meanwhile.pop()()
        return move(*args, **fields)

    monkeypatch.setattr(settling, "move", moved_by_others)
    cancel_runs(experiment.runs.all(), "cancelled", running=True)
    assert set(experiment.runs.values_list("state", flat=True)) == {"cancelled"}


@pytest.mark.parametrize(("name", "left"), [("p", 2), ("base", 0)])
def test_a_kernel_that_was_lost_and_cannot_be_built_again_keeps_no_experiment_open(
    name: str, left: int
) -> None:
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    first = experiment.runs.filter(variant__name=name).earliest("position")
    finish_run(first, {"ns_per_open": [1.0, 2.0]})
    build = Build.objects.get(variants__experiment=experiment, variants__name=name)
    assert forget_artifact(build.pk)
    assert record_build_failure(claimed_build(build), Failure("lab", "the store has no artifacts/x"))
    waiting = experiment.runs.filter(state="queued")
    assert waiting.count() == left
    assert not waiting.filter(variant__build=build).exists()
    for run in waiting:
        finish_run(run, {"ns_per_open": [1.0, 2.0]})
    experiment.refresh_from_db()
    assert experiment.state == "done"
    assert "was not rebuilt: the store has no" in experiment.runs.filter(state="cancelled")[0].problem
