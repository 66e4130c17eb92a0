# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import KeyBusy, NotAllowed, Outdated, UnknownRow
from lab.experiments.spec import ExperimentSpec, spec_digest, spec_from_mapping
from lab.experiments.stored_spec import description_as_toml, stored_spec
from lab.models import Experiment, IdempotencyKey, User
from lab.models.states import ExperimentState
from lab.submission.duplicates import Submitted, submit_once
from lab.submission.rerun import cancel_for, rerun_experiment
from lab.tests.factories import make_experiment, make_grid, make_user
from lab.tests.fetchers import at_hand

MAPPING = {
    "name": "kernfs",
    "tree": "debian-6.1",
    "patches": [
        {"name": "p", "text": "From x\n\ndiff --git a/f b/f\n", "excludes": ["q"]},
        {"name": "q", "catalog": "vfs-iget-rcu"},
    ],
    "cases": [{"workload": "showgids", "preset": "smoke", "params": {"threads": 2}}],
    "measure": {"boots": "auto", "profile": True},
}


@pytest.fixture
def spec() -> ExperimentSpec:
    return spec_from_mapping(MAPPING)


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Submission without a tree: the row alone is written."""

    def submit(
        *, spec: ExperimentSpec, by: User, origin: Any, home: Path | None, on_written: Callable[..., None]
    ) -> Experiment:
        row = make_experiment(
            name=spec.name,
            submitter=by,
            origin=origin,
            digest=spec_digest(spec),
            spec=spec.model_dump(mode="json"),
        )
        on_written(row)
        return row

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    monkeypatch.setattr("lab.submission.web_process.check_here", at_hand)


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob")


def test_the_same_description_sent_twice_is_one_experiment(spec: ExperimentSpec, alice: User) -> None:
    first = submit_once(spec=spec, by=alice)
    second = submit_once(spec=spec, by=alice)
    assert (first.already, second.already) == (False, True)
    assert first.experiment == second.experiment


def test_one_page_of_the_form_is_one_experiment_even_when_that_is_over(
    spec: ExperimentSpec, alice: User
) -> None:
    first = submit_once(spec=spec, by=alice, form="k")
    Experiment.objects.update(state=ExperimentState.DONE)
    assert submit_once(spec=spec, by=alice, form="k") == Submitted(first.experiment, True)
    changed = spec_from_mapping({**MAPPING, "name": "another"})
    assert not submit_once(spec=changed, by=alice, form="k").already
    assert not submit_once(spec=spec, by=alice, form="another page").already


def test_the_second_click_waits_for_the_first(spec: ExperimentSpec, alice: User) -> None:
    key = f"form:k:{spec_digest(spec)}"
    row = IdempotencyKey.objects.create(user=alice, key=key, body_sha256=spec_digest(spec))
    with pytest.raises(KeyBusy):
        submit_once(spec=spec, by=alice, form="k", wait_s=0)
    row.experiment = make_experiment()
    row.save()
    assert submit_once(spec=spec, by=alice, form="k") == Submitted(row.experiment, True)


def test_two_people_have_an_experiment_each(spec: ExperimentSpec, alice: User, bob: User) -> None:
    assert submit_once(spec=spec, by=alice).experiment != submit_once(spec=spec, by=bob).experiment


def test_an_experiment_that_is_over_may_be_sent_again(spec: ExperimentSpec, alice: User) -> None:
    first = submit_once(spec=spec, by=alice).experiment
    Experiment.objects.update(state=ExperimentState.DONE)
    assert submit_once(spec=spec, by=alice).experiment != first


def test_a_rerun_is_a_new_experiment_of_the_same_description(
    spec: ExperimentSpec, alice: User, bob: User
) -> None:
    first = submit_once(spec=spec, by=alice).experiment
    with pytest.raises(Outdated, match="is queued: wait until it finishes"):
        rerun_experiment(experiment_id=first.pk, by=bob)
    Experiment.objects.update(state=ExperimentState.DONE)
    again = rerun_experiment(experiment_id=first.pk, by=bob).experiment
    assert (again.origin, again.submitter, again.digest) == (first, bob, first.digest)
    assert rerun_experiment(experiment_id=first.pk, by=bob).already
    with pytest.raises(UnknownRow):
        rerun_experiment(experiment_id=first.pk + 99, by=bob)


def test_a_stored_description_is_read_back_whole(spec: ExperimentSpec, alice: User) -> None:
    row = submit_once(spec=spec, by=alice).experiment
    row.refresh_from_db()
    assert stored_spec(row) == spec
    assert spec_from_mapping(tomllib.loads(description_as_toml(row.spec))) == spec


def turned_round(value: Any) -> Any:
    """The same JSON value, its fields in another order: PostgreSQL does not keep the one they were written in."""
    if isinstance(value, dict):
        return {key: turned_round(value[key]) for key in reversed(value)}
    return [turned_round(element) for element in value] if isinstance(value, list) else value


def test_a_description_is_written_in_one_order_whatever_the_database_made_of_it(spec: ExperimentSpec) -> None:
    stored = spec.model_dump(mode="json")
    text = description_as_toml(stored)
    assert text.startswith('name = "kernfs"\ntree = "debian-6.1"\n')
    assert description_as_toml(turned_round(stored)) == text


def test_a_submitter_cancels_what_is_theirs_and_an_operator_everything(alice: User, bob: User) -> None:
    own, other = make_grid(), make_grid()
    Experiment.objects.filter(pk=own.pk).update(submitter=alice)
    with pytest.raises(NotAllowed, match="is alice's"):
        cancel_for(experiment_id=own.pk, by=bob)
    cancel_for(experiment_id=own.pk, by=alice)
    with pytest.raises(NotAllowed, match="nobody's"):
        cancel_for(experiment_id=other.pk, by=alice)
    cancel_for(experiment_id=other.pk, by=make_user("charlie", User.Role.OPERATOR))
    assert set(Experiment.objects.values_list("state", flat=True)) == {"cancelled"}


def test_a_token_without_the_scope_cancels_nothing(alice: User) -> None:
    row = make_grid()
    Experiment.objects.update(submitter=alice)
    with pytest.raises(NotAllowed, match=r"this token may not cancel .*: its scopes are read"):
        cancel_for(experiment_id=row.pk, by=alice, scopes=("read",))


def test_what_is_over_is_politely_told_so(alice: User) -> None:
    row = make_experiment(state=ExperimentState.DONE, submitter=alice)
    with pytest.raises(Outdated, match="is done already: there is nothing to cancel"):
        cancel_for(experiment_id=row.pk, by=alice)
