# SPDX-License-Identifier: GPL-2.0-or-later
"""Two experiments side by side have the numbers of their own pages."""

import pytest

from lab.comparisons.page import comparison_data
from lab.comparisons.pair import pair_page
from lab.models import Experiment, Variant
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_run,
    make_twin,
    make_variant,
)

pytestmark = pytest.mark.django_db


def measured(candidate: list[float | None]) -> Experiment:
    """An experiment whose second boots of the base took longer; None stands for a boot that never ran."""
    experiment = make_experiment(boots=len(candidate))
    base, patch = make_variant(experiment), make_variant(experiment, "p")
    boots: dict[Variant, list[float | None]] = {
        base: [100.0, 101.0, 99.0],
        patch: candidate,
        make_twin(experiment): [110.0, 111.0, 109.0],
    }
    case = make_case(experiment)
    runs = [
        (make_run(variant, case, block=block), value)
        for variant, values in boots.items()
        for block, value in enumerate(values)
        if value is not None
    ]
    finish_builds(experiment)
    for run, value in runs:
        finish_run(run, {"ns_per_open": [1e6, value, value]})
    return experiment


def test_the_bases_are_those_of_the_two_comparison_pages_even_where_a_candidate_lacks_a_boot() -> None:
    whole, lacking = measured([90.0, 91.0, 89.0]), measured([90.0, 91.0, None])
    own = [comparison_data(row.pk)["cases"][0]["metrics"][0]["base_median"] for row in (whole, lacking)]
    ((_, (row,)),) = pair_page(whole.pk, lacking.pk).cases
    assert [row.first_base, row.second_base] == own == [105.0, 105.0]
    assert row.base_ratio == 1.0
