# SPDX-License-Identifier: GPL-2.0-or-later
"""A build ends while an experiment that needs it is being submitted. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lab.conftest import Describe
from lab.experiments.spec import ExperimentSpec
from lab.models import Build, Experiment
from lab.runs.claim import Claim
from lab.runs.claiming import claim_next_build
from lab.runs.record import BuildSuccess, Failure, record_build_failure, record_build_success
from lab.runs.settle import cancel_experiment, settle_open
from lab.submission import submit
from lab.tests.at_once import at_once
from lab.tests.factories import ME

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]

Submit = Callable[[ExperimentSpec, Callable[[], bool]], Experiment]


@pytest.fixture(params=["when its builds are known", "before it is committed"])
def submitted_beside(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Submit:
    """Submit an experiment, and have something else happen before it is committed."""

    def submit_beside(spec: ExperimentSpec, do: Callable[[], bool]) -> Experiment:
        written, done = Event(), Event()

        def wait(_: Experiment) -> None:
            written.set()
            # No longer: the other one may have to wait for the commit.
            done.wait(1.0)

        def cases_later(experiment: Experiment, prepared: Any) -> Any:
            wait(experiment)
            return write_cases(experiment, prepared)

        write_cases = submit._write_cases
        early = request.param == "when its builds are known"
        if early:
            monkeypatch.setattr(submit, "_write_cases", cases_later)

        def beside() -> bool:
            assert written.wait(30)
            try:
                return do()
            finally:
                done.set()

        on_written = (lambda _: None) if early else wait
        experiment, happened = at_once(
            lambda: submit.submit_experiment(spec=spec, home=home, on_written=on_written), beside
        )
        assert happened
        assert isinstance(experiment, Experiment)
        return experiment

    return submit_beside


@pytest.fixture
def first(describe: Describe, home: Path) -> Experiment:
    """An experiment that waits for its kernels."""
    return submit.submit_experiment(spec=describe(), home=home)


@pytest.fixture
def base(first: Experiment) -> Claim:
    """Its base, which a worker builds now."""
    claim = claim_next_build(by=ME)
    assert claim is not None
    assert claim.id == first.variants.get(role="base").build_id
    return claim


def test_a_kernel_that_is_built_while_it_is_submitted_again_is_booted_for_both(
    describe: Describe, base: Claim, submitted_beside: Submit
) -> None:
    built = BuildSuccess("a" * 64, "6.1", "c0de")
    second = submitted_beside(describe(name="second"), lambda: record_build_success(base, built))
    assert second.variants.get(role="base").state == "ready"


def test_an_experiment_whose_base_fails_while_it_is_submitted_ends(
    describe: Describe, base: Claim, submitted_beside: Submit
) -> None:
    failed = Failure("kernel", "does not compile")
    second = submitted_beside(describe(name="second"), lambda: record_build_failure(base, failed))
    while claim := claim_next_build(by=ME):
        record_build_failure(claim, failed)
    settle_open()
    second.refresh_from_db()
    assert second.state == "failed"


def test_the_kernels_of_a_cancelled_experiment_are_built_for_one_that_is_being_submitted(
    describe: Describe, first: Experiment, submitted_beside: Submit
) -> None:
    second = submitted_beside(describe(name="second"), lambda: cancel_experiment(first.pk))
    builds = Build.objects.filter(variants__experiment=second)
    assert set(builds.values_list("state", flat=True)) == {"queued"}
