# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from lab.comparisons.compare import compare_experiment
from lab.comparisons.triage import Decision, Regression, decide
from lab.models import Alert, Experiment, Sample, Standing, Target, User
from lab.models.states import ExperimentState
from lab.operations.front_page import front_page
from lab.tests.factories import (
    make_case,
    make_comparison,
    make_experiment,
    make_grid,
    make_run,
    make_twin,
    make_variant,
)
from web.tests.conftest import SCRIPT, Page


def busy_lab(amount: int) -> None:
    """As many experiments of each kind as asked for."""
    for number in range(amount):
        experiment = make_grid()
        experiment.name = f"experiment {number} {SCRIPT}"
        experiment.state = [ExperimentState.RUNNING, ExperimentState.DONE, ExperimentState.QUEUED][number % 3]
        experiment.save()
        make_comparison(experiment.cases.get(), experiment.variants.get(name="p"))
        standing = Standing.objects.create(name=f"s{number}", spec={}, tree=experiment.tree, branch="master")
        Alert.objects.create(
            standing=standing,
            trend="abc",
            metric="ns_per_open",
            commit=f"{number:040x}",
            ratio=1.2,
            worse=True,
            text=SCRIPT,
        )


def test_a_lab_without_experiments_says_how_to_begin(page: Page) -> None:
    assert "labctl submit --local" in page("/")


def test_the_first_page_shows_what_runs_what_is_slower_and_what_is_new(page: Page) -> None:
    busy_lab(3)
    text = page("/")
    assert SCRIPT not in text
    assert text.count('<progress max="100"') == 2
    assert "found by s0" in text
    assert text.count("ns_per_open") >= 3
    assert "/experiments/new" in text


@pytest.mark.parametrize("address", ["/", "/experiments/"])
def test_lists_show_the_answer_of_what_has_ended(page: Page, address: str) -> None:
    experiment = make_grid()
    Experiment.objects.update(state="done", headline=f"Regression: {SCRIPT} makes showgids worse, -3.1%.")
    text = page(address)
    assert "makes showgids worse, −3.1\N{NO-BREAK SPACE}%." in text, "with the signs that its own page has"
    assert SCRIPT not in text
    assert experiment.name in text


def test_what_is_settled_is_not_slower_any_more(alice: User) -> None:
    busy_lab(1)
    row = Experiment.objects.get().comparisons.get()
    on = Regression(row.case_id, row.variant_id, row.metric)
    assert [line.triaged for line in front_page()["rows"]] == ["new"]
    made = decide(by=alice, on=on, decision=Decision("acknowledged"), seen=None)
    assert [line.triaged for line in front_page()["rows"]] == ["acknowledged"]
    decide(by=alice, on=on, decision=Decision("expected"), seen=made.pk)
    assert front_page()["rows"] == []


def test_an_alert_that_was_seen_is_gone(db: None) -> None:
    busy_lab(1)
    assert len(front_page()["alerts"]) == 1
    Alert.objects.update(seen_at=timezone.now())
    assert front_page()["alerts"] == ()


def test_what_is_worked_on_comes_before_what_waits(db: None) -> None:
    busy_lab(9)
    page = front_page()
    assert [experiment.state for experiment in page["running"]] == ["running"] * 3 + ["queued"] * 2
    assert page["waiting"] == 1


def test_an_ill_target_is_named_with_what_ails_it(page: Page) -> None:
    experiment = make_grid(blocks=2)
    over = {"state": "failed", "blame": "lab", "finished_at": timezone.now() - timedelta(hours=1)}
    experiment.runs.update(**over)
    assert "4 of the 4 boots of the last day failed by the lab" in page("/")


def test_a_disabled_target_is_named_only_while_boots_wait_for_it(page: Page) -> None:
    experiment = make_grid(blocks=2)
    Target.objects.update(enabled=False)
    assert "disabled; 4 boots wait for it" in page("/")
    experiment.runs.update(state="done")
    assert "disabled" not in page("/")


@pytest.mark.parametrize("amount", [1, 12])
def test_the_first_page_asks_the_tables_no_more_often_when_there_is_more(
    client: Client, db: None, django_assert_max_num_queries: Any, amount: int
) -> None:
    busy_lab(amount)
    make_experiment()
    with django_assert_max_num_queries(34):
        assert client.get("/").status_code == 200


def test_the_base_shows_the_boots_of_its_median_whatever_the_patch_lost(page: Page) -> None:
    experiment = make_experiment(state="done")
    base, twin, patch = make_variant(experiment), make_twin(experiment), make_variant(experiment, "p")
    experiment.variants.update(state="ready")
    case = make_case(experiment)
    for variant, boots in ((base, 4), (twin, 4), (patch, 2)):
        for block in range(boots):
            run = make_run(variant, case, block=block, state="done", outcome="finished")
            Sample.objects.create(run=run, metric="ns_per_open", iteration=1, value=100.0 + block)
    compare_experiment(experiment.pk)
    rows = page(f"/experiments/{experiment.pk}/comparison/").split('<th scope="row">')
    shown = {row.partition("<")[0]: re.findall(r'data-label="Boots">([^<]*)<', row) for row in rows}
    assert (shown["base"], shown["base-again"], shown["p"]) == (["8"], ["4"], ["2"])
