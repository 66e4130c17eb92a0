# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cases of one workload and preset have different names on every page."""

from __future__ import annotations

from lab.models import Experiment
from lab.tests.factories import make_case, make_experiment
from web.tests.conftest import Page


def test_every_page_of_a_case_names_it_apart_from_another_of_its_workload_and_preset(
    page: Page, compared: Experiment
) -> None:
    case = compared.cases.get()
    other = make_case(compared, params={"threads": 8})
    own, others = (f"showgids (smoke, threads={number})" for number in (2, 8))
    row, run = case.comparisons.all()[0], case.runs.all()[0]
    address = f"/experiments/{compared.pk}"
    for place in (f"{address}/profile/{case.pk}/", f"{address}/counters/{case.pk}/"):
        text = page(place)
        assert f'aria-current="page">{own}</a>' in text
        assert f">{others}</a>" in text
    assert f"{own}: counters side by side" in text
    assert f"No profile of {others}" in page(f"{address}/profile/{other.pk}/")
    assert f" on {row.metric} of {own}" in page(f"{address}/explain/{row.pk}/")
    assert f"{own}</h1>" in page(f"/runs/{run.pk}/")
    text = page(f"{address}/")
    assert f'<th scope="col">{others}</th>' in text
    # A narrow screen shows no heads.
    assert f'<td data-label="{others}">' in text


def test_two_experiments_side_by_side_name_them_apart(page: Page, compared: Experiment) -> None:
    make_case(compared, params={"threads": 8})
    other = make_experiment()
    make_case(other, params={"threads": 4})
    text = page(f"/compare/?first={compared.pk}&second={other.pk}")
    assert all(f"showgids (smoke, threads={number})" in text for number in (2, 8))
