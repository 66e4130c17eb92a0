# SPDX-License-Identifier: GPL-2.0-or-later
"""An inconclusive verdict whose interval excludes "no change" gives the reason in the same line."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoDbBlocker
from rich.console import Console

from lab.comparisons.exports.formats import OF_DATA, REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.models import Comparison, Experiment
from lab.models.states import ExperimentState
from lab.statistics.arms import Arm, Shift
from lab.statistics.estimate import estimate
from lab.statistics.family_interval import adjust, agreeing_level, allow_for_family
from lab.statistics.verdict import Verdict, judge
from lab.tests.factories import (
    NS_PER_OPEN,
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_patch_switch,
    make_run,
    make_twin,
    make_variant,
)
from lab.tests.file_rows import rows_of_a_file
from workers.ctl.comparison_tables import show_comparison

METRICS, BLOCKS = 12, 5


def arms(rng: np.random.Generator, shift: float, low: float = 90.0) -> list[Arm]:
    """The base, its twin and a candidate; boots of less than `low` count nothing."""
    drawn = 100 * np.exp(0.05 * rng.normal(size=(3, BLOCKS)) + np.array([[0], [0], [shift]]))
    drawn[drawn < low] = 0
    return [Arm(str(i), {b: (float(v),) for b, v in enumerate(row)}) for i, row in enumerate(drawn)]


def family(seed: int, low: float) -> list[tuple[Verdict, Shift, float | None, Shift]]:
    """By metric: verdict, the shift that is shown, q, and the metric's own shift. One metric in four moves."""
    rng = np.random.default_rng(seed)
    boots = [arms(rng, 0.1 * (number % 4 == 0), low) for number in range(METRICS)]
    own = [estimate(boot[:2], boot[2]) for boot in boots]
    rows = []
    for values, shift, q in zip(boots, own, adjust([shift.p_value for shift in own]), strict=True):
        verdict = judge(shift, better="lower", margin=0.0, q_value=q)
        again = lambda level, values=values: estimate(values[:2], values[2], level=level)  # noqa: E731
        rows.append((*allow_for_family(verdict, shift, q, metrics=METRICS, at_level=again), q, shift))
    return rows


@pytest.mark.thorough
@pytest.mark.parametrize("low", [0.0, 95.0], ids=["ratios", "with zeros"])
def test_the_interval_of_what_other_metrics_hold_back_holds_no_change_and_says_so(low: float) -> None:
    held = [row for seed in range(30) for row in family(seed, low) if row[0].held_back]
    assert len(held) >= 10
    for verdict, shown, q, own in held:
        assert verdict.word == "inconclusive"
        assert "significant alone (p = " in verdict.reason
        assert f"not among {METRICS} metrics (q = {q:.2g})" in verdict.reason
        if own.low is None or own.high is None:
            continue
        assert not own.low <= 1 <= own.high
        assert shown.low is not None
        assert shown.high is not None
        assert shown.low <= 1 <= shown.high or "that of this metric alone" in verdict.reason
        assert shown.low <= own.low < own.high <= shown.high


@pytest.mark.thorough
def test_what_is_called_or_unclear_by_itself_keeps_its_interval() -> None:
    rest = [row for seed in range(10) for row in family(seed, 0.0) if not row[0].held_back]
    assert {row[0].word for row in rest} >= {"regression", "inconclusive"}
    assert all(shown == own for _, shown, _, own in rest)


@pytest.mark.parametrize(("p", "q"), [(0.01, 0.04), (0.01, 0.06), (0.05, 0.05), (0.2, 0.3)])
def test_an_interval_of_the_agreeing_level_leaves_out_no_change_exactly_if_q_allows_it(
    p: float, q: float
) -> None:
    assert (p <= 1 - agreeing_level(p, q) + 1e-12) == (q <= 0.05)


