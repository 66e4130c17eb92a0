# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone

from lab.errors import FieldRefused, NotAllowed, Outdated, UnknownRow
from lab.models import Build, Run, Target, User, Variant
from lab.models.states import BuildState, VariantState
from lab.runs.open_claims import open_claims
from lab.runs.order import next_run
from lab.targets.changes import (
    TargetFields,
    add_target,
    change_target,
    fingerprint,
    has_past,
    remove_target,
    set_target_enabled,
)
from lab.targets.fleet import read_fleet
from lab.targets.health_overview import TargetHealth, target_healths
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
    (target_health,) = target_healths(read_fleet())
    return target_health


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


def test_a_change_made_from_what_is_not_so_any_more_is_refused_and_changes_nothing() -> None:
    row = add_target(by=None, wanted=TargetFields("box"))
    seen = fingerprint(row)
    change_target(by=None, target_id=row.pk, changes={"group": "rack"}, seen=seen)
    with pytest.raises(Outdated, match="box was changed by somebody else in the meantime"):
        change_target(by=None, target_id=row.pk, changes={"group": "", "vcpus": 4}, seen=seen)
    row.refresh_from_db()
    assert (row.group, row.vcpus) == ("rack", 2)
    change_target(by=None, target_id=row.pk, changes={"vcpus": 4})
    row.refresh_from_db()
    assert (row.group, row.vcpus) == ("rack", 4)


def test_boots_and_checks_do_not_make_a_form_outdated() -> None:
    run = waiting()
    seen = fingerprint(run.experiment.target)
    Target.objects.update(faults=2, check_asked_at=timezone.now())
    assert fingerprint(Target.objects.get()) == seen


@pytest.mark.parametrize(
    "access", [{"seconds": float("nan")}, {"since": timezone.now()}, {"behaviour": "a\0"}, {"a\ud800": 1}]
)
def test_what_a_fake_target_plays_can_be_kept_by_any_database(access: dict[str, object]) -> None:
    with pytest.raises(FieldRefused, match="access: contains"):
        add_target(by=None, wanted=TargetFields("box", driver="fake", access=access))


def test_a_target_with_a_past_is_known_before_anybody_tries_to_remove_it() -> None:
    run = waiting()
    target = run.experiment.target
    assert has_past(target.pk)
    with pytest.raises(FieldRefused, match="disable it instead"):
        remove_target(by=None, target_id=target.pk)
    fresh = add_target(by=None, wanted=TargetFields("box"))
    assert not has_past(fresh.pk)
    assert remove_target(by=None, target_id=fresh.pk) == "box"
