# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments over a real repository: what a look queues, what keeps it from queueing, who may ask."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.conftest import P1
from lab.errors import FieldRefused, NotAllowed, SpecError, SubmissionRejected
from lab.models import Experiment, Revision, Run, Standing, Target, Tree, User
from lab.standing.changes import (
    StandingFields,
    change_standing,
    enable_standing,
    make_standing,
    remove_standing,
    run_standing,
    take_push,
)
from lab.standing.new_revisions import LookOutcome, boots_of_a_day, due_standings, look
from lab.standing.quiet_hours import is_quiet
from lab.standing.tests.conftest import NOON, SECRET
from lab.tests.factories import make_user
from lab.tests.tiny_tree import git

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def queued_by(experiment: int | None) -> Experiment:
    assert experiment is not None
    return Experiment.objects.get(pk=experiment)


def finish() -> None:
    Experiment.objects.update(state="done")


def test_the_first_look_measures_the_branchs_newest_revision(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], standing: Standing, charlie: User
) -> None:
    tip = commit("second")
    experiment = queued_by(looked().experiment)
    assert (experiment.base_commit, experiment.standing, experiment.submitter) == (tip, standing, charlie)
    assert experiment.name == f"nightly: {tip[:12]} second"
    assert [variant.name for variant in experiment.variants.all()] == ["base", "base-again"]
    assert standing.last_commit == tip


def test_a_branch_that_has_not_moved_is_not_even_fetched(
    looked: Callable[..., LookOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked()
    finish()
    monkeypatch.setattr("lab.standing.new_revisions.open_named", lambda *_: pytest.fail("fetched"))
    assert looked() == LookOutcome("nightly", None, "")


def test_of_several_new_revisions_the_newest_is_measured_and_the_others_are_told_and_known(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str]
) -> None:
    looked()
    finish()
    between, also, tip = commit("a"), commit("b"), commit("c")
    outcome = looked()
    assert queued_by(outcome.experiment).base_commit == tip
    assert outcome.problem == f"2 revisions before {tip[:12]} skipped"
    assert {between, also, tip} <= set(Revision.objects.values_list("commit", flat=True))
    finish()
    # It stays said until there is something else to say.
    assert looked().problem == outcome.problem


def test_what_is_pushed_while_one_is_measured_waits_for_it(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str]
) -> None:
    first = looked().experiment
    tip = commit("second")
    assert looked() == LookOutcome("nightly", None, f"{tip[:12]} waits for experiment {first}")
    finish()
    assert queued_by(looked().experiment).base_commit == tip


def test_a_default_branch_that_is_renamed_is_followed(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], work: Path
) -> None:
    Standing.objects.update(branch="")
    looked()
    finish()
    git(work, "branch", "-m", "main", "trunk")
    tip = commit("second")
    assert queued_by(looked().experiment).base_commit == tip
    assert Tree.objects.get().default_revision == "trunk"
    git(work, "branch", "-m", "trunk", "main")
    Standing.objects.update(branch="trunk")
    assert 'has no branch "trunk"' in looked().problem


def test_a_rewritten_branch_goes_on_from_its_new_tip(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], work: Path
) -> None:
    old = commit("to be rewritten")
    looked()
    finish()
    git(work, "reset", "-q", "--hard", "HEAD~1")
    tip = commit("instead")
    outcome = looked()
    assert queued_by(outcome.experiment).base_commit == tip
    assert f"{old[:12]} is no longer in it" in outcome.problem


def test_a_patch_that_does_not_apply_any_more_is_told_and_the_next_revision_is_tried(
    charlie: User, fields: Callable[..., StandingFields], commit: Callable[[str], str], work: Path, home: Path
) -> None:
    spec = dict(fields().spec) | {"patches": [P1]}
    standing = make_standing(by=charlie, fields=fields(spec=spec))
    first = look(standing_id=standing.pk, now=NOON, home=home)
    assert first is not None
    assert queued_by(first.experiment).variants.filter(name="one").exists()
    finish()
    text = (work / "fs" / "inode.c").read_text()
    (work / "fs" / "inode.c").write_text("nothing is left\n")
    tip = commit("emptied")
    outcome = look(standing_id=standing.pk, now=NOON, home=home)
    assert outcome is not None
    assert outcome.experiment is None
    assert f"{tip[:12]} emptied is not measured" in outcome.problem
    (work / "fs" / "inode.c").write_text(text)
    commit("filled")
    outcome = look(standing_id=standing.pk, now=NOON, home=home)
    assert outcome is not None
    assert outcome.experiment


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"branch": "mian"}, 'no branch "mian". Did you mean "main"'),
        ({"tree__location": "/nowhere/at/all"}, "not a git repository"),
    ],
)
def test_a_tree_out_of_reach_is_told_and_nothing_is_lost(
    change: dict[str, str], said: str, looked: Callable[..., LookOutcome], standing: Standing
) -> None:
    if "branch" in change:
        Standing.objects.update(**change)
    else:
        Tree.objects.update(location=change["tree__location"])
    outcome = looked()
    assert said.lower() in outcome.problem.lower()
    assert standing.last_commit == ""


