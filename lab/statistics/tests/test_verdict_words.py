# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of verdicts: every output shows a verdict from it, also a new one and an unknown one."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from django.template import Context, Template

from lab.comparisons.page import comparison_data
from lab.comparisons.regressions import RegressionFilter, regression_page
from lab.comparisons.triage import Decision, Regression, decide
from lab.models import Comparison
from lab.statistics import verdict_words
from lab.statistics.verdict_words import (
    VERDICTS,
    VerdictWord,
    Word,
    counted_verdicts,
    shown_verdict,
    words_of,
)
from lab.tests.factories import make_case, make_comparison, make_experiment, make_user, make_variant


def test_the_table_has_the_words_that_the_rule_gives_and_the_database_takes() -> None:
    choices = [word for word, _ in Comparison._meta.get_field("verdict").choices or ()]
    assert tuple(VERDICTS) == get_args(Word) == tuple(choices)


def test_counts_name_changes_first_and_then_doubts() -> None:
    counts = {"unchanged": 2, "inconclusive": 1, "improvement": 1, "regression": 3}
    assert [text for _, text in counted_verdicts(counts)] == [
        "3 regressions",
        "1 improvement",
        "1 inconclusive",
        "2 unchanged",
    ]
    assert counted_verdicts({"regression": 0}) == []


@pytest.mark.parametrize(("role", "warning"), [("a/a", "control failed"), ("placebo", "layout matters")])
@pytest.mark.parametrize("verdict", ["regression", "improvement"])
def test_a_control_that_differs_is_a_warning_in_either_direction(
    role: str, warning: str, verdict: str
) -> None:
    shown = shown_verdict(verdict, role)
    assert (shown.word, shown.tone, shown.symbol) == (warning, "failed", "failed")
    assert shown_verdict("unchanged", role).word == "unchanged"


def test_a_verdict_of_a_newer_lab_is_shown_as_it_is_and_proves_nothing() -> None:
    shown = shown_verdict("baffling")
    assert (shown.word, shown.outcome, shown.change) == ("baffling", "skipped", "")


def test_a_new_word_is_treated_as_its_kind_by_lists_triage_and_the_conclusion(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = replace(VERDICTS["regression"], word="noisier", plural="noisier")
    monkeypatch.setitem(verdict_words.VERDICTS, "noisier", learned)
    assert words_of("regression") == ("regression", "noisier")
    experiment = make_experiment(name="louder", state="done")
    make_variant(experiment)
    row = make_comparison(make_case(experiment), make_variant(experiment, "p"), verdict="noisier")
    (line,) = regression_page(RegressionFilter(), 1)
    assert line.experiment.name == "louder"
    on = Regression(row.case_id, row.variant_id, row.metric)
    decide(by=make_user("alice"), on=on, decision=Decision("expected", "the change is intended"), seen=None)
    assert comparison_data(experiment.pk)["conclusion"]["headline"].startswith("Regression: p makes ")


def test_a_page_takes_colour_and_shape_of_a_verdict_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = VerdictWord("noisier", "noisier", "worse", 1, "regression", "failed", "red", kind="regression")
    monkeypatch.setitem(verdict_words.VERDICTS, "noisier", learned)
    page = Template('{% include "web/chip.html" with word="noisier" %}').render(Context())
    crossed = Template('{% include "web/shape.html" with shape="failed" %}').render(Context())
    assert page == f'<span class="chip regression">{crossed}noisier</span>'
