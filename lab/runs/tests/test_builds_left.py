# SPDX-License-Identifier: GPL-2.0-or-later
"""The experiments that claims of builds look at, and the submitter charged for a build that several wait for."""

from __future__ import annotations

import pytest

from lab.models import Build, Experiment
from lab.runs.claiming import claim_next_build
from lab.runs.order import next_build
from lab.runs.record import Failure, forget_artifact, record_build_failure
from lab.runs.settle import settle_open
from lab.tests.factories import ME, finish_build, make_build, make_experiment, make_user, make_variant

pytestmark = pytest.mark.django_db


def is_noted(experiment: Experiment) -> bool:
    experiment.refresh_from_db()
    return experiment.builds_left


def test_the_last_build_of_an_experiment_takes_it_out_of_the_order_of_builds() -> None:
    experiment = make_experiment()
    base, _ = make_variant(experiment), make_variant(experiment, "p")
    assert base.build
    finish_build(base.build)
    assert is_noted(experiment)
    last = claim_next_build(by=ME)
    assert last
    assert record_build_failure(last, Failure("kernel", "error: made up"))
    assert not is_noted(experiment)


def test_a_build_that_is_queued_again_is_claimed_for_whoever_waits_for_it() -> None:
    shared = make_build("shared")
    experiments = [make_experiment() for _ in range(2)]
    for experiment in experiments:
        make_variant(experiment, build=shared)
    finish_build(shared)
    assert not any(map(is_noted, experiments))
    assert forget_artifact(shared.pk)
    assert all(map(is_noted, experiments))
    Experiment.objects.filter(pk=experiments[0].pk).update(state="cancelled")
    claim = claim_next_build(by=ME)
    assert claim
    assert claim.id == shared.pk


def test_upkeep_notes_what_a_killed_process_left_and_what_needed_no_build() -> None:
    ready = make_experiment()
    make_variant(ready, build=make_build("there", state="built"), state="ready")
    waits = make_experiment()
    waiting = make_variant(waits)
    settle_open()
    assert (is_noted(ready), is_noted(waits)) == (False, True)
    assert next_build() == waiting.build_id


def test_a_shared_build_is_charged_to_whose_turn_it_was() -> None:
    alice, bob = make_user("alice"), make_user("bob")
    hers, his = make_experiment(submitter=alice), make_experiment(submitter=bob)
    shared = make_build("shared")
    make_variant(hers, build=shared), make_variant(his, build=shared)
    her_own, his_own = make_variant(hers, "p"), make_variant(his, "q")
    taken = [claim.id for _ in range(3) if (claim := claim_next_build(by=ME))]
    assert taken == [shared.pk, his_own.build_id, her_own.build_id]
    charged = dict(Build.objects.values_list("pk", "charged_to"))
    assert [charged[pk] for pk in taken] == [alice.pk, bob.pk, alice.pk]
