# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone

from lab.models import Build, Experiment, Target
from lab.models.states import BuildState
from lab.targets.waiting_boots import WaitingBoots, waiting_boots
from lab.tests.factories import finish_builds, make_grid

pytestmark = pytest.mark.django_db


def ready(**columns: object) -> Experiment:
    """An experiment whose boots could all be taken; columns: of its builds."""
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    Build.objects.filter(variants__experiment=experiment).update(**columns)
    return experiment


def only() -> WaitingBoots:
    (boots,) = waiting_boots()
    return boots


def minutes_ago(minutes: float) -> object:
    return timezone.now() - timedelta(minutes=minutes)


def test_boots_wait_for_the_target_that_their_experiment_asked_for() -> None:
    experiment = ready()
    boots = only()
    assert (boots.asked, boots.target, boots.group) == (experiment.target_id, None, "")
    assert (boots.number, boots.ready) == (experiment.runs.count(), experiment.runs.count())


def test_boots_whose_block_began_wait_for_its_target() -> None:
    experiment = ready()
    other = Target.objects.create(name="other", group="rack")
    experiment.runs.filter(position=0).update(target=other)
    places = {boots.target: boots.number for boots in waiting_boots()}
    assert places == {other.pk: 1, None: experiment.runs.count() - 1}


def test_a_boot_could_have_been_taken_since_its_kernel_was_built_or_since_it_was_queued() -> None:
    experiment = ready(finished_at=minutes_ago(10))
    experiment.runs.update(created_at=minutes_ago(60))
    assert only().ready_s == pytest.approx(600, abs=30)
    assert only().queued_s == pytest.approx(3600, abs=30)
    experiment.runs.update(created_at=minutes_ago(5))
    assert only().ready_s == pytest.approx(300, abs=30)


def test_a_kernel_that_is_built_again_holds_its_experiments_boots_back() -> None:
    experiment = ready(finished_at=minutes_ago(10))
    Experiment.objects.update(builds_left=True)
    Build.objects.filter(variants__experiment=experiment).update(state=BuildState.QUEUED)
    boots = only()
    assert (boots.number, boots.ready) == (experiment.runs.count(), 0)
    assert (boots.ready_s, boots.queued_s) == (None, None)


def test_a_kernel_that_is_ready_before_another_of_its_experiment_makes_no_boot_ready() -> None:
    experiment = ready(finished_at=minutes_ago(10))
    Experiment.objects.update(builds_left=True)
    Build.objects.filter(variants__experiment=experiment, variants__name="p").update(
        state=BuildState.BUILDING
    )
    boots = only()
    assert (boots.ready, boots.ready_s, boots.queued_s) == (0, None, None)


def test_boots_of_experiments_that_have_ended_do_not_wait() -> None:
    ready()
    Experiment.objects.update(state="cancelled")
    assert waiting_boots() == ()
