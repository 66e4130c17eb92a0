# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals on the pages of a comparison: only one of 95 % is called so."""

from lab.models import Comparison, Experiment
from web.tests.conftest import Page


def test_only_an_interval_of_95_percent_is_called_one(page: Page, compared: Experiment) -> None:
    comparison = f"/experiments/{compared.pk}/comparison/"
    verdict = f"/experiments/{compared.pk}/explain/{compared.comparisons.get().pk}/"
    said = ", 95 %</span>"
    assert said in page(verdict).replace("\xa0", " ")
    assert "95\N{NO-BREAK SPACE}% interval</th>" in page(comparison)
    # Where boots may stop early, each look has a stricter level of its own.
    Experiment.objects.update(sequential=True)
    assert said not in page(verdict).replace("\xa0", " ")
    assert ">Interval</th>" in page(comparison)
    # Counts that agree exactly have the floor as their interval.
    Experiment.objects.update(sequential=False, clock="instructions")
    Comparison.objects.update(p_value=None)
    assert said not in page(verdict).replace("\xa0", " ")
    assert ">± floor</th>" in page(comparison)
