# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone

from lab.errors import NotAllowed, UnknownRow
from lab.models import Build, Run, Target, User, Variant
from lab.queries.claims import open_claims
from lab.queries.targets import TargetHealth, target_healths
from lab.queue.claim import next_run
from lab.states import BuildState, VariantState
from lab.targets.hardware import set_target_enabled
from lab.tests.factories import claimed_run, make_grid, make_user

pytestmark = pytest.mark.django_db


def waiting(**fields: object) -> Run:
    """A run that could boot, of an experiment that waits."""
    experiment = make_grid(blocks=1)
    Build.objects.update(state=BuildState.BUILT)
    Variant.objects.update(state=VariantState.READY)
    experiment.runs.update(**fields)
    return experiment.runs.order_by("position")[0]


def health() -> TargetHealth:
    (one,) = target_healths()
    return one


def test_a_target_that_boots_is_well() -> None:
    waiting(state="done", finished_at=timezone.now())
    assert (health().finished, health().complaints) == (2, ())


def test_boots_that_the_lab_lost_make_a_target_ill_and_those_a_kernel_lost_do_not() -> None:
    run = waiting(state="failed", blame="kernel", finished_at=timezone.now())
    assert health().complaints == ()
    Run.objects.filter(pk=run.pk).update(blame="lab")
    assert health().complaints == ("1 of the 2 boots of the last day failed by the lab's fault",)
    Run.objects.update(finished_at=timezone.now() - timedelta(days=2))
    assert health().complaints == ()


def test_a_target_that_ends_no_boot_though_some_wait_is_ill() -> None:
    waiting(created_at=timezone.now() - timedelta(hours=2))
    assert health().complaints == ("no boot has ended for an hour though 2 wait",)
    Build.objects.filter(variants__name="p").update(state=BuildState.BUILDING)
    assert health().complaints == (), "boots that wait for a kernel are not the target's fault"


def test_a_disabled_target_boots_nothing_new_and_says_so() -> None:
    run = waiting()
    charlie = make_user("charlie", User.Role.OPERATOR)
    target = Target.objects.get()
    assert next_run() == run.pk
    set_target_enabled(by=charlie, target_id=target.pk, enabled=False)
    assert next_run() is None
    assert health().complaints == ("disabled; 2 boots wait for it",)
    set_target_enabled(by=charlie, target_id=target.pk, enabled=True)
    assert next_run() == run.pk


def test_only_operators_disable_targets() -> None:
    waiting()
    with pytest.raises(NotAllowed):
        set_target_enabled(by=make_user("alice"), target_id=Target.objects.get().pk, enabled=False)
    with pytest.raises(UnknownRow):
        set_target_enabled(by=make_user("c", User.Role.OPERATOR), target_id=0, enabled=False)


def test_an_open_claim_names_its_worker_and_whether_its_lease_is_over() -> None:
    run = waiting()
    claimed_run(run)
    (claim,) = open_claims()
    assert (claim.kind, claim.id, claim.claimed_by, claim.over) == ("run", run.pk, "host:1:1", False)
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert open_claims()[0].over