def test_where_the_method_gives_no_wider_interval_the_reason_says_whose_it_is() -> None:
    own = Shift(5, 100.0, 110.0, 1.1, 1.02, 1.2, p_value=0.02, freedom=8)
    verdict = judge(own, better="lower", margin=0.0, q_value=0.2)
    unbounded = Shift(5, 100.0, 110.0, 1.1, 1.01, 1.3, p_value=0.03)
    verdict, shown = allow_for_family(verdict, own, 0.2, metrics=9, at_level=lambda level: unbounded)
    assert shown == own
    assert "not among 9 metrics (q = 0.2); the interval is that of this metric alone; about" in verdict.reason


@pytest.fixture(scope="module")
def a_dozen_metrics(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Experiment]:
    with rows_of_a_file(django_db_blocker):
        yield measured()


@pytest.fixture
def held_back(a_dozen_metrics: Experiment, db: None) -> Experiment:
    """An experiment of a dozen metrics, of which one moved by as much as would be called if it were the only one."""
    return a_dozen_metrics


def measured() -> Experiment:
    names = [f"metric_{number}" for number in range(METRICS)]
    metrics = [NS_PER_OPEN | {"name": name, "margin": 0.0} for name in names]
    experiment = make_experiment(boots=BLOCKS)
    make_patch_switch(experiment, "p")
    variants = [make_variant(experiment), make_variant(experiment, "p"), make_twin(experiment)]
    case = make_case(experiment, metrics=metrics)
    runs = [make_run(variant, case, block=block) for block in range(BLOCKS) for variant in variants]
    finish_builds(experiment)
    rng = np.random.default_rng(16)
    for run in runs:
        values = 100 * np.exp(0.05 * rng.normal(size=METRICS))
        values[0] *= 1.09 if run.variant.name == "p" else 1
        finish_run(run, {name: [value, value] for name, value in zip(names, values, strict=True)})
    Experiment.objects.filter(pk=experiment.pk).update(state=ExperimentState.DONE)
    return experiment


def test_the_interval_that_is_stored_allows_for_all_metrics(held_back: Experiment) -> None:
    row = Comparison.objects.get(variant__name="p", metric="metric_0")
    assert row.p_value is not None
    assert row.q_value is not None
    assert row.p_value <= 0.05 < row.q_value
    assert row.verdict == "inconclusive"
    assert row.low is not None
    assert row.high is not None
    assert row.low < 1 < row.high
    assert f"not among {METRICS} metrics" in row.reason
    assert "alone it is +" in row.reason


@pytest.mark.parametrize("form", OF_DATA)
def test_every_form_says_beside_the_verdict_why_it_is_inconclusive(held_back: Experiment, form: str) -> None:
    text = " ".join(REPORT_FORMS[form].render(comparison_data(held_back.pk)).split())
    short = {
        "markdown": "inconclusive (q 0.085 over all metrics",
        "reply": "inconclusive, q 0.085 over all metrics",
    }
    long = "significant alone (p = 0.0071), not among 12 metrics (q = 0.085): the interval, of 99.6 %, allows for them"
    assert short.get(form, long) in text


def test_the_page_says_it_in_the_same_row_and_calls_the_interval_no_95_per_cent(
    held_back: Experiment, client: Client
) -> None:
    row = Comparison.objects.get(variant__name="p", metric="metric_0")
    page = client.get(reverse("comparison", args=[held_back.pk])).content.decode()
    said = "significant alone (p = 0.0071), not among 12 metrics (q = 0.085)"
    assert said in next(part for part in page.split("<tr>") if "Why p is inconclusive on metric_0" in part)
    why = client.get(reverse("explain", args=[held_back.pk, row.pk])).content.decode()
    assert said in why
    figure = why[why.index('<p class="figure">') :].partition("</p>")[0]
    assert "95" not in figure


def test_labctl_says_it_beside_the_verdict_and_below_the_table(held_back: Experiment) -> None:
    out = io.StringIO()
    show_comparison(Console(file=out, width=80), comparison_data(held_back.pk))
    assert "over all metrics" in out.getvalue()
    assert "significant alone" in " ".join(out.getvalue().split())
