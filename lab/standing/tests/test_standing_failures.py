# SPDX-License-Identifier: GPL-2.0-or-later
"""A look of a standing experiment that is killed half way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.models import Experiment
from lab.standing.new_revisions import LookOutcome
from lab.standing.tests.test_standing import finish
from lab.submission.submit import submit_experiment

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def test_a_look_that_is_killed_when_it_has_queued_a_revision_has_it_measured_once(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = commit("second")

    def then_killed(**named: Any) -> Experiment:
        submit_experiment(**named)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("lab.standing.new_revisions.submit_experiment", then_killed)
        with pytest.raises(SystemExit):
            looked()
    finish()
    assert looked().experiment is None
    assert Experiment.objects.filter(base_commit=tip).count() == 1
