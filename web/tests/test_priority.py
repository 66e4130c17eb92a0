# SPDX-License-Identifier: GPL-2.0-or-later
"""The priority of an experiment on its page: shown to all, changed by those who may while it is open."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from lab.models import Experiment, User
from lab.tests.factories import make_grid
from web.tests.conftest import Page


@pytest.fixture
def mine(alice: User) -> Experiment:
    """An open experiment of hers."""
    experiment = make_grid()
    Experiment.objects.filter(pk=experiment.pk).update(submitter=alice)
    return experiment


def choices(text: str) -> list[str]:
    """Return the priorities that the page offers."""
    form = re.search(r'<select id="priority".*?</select>', text)
    return re.findall(r"<option[^>]*>(\w+)", form[0]) if form else []


def stands(experiment: Experiment) -> int:
    experiment.refresh_from_db()
    return experiment.priority


def test_the_page_offers_what_one_may_give(
    mine: Experiment, page: Page, submitter: Client, operator: Client, viewer: Client
) -> None:
    place = f"/experiments/{mine.pk}/"
    assert choices(page(place, submitter)) == ["low", "normal"]
    assert choices(page(place, operator)) == ["low", "normal", "high"]
    for by in (viewer, Client()):
        assert choices(text := page(place, by)) == []
        assert "<dt>Priority</dt><dd>normal</dd>" in text


def test_what_an_operator_gave_is_not_lost_by_looking(
    mine: Experiment, page: Page, submitter: Client, operator: Client
) -> None:
    place = f"/experiments/{mine.pk}/"
    said = operator.post(f"{place}priority", {"priority": "high"}, follow=True).content.decode()
    assert "Its priority is high now." in said
    assert stands(mine) == 10
    assert "<option selected>high" in page(place, submitter)


def test_who_may_not_changes_nothing(
    mine: Experiment, submitter: Client, viewer: Client, operator: Client
) -> None:
    place = f"/experiments/{mine.pk}/priority"
    assert submitter.post(place, {"priority": "high"}).status_code == 403
    assert viewer.post(place, {"priority": "low"}).status_code == 403
    assert Client().post(place, {"priority": "low"}).status_code == 302
    assert submitter.get(place).status_code == 405
    assert operator.post("/experiments/999999/priority", {"priority": "low"}).status_code == 404
    assert stands(mine) == 0
    assert submitter.post(place, {"priority": "low"}).status_code == 302
    assert stands(mine) == -10


def test_a_word_that_is_none_and_an_experiment_that_is_over_are_told(
    mine: Experiment, page: Page, submitter: Client
) -> None:
    place = f"/experiments/{mine.pk}/"
    odd = submitter.post(f"{place}priority", {"priority": "HIGH"}, follow=True).content.decode()
    assert "There is no priority &quot;HIGH&quot;" in odd
    Experiment.objects.update(state="done")
    late = submitter.post(f"{place}priority", {"priority": "low"}, follow=True).content.decode()
    assert "is done already" in late
    assert stands(mine) == 0
    assert choices(late) == []


def test_the_form_offers_the_priorities_that_its_reader_may_ask_for(
    submitter: Client, operator: Client
) -> None:
    def offered(client: Client) -> list[str]:
        text = client.get("/experiments/new").content.decode()
        form = re.search(r'<select id="priority".*?</select>', text, re.DOTALL)
        assert form
        return re.findall(r">(\w+)</option>", form[0])

    assert offered(submitter) == ["low", "normal"]
    assert offered(operator) == ["low", "normal", "high"]