def test_a_budget_counts_the_boots_of_all_standing_experiments_in_24_hours(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str], standing: Standing
) -> None:
    Tree.objects.update(boots_a_day=10)
    looked()
    finish()
    assert Run.objects.count() == 6
    now = Experiment.objects.get().created_at
    tip = commit("second")
    outcome = looked(now + timedelta(hours=1))
    assert outcome.experiment is None
    assert outcome.problem.startswith(f"{tip[:12]} waits for the budget of ")
    assert "6 of 10 boots in 24 hours are used, it takes 6" in outcome.problem
    assert boots_of_a_day(standing.tree, now + timedelta(hours=25)) == 0
    assert looked(now + timedelta(hours=25)).experiment


@pytest.mark.parametrize(
    ("start", "end", "quiet"),
    [
        (0, 0, []),
        (7, 7, []),
        (9, 17, list(range(9, 17))),
        (22, 6, [22, 23, 0, 1, 2, 3, 4, 5]),
        (23, 0, [23]),
    ],
)
def test_quiet_hours_may_span_midnight(start: int, end: int, quiet: list[int]) -> None:
    standing = Standing(quiet_from=start, quiet_until=end)
    hours = [hour for hour in range(24) if is_quiet(standing, NOON.replace(hour=hour, minute=59))]
    assert sorted(hours) == sorted(quiet)


def test_in_quiet_hours_nothing_is_looked_at_and_a_push_is_kept_for_later(standing: Standing) -> None:
    Standing.objects.update(quiet_from=0, quiet_until=23, polled_at=NOON)
    assert due_standings(now=NOON + timedelta(hours=1)) == []
    standing.refresh_from_db()
    hour = datetime.now(UTC).hour
    Standing.objects.update(quiet_from=hour, quiet_until=(hour + 2) % 24)
    assert take_push(name="nightly", headers={"X-Gitlab-Token": SECRET}, body=b"{}")
    standing.refresh_from_db()
    assert standing.due
    assert f"until {(hour + 2) % 24:02d}:00 UTC" in standing.problem
    later = datetime.now(UTC) + timedelta(hours=3)
    assert due_standings(now=later) == [standing.pk]


def test_each_is_looked_at_as_often_as_it_says_or_when_pushed_to(standing: Standing) -> None:
    assert due_standings(now=NOON) == [standing.pk]
    Standing.objects.update(polled_at=NOON, poll_every_s=300)
    assert due_standings(now=NOON + timedelta(seconds=299)) == []
    assert due_standings(now=NOON + timedelta(seconds=300)) == [standing.pk]
    Standing.objects.update(due=True)
    assert due_standings(now=NOON) == [standing.pk]
    Standing.objects.update(enabled=False)
    assert due_standings(now=NOON) == []


def test_one_of_two_processes_looks(standing: Standing, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Standing.objects.select_related("tree", "owner").get()
    assert look(standing_id=standing.pk, now=NOON, home=home) is not None
    from lab.standing.new_revisions import _claim

    assert _claim(seen, NOON) is False


def test_run_now_measures_a_revision_again(
    looked: Callable[..., LookOutcome], charlie: User, standing: Standing
) -> None:
    first = looked().experiment
    finish()
    run_standing(name="nightly", by=charlie)
    assert due_standings(now=NOON) == [standing.pk]
    second = looked().experiment
    assert second not in (None, first)
    enable_standing(name="nightly", by=charlie, enabled=False)
    with pytest.raises(FieldRefused, match="enable it first"):
        run_standing(name="nightly", by=charlie)


def test_who_lost_the_right_to_submit_queues_nothing(
    looked: Callable[..., LookOutcome], charlie: User
) -> None:
    User.objects.update(role=User.Role.VIEWER)
    outcome = looked()
    assert outcome.experiment is None
    assert "charlie may no longer submit" in outcome.problem


def test_while_its_target_is_disabled_no_revision_is_refused_for_good(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str]
) -> None:
    Standing.objects.update(backfill=True)
    looked()
    finish()
    between, tip = commit("a"), commit("b")
    looked()
    finish()
    newest = commit("c")
    Target.objects.update(enabled=False)
    outcome = looked()
    assert (outcome.experiment, Standing.objects.get().refused) == (None, [])
    assert outcome.problem.startswith(f'{newest[:12]} waits: target: there is no target "guest"')
    Target.objects.update(enabled=True)
    measured = []
    for _ in range(2):
        outcome = looked()
        measured.append(queued_by(outcome.experiment).base_commit)
        finish()
    assert (measured, tip in measured) == ([newest, between], False)


