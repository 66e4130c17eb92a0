# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks of standing experiments that go wrong: killed half way, or at a revision that cannot be measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.conftest import P1
from lab.models import Experiment, Standing, User
from lab.standing.changes import StandingFields, make_standing
from lab.standing.new_revisions import LookOutcome, look
from lab.standing.tests.test_standing import NOON, finish, queued_by
from lab.standing.tests.test_standing import charlie as charlie
from lab.standing.tests.test_standing import commit as commit
from lab.standing.tests.test_standing import fields as fields
from lab.standing.tests.test_standing import looked as looked
from lab.standing.tests.test_standing import standing as standing
from lab.standing.tests.test_standing import work as work
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


def test_a_skipped_revision_that_cannot_be_measured_keeps_no_older_one_from_it(
    charlie: User, fields: Callable[..., StandingFields], commit: Callable[[str], str], work: Path, home: Path
) -> None:
    spec = dict(fields().spec) | {"patches": [P1]}
    standing = make_standing(by=charlie, fields=fields(spec=spec, backfill=True))

    def measured() -> str | None:
        outcome = look(standing_id=standing.pk, now=NOON, home=home)
        assert outcome is not None
        finish()
        return queued_by(outcome.experiment).base_commit if outcome.experiment else None

    measured()
    older = commit("older")
    text = (work / "fs" / "inode.c").read_text()
    (work / "fs" / "inode.c").write_text("nothing is left\n")
    emptied = commit("emptied")
    (work / "fs" / "inode.c").write_text(text)
    tip = commit("filled")
    assert [measured() for _ in range(3)] == [tip, older, None]
    assert f"{emptied[:12]} emptied is not measured" in Standing.objects.get().problem
