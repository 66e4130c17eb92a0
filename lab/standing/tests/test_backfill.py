# SPDX-License-Identifier: GPL-2.0-or-later
"""Backfill: the revisions that a standing experiment skipped are measured later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.conftest import P1
from lab.models import Standing, User
from lab.standing.changes import StandingFields, change_standing, make_standing
from lab.standing.new_revisions import LookOutcome, look
from lab.standing.tests.conftest import NOON
from lab.standing.tests.test_standing import finish, queued_by
from lab.tests.tiny_tree import git

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def test_backfill_measures_what_was_passed_over_newest_first_when_nothing_newer_waits(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], standing: Standing
) -> None:
    Standing.objects.update(backfill=True)
    looked()
    finish()
    older, newer, tip = commit("a"), commit("b"), commit("c")
    order = []
    for _ in range(4):
        outcome = looked()
        if outcome.experiment:
            order.append(queued_by(outcome.experiment).base_commit)
            assert looked().experiment is None
        finish()
    assert order == [tip, newer, older]
    assert Standing.objects.get().last_commit == tip


def test_backfill_goes_on_after_the_branch_was_rewritten(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], work: Path
) -> None:
    Standing.objects.update(backfill=True)
    commit("to be rewritten")
    looked()
    finish()
    git(work, "reset", "-q", "--hard", "HEAD~1")
    commit("instead")
    looked()
    finish()
    skipped, tip = commit("a"), commit("b")
    outcome = looked()
    assert queued_by(outcome.experiment).base_commit == tip
    assert "they are measured later" in outcome.problem
    finish()
    assert queued_by(looked().experiment).base_commit == skipped


def test_backfill_passes_over_a_revision_that_is_refused(
    charlie: User, fields: Callable[..., StandingFields], commit: Callable[[str], str], work: Path, home: Path
) -> None:
    spec = dict(fields().spec) | {"patches": [P1]}
    standing = make_standing(by=charlie, fields=fields(spec=spec, backfill=True))
    measured = []

    def look_once() -> LookOutcome:
        outcome = look(standing_id=standing.pk, now=NOON, home=home)
        assert outcome is not None
        if outcome.experiment:
            measured.append(queued_by(outcome.experiment).name.rpartition(" ")[2])
        finish()
        return outcome

    commit("first")
    look_once()
    commit("older")
    text = (work / "fs" / "inode.c").read_text()
    (work / "fs" / "inode.c").write_text("nothing is left\n")
    commit("emptied")
    (work / "fs" / "inode.c").write_text(text)
    commit("filled")
    look_once()
    assert "emptied is not measured" in look_once().problem
    assert measured == ["first", "filled", "older"]


def test_backfill_passes_a_long_stretch_of_revisions_that_are_refused(
    charlie: User,
    fields: Callable[..., StandingFields],
    commit: Callable[[str], str],
    work: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lab.standing.new_revisions.TRIED_AT_ONCE", 2)
    spec = dict(fields().spec) | {"patches": [P1]}
    standing = make_standing(by=charlie, fields=fields(spec=spec, backfill=True))

    def looked_for() -> str:
        outcome = look(standing_id=standing.pk, now=NOON, home=home)
        assert outcome is not None
        finish()
        return queued_by(outcome.experiment).base_commit if outcome.experiment else outcome.problem

    first = commit("first")
    assert looked_for() == first
    older, text = commit("older"), (work / "fs" / "inode.c").read_text()
    (work / "fs" / "inode.c").write_text("nothing is left\n")
    for number in range(3):
        commit(f"emptied {number}")
    (work / "fs" / "inode.c").write_text(text)
    filled = commit("filled")
    assert looked_for() == filled
    assert "emptied 1 is not measured" in looked_for()
    assert looked_for() == older
    # With another description each may be accepted.
    change_standing(name=standing.name, by=charlie, changes={"spec": fields().spec})
    assert looked_for() not in {first, older, filled}