def test_a_wait_that_is_over_is_not_told_any_more(
    looked: Callable[..., LookOutcome], commit: Callable[[str], str]
) -> None:
    Standing.objects.update(backfill=True)
    looked()
    finish()
    commit("a")
    tip = commit("b")
    looked()
    finish()
    Tree.objects.update(boots_a_day=0)
    assert f"{tip[:12]} waits for the budget" in looked().problem
    Tree.objects.update(boots_a_day=None)
    outcome = looked()
    assert outcome.experiment
    assert "waits" not in outcome.problem


BODY = b'{"ref": "refs/heads/main"}'
DIGEST = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("headers", "genuine"),
    [
        ({"X-Hub-Signature-256": f"sha256={DIGEST}"}, True),
        ({"X-Gitea-Signature": DIGEST}, True),
        ({"X-Forgejo-Signature": DIGEST}, True),
        ({"X-Gitlab-Token": SECRET}, True),
        ({"x-gitlab-token": SECRET}, True),
        ({}, False),
        ({"X-Hub-Signature-256": DIGEST}, False),
        ({"X-Hub-Signature-256": "sha256="}, False),
        ({"X-Hub-Signature": f"sha1={DIGEST}"}, False),
        ({"X-Gitlab-Token": SECRET[:-1]}, False),
        ({"X-Gitlab-Token": ""}, False),
        ({"X-Gitlab-Token": "é" * 40}, False),
    ],
)
def test_a_push_counts_only_with_a_forges_signature(
    headers: dict[str, str], genuine: bool, standing: Standing
) -> None:
    assert take_push(name="nightly", headers=headers, body=BODY) is genuine
    standing.refresh_from_db()
    assert standing.due is genuine


def test_a_signature_of_another_body_an_unknown_name_and_no_secret_are_refused(standing: Standing) -> None:
    headers = {"X-Hub-Signature-256": f"sha256={DIGEST}"}
    assert not take_push(name="nightly", headers=headers, body=BODY + b" ")
    assert not take_push(name="nowhere", headers=headers, body=BODY)
    Standing.objects.update(secret="")
    empty = hmac.new(b"", BODY, hashlib.sha256).hexdigest()
    assert not take_push(name="nightly", headers={"X-Gitlab-Token": ""}, body=BODY)
    assert not take_push(name="nightly", headers={"X-Gitea-Signature": empty}, body=BODY)


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"name": "two words"}, "name", "letters, digits"),
        ({"branch": "a..b"}, "branch", "cannot be a branch"),
        ({"branch": "--upload-pack=x"}, "branch", "cannot be a branch"),
        ({"quiet_from": 24}, "quiet_from", "0 to 23"),
        ({"poll_every_s": 5}, "poll_every_s", "60 to 604,800"),
        ({"secret": "short"}, "secret", "16 to 100"),
        ({"mail_to": ["me"]}, "mail_to", '"me" is not a mail address'),
        ({"mail_to": [f"a{n}@example.org" for n in range(21)]}, "mail_to", "at most 20"),
    ],
)
def test_a_wrong_field_is_named(
    more: dict[str, Any], field: str, said: str, charlie: User, fields: Callable[..., StandingFields]
) -> None:
    with pytest.raises(FieldRefused) as caught:
        make_standing(by=charlie, fields=fields(**more))
    assert caught.value.field == field
    assert said in str(caught.value)


def test_a_wrong_description_is_refused_at_once(charlie: User, fields: Callable[..., StandingFields]) -> None:
    spec = dict(fields().spec)
    with pytest.raises(SpecError, match="showgids"):
        make_standing(by=charlie, fields=fields(spec=spec | {"cases": [{"workload": "showgid"}]}))
    with pytest.raises(SubmissionRejected, match="no target"):
        make_standing(by=charlie, fields=fields(spec=spec | {"target": "nowhere"}))
    with pytest.raises(SubmissionRejected, match="only operators may name a folder"):
        make_standing(by=make_user("alice"), fields=fields())


def test_only_the_owner_and_operators_change_one(
    standing: Standing, charlie: User, fields: Callable[..., StandingFields]
) -> None:
    alice = make_user("alice")
    with pytest.raises(NotAllowed, match="charlie's"):
        change_standing(name="nightly", by=alice, changes={})
    with pytest.raises(NotAllowed):
        run_standing(name="nightly", by=alice)
    with pytest.raises(NotAllowed, match="viewer"):
        make_standing(by=make_user("bob", User.Role.VIEWER), fields=fields(name="b"))
    Standing.objects.update(last_commit="c" * 40)
    changed = change_standing(name="nightly", by=charlie, changes={"branch": "other", "secret": ""})
    assert (changed.branch, changed.last_commit, changed.secret) == ("other", "", SECRET)
    remove_standing(name="nightly", by=charlie)
    assert not Standing.objects.exists()
