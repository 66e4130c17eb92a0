# SPDX-License-Identifier: GPL-2.0-or-later
"""An answer that comes too late is noted with the present state of its own build or run."""

from __future__ import annotations

import pytest

from lab.models import LateAnswer
from lab.models.states import BuildState, RunState
from lab.runs.claim import Claim
from lab.runs.record import refuse_late
from lab.tests.factories import make_build, make_case, make_experiment, make_run, make_variant

pytestmark = pytest.mark.django_db


def why_late(claim: Claim) -> str:
    refuse_late(claim, "it took 3 ns")
    return LateAnswer.objects.get(kind=claim.kind, work=claim.id).why


def test_a_build_and_a_run_of_one_number_are_not_confused() -> None:
    experiment = make_experiment()
    build = make_build("a", state=BuildState.BUILT)
    run = make_run(
        make_variant(experiment, build=build), make_case(experiment), pk=build.pk, state=RunState.FAILED
    )
    assert why_late(Claim("build", build.pk, "old")) == "it is built now"
    assert why_late(Claim("run", run.pk, "old")) == "it is failed now"


def test_work_that_another_worker_has_names_that_worker() -> None:
    build = make_build("a", state=BuildState.BUILDING, claimed_by="north")
    assert why_late(Claim("build", build.pk, "old")) == "north now has the claim"


def test_work_that_was_deleted_is_no_other_work() -> None:
    build = make_build("a")
    assert why_late(Claim("run", build.pk, "old")) == "it was deleted"
