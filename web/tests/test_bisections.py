# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of searches for the commit behind a step."""

from __future__ import annotations

import pytest
from django.test import Client

from lab.models import BasePoint, Bisection, Tree
from lab.tests.factories import make_bisection, make_bisection_step, make_experiment
from web.tests.conftest import SCRIPT, Page


@pytest.fixture
def searched(stepped: str) -> Bisection:
    """A search over the trend's step that found the fifth commit; the third could not be built."""
    tree = Tree.objects.get(name="tiny")
    made = make_bisection(tree, [f"{number:040x}" for number in range(3, 8)])
    experiment = make_experiment()
    shift = {"ratio": 1.2, "low": 1.15, "high": 1.25}
    make_bisection_step(made, 4, outcome="bad", verdict="regression", experiment=experiment, **shift)
    make_bisection_step(made, 2, outcome="skipped", reason=f"does not build: {SCRIPT}")
    make_bisection_step(made, 1, outcome="bad", verdict="regression", ratio=1.19, low=1.1, high=1.3)
    Bisection.objects.filter(pk=made.pk).update(state="done", answer="commit", suspects=[f"{4:040x}"])
    made.refresh_from_db()
    return made


def test_a_bisection_names_the_commit_and_shows_every_step(page: Page, searched: Bisection) -> None:
    text = page(f"/bisections/{searched.pk}/")
    assert "This commit caused it" in text
    assert "change 4 &lt;script&gt;" in text
    assert "+19.0" in text
    assert f"/experiments/{searched.steps.all()[0].experiment_id}/comparison/" in text
    assert "does not build: &lt;script&gt;" in text
    assert SCRIPT not in text


def test_the_list_says_what_each_search_found(page: Page, searched: Bisection) -> None:
    text = page("/bisections/")
    assert f"/bisections/{searched.pk}/" in text
    assert "found 0000000000" in text
    assert "ns_per_open of showgids (smoke), v1..v2" in text


def test_a_trends_step_leads_to_the_search_for_it(page: Page, stepped: str, searched: Bisection) -> None:
    assert f"/bisections/{searched.pk}/" in page(f"/trends/{stepped}/")
    Bisection.objects.filter(pk=searched.pk).update(params={"threads": 8})
    assert f"/bisections/{searched.pk}/" not in page(f"/trends/{stepped}/")


def test_a_search_with_kernels_of_another_config_is_not_that_of_the_step(
    page: Page, stepped: str, searched: Bisection
) -> None:
    measured = BasePoint.objects.filter(trend=stepped).latest("pk")
    searched.steps.filter(revision=4).update(experiment=measured.case.experiment_id)
    assert f"/bisections/{searched.pk}/" in page(f"/trends/{stepped}/")
    BasePoint.objects.filter(pk=measured.pk).update(trend="0" * 12, config="0" * 8)
    assert f"/bisections/{searched.pk}/" not in page(f"/trends/{stepped}/")


@pytest.mark.parametrize(
    ("answer", "suspects", "words"),
    [
        ("range", [f"{4:040x}", f"{5:040x}"], ("One of these commits", "one of 2 commits")),
        ("no-step", [], ("There is no such step", "no step there")),
        ("untold", [], ("Inconclusive", "inconclusive")),
    ],
)
def test_every_other_end_is_told_in_words(
    page: Page, searched: Bisection, answer: str, suspects: list[str], words: tuple[str, str]
) -> None:
    Bisection.objects.filter(pk=searched.pk).update(answer=answer, suspects=suspects)
    assert words[0] in page(f"/bisections/{searched.pk}/")
    assert words[1] in page("/bisections/")


def test_while_it_runs_it_says_how_many_commits_are_left(page: Page, db: None) -> None:
    made = make_bisection(make_experiment().tree, [f"{number:040x}" for number in range(9)])
    assert "8 of 8 commits left" in page(f"/bisections/{made.pk}/")
    make_bisection_step(made, 8, outcome="bad")
    make_bisection_step(made, 4, outcome="good")
    make_bisection_step(made, 6)
    text = page(f"/bisections/{made.pk}/")
    assert "4 of 8 commits left" in text
    assert ">open<" in text


def test_a_search_that_failed_says_why(page: Page, searched: Bisection) -> None:
    Bisection.objects.filter(pk=searched.pk).update(state="failed", answer="", problem=f"no disk {SCRIPT}")
    assert "no disk &lt;script&gt;" in page(f"/bisections/{searched.pk}/")
    assert "failed" in page("/bisections/")


def test_without_bisections_the_list_says_how_to_begin_one(page: Page) -> None:
    assert "labctl bisect --trend KEY" in page("/bisections/")


def test_a_bisection_that_is_not_there_is_told_kindly(client: Client, db: None) -> None:
    response = client.get("/bisections/77/")
    assert response.status_code == 404
    assert "There is no bisection 77" in response.content.decode()
