# SPDX-License-Identifier: GPL-2.0-or-later
"""Each field of a description is known to the form, to a clone of an experiment, and to the REST API."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Experiment, Target, User
from lab.tests.descriptions import NOTED, REPRODUCED, SETS, URGENCY, specified, value_at
from lab.tests.factories import make_experiment, make_patch_switch
from web.tests.browserform import BrowserForm
from web.tests.conftest import Page

# A range is cloned as the text of its commits, and the page says so (web/tests/test_changes.py).
CLONED = sorted(set(SETS) - NOTED - REPRODUCED - URGENCY - {"patches[].range"})


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ExperimentSpec]:
    """Stand in for lab.submission.submit, which would import a tree: keep what it is asked to take in."""
    specs: list[ExperimentSpec] = []

    def submit(*, spec: ExperimentSpec, by: User, **_: object) -> Any:
        specs.append(spec)
        return SimpleNamespace(pk=41)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    return specs


def stored(field: str) -> Experiment:
    """An experiment that was submitted with this field."""
    Target.objects.get_or_create(name="guest-2")
    spec = specified(field)
    row = make_experiment(name=spec.name, spec=spec.model_dump(mode="json", exclude={"priority"}))
    for patch in spec.patches:
        make_patch_switch(row, patch.name)
    return row


@pytest.mark.parametrize("field", CLONED)
def test_a_clone_that_is_submitted_unchanged_asks_for_the_very_same(
    field: str, page: Page, submitter: Client, taken: list[ExperimentSpec]
) -> None:
    row = stored(field)
    text = page(f"/experiments/new?from={row.pk}", submitter)
    assert "The form cannot say" not in text
    answer = submitter.post("/experiments/new", BrowserForm(text, "new").as_post())
    assert answer.status_code == 302, answer.content.decode()
    submitted, asked = taken[0].model_dump(mode="json"), specified(field).model_dump(mode="json")
    assert value_at(submitted, field) == value_at(asked, field)
    assert submitted == asked


def test_the_form_sends_how_urgent_an_experiment_is(
    page: Page, submitter: Client, taken: list[ExperimentSpec]
) -> None:
    text = page(f"/experiments/new?from={stored('name').pk}", submitter)
    submitter.post("/experiments/new", {**BrowserForm(text, "new").as_post(), "priority": "low"})
    assert taken[0].priority == "low"


def test_the_form_sends_a_range_of_commits(
    page: Page, submitter: Client, taken: list[ExperimentSpec]
) -> None:
    text = page(f"/experiments/new?from={stored('name').pk}", submitter)
    filled = {"patch-0-name": "p", "patch-0-range": "v6.1..v6.1.1"}
    submitter.post("/experiments/new", {**BrowserForm(text, "new").as_post(), **filled})
    assert (taken[0].patches[0].range, taken[0].patches[0].text) == ("v6.1..v6.1.1", None)


@pytest.mark.process
def test_two_sources_of_one_patch_are_refused_beside_it(
    page: Page, submitter: Client, taken: list[ExperimentSpec]
) -> None:
    text = page(f"/experiments/new?from={stored('name').pk}", submitter)
    filled = {"patch-0-name": "p", "patch-0-range": "v6.1..v6.1.1", "patch-0-text": "diff"}
    answer = submitter.post("/experiments/new", {**BrowserForm(text, "new").as_post(), **filled})
    assert answer.status_code == 422
    assert "not text and range" in answer.content.decode()
    assert taken == []


def test_the_clone_of_a_repetition_says_that_it_repeats_nothing(page: Page, submitter: Client) -> None:
    text = page(f"/experiments/new?from={stored('reproduces').pk}", submitter)
    assert "The form cannot say that it repeats experiment 7" in text
    assert "[reproduces]" in text


@pytest.mark.process
def test_waits_without_a_profile_are_refused_beside_their_tick(
    page: Page, submitter: Client, taken: list[ExperimentSpec]
) -> None:
    form = BrowserForm(page(f"/experiments/new?from={stored('measure.off_cpu').pk}", submitter), "new")
    answer = submitter.post("/experiments/new", {k: v for k, v in form.as_post().items() if k != "profile"})
    assert answer.status_code == 422
    assert 'id="off_cpu-error">waits are recorded in profiled boots' in answer.content.decode()
    assert taken == []


@pytest.mark.parametrize("field", sorted(set(SETS) - URGENCY))
def test_the_api_tells_each_field_of_an_experiment(field: str, submitter: Client, db: None) -> None:
    row = stored(field)
    description = submitter.get(f"/api/v1/experiments/{row.pk}/").json()["description"]
    asked = json.loads(specified(field).model_dump_json())
    if field == "patches[].text":
        # As long as it likes: the detail says where it is.
        assert description["patches"][0] == {k: v for k, v in asked["patches"][0].items() if k != "text"}
    else:
        assert value_at(description, field) == value_at(asked, field)
    again = submitter.get(f"/api/v1/experiments/{row.pk}/description/").json()
    if field not in NOTED:
        assert value_at(spec_from_mapping(again).model_dump(mode="json"), field) == value_at(asked, field)


def test_the_api_tells_every_field_even_of_a_description_that_names_few(submitter: Client, db: None) -> None:
    row = make_experiment(spec={"name": "old", "tree": "debian-6.1", "cases": [{"workload": "showgids"}]})
    description = submitter.get(f"/api/v1/experiments/{row.pk}/").json()["description"]
    assert set(description) >= set(ExperimentSpec.model_fields) - {"priority"}
    assert description["measure"]["profile_boots"] == 3
    assert description["cases"][0]["profile"] is None
    row.spec = {"name": "of a lab long gone", "shape": "unknown"}
    row.save()
    assert submitter.get(f"/api/v1/experiments/{row.pk}/").json()["description"] == row.spec
