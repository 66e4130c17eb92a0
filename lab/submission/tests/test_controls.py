# SPDX-License-Identifier: GPL-2.0-or-later
"""The arms that the lab adds by itself, and experiments that need nothing else."""

from pathlib import Path

import pytest

from lab.conftest import Describe
from lab.models import Experiment, Variant
from lab.statistics.sequential import LOOKS
from lab.submission.submit import submit_experiment

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def variants(experiment: Experiment) -> dict[str, Variant]:
    return {variant.name: variant for variant in experiment.variants.all()}


def test_a_layout_placebo_is_the_base_with_other_alignment(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(measure={"boots": 2, "placebo": True}), home=home)
    placebo = variants(experiment)["layout-placebo"]
    assert placebo.role == "placebo"
    assert placebo.build is not None
    assert placebo.tree_id == variants(experiment)["base"].tree_id
    added = [text for _, text in placebo.build.request["fragments"]][-1]
    assert added == "CONFIG_DEBUG_FORCE_FUNCTION_ALIGN_64B=y\n"
    assert experiment.runs.filter(variant=placebo).count() == 2


def test_boots_that_may_stop_early_start_with_the_first_look(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(measure={"boots": "auto"}), home=home)
    assert (experiment.sequential, experiment.boots) == (True, LOOKS[-1])
    assert set(experiment.runs.values_list("block", flat=True)) == set(range(LOOKS[0]))


def test_an_experiment_without_switches_compares_the_base_with_itself(describe: Describe, home: Path) -> None:
    experiment = submit_experiment(spec=describe(patches=[]), home=home)
    assert list(variants(experiment)) == ["base", "base-again"]
