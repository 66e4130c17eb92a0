# SPDX-License-Identifier: GPL-2.0-or-later
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.models import Build, Experiment, Run, Target
from lab.queries.history import boot_duration, build_durations, deviation
from lab.spec import ExperimentSpec, spec_from_mapping
from lab.submission.preview import preview_experiment
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_build,
    make_case,
    make_experiment,
    make_run,
    make_twin,
    make_variant,
)
from lab.tests.tiny_tree import diff, make_tiny_tree

pytestmark = pytest.mark.django_db
Describe = Callable[..., ExperimentSpec]


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    repository = make_tiny_tree(tmp_path)

    def make(**fields: Any) -> ExperimentSpec:
        given = {
            "name": "n",
            "git": str(repository),
            "base": "v6.1",
            "patches": [{"name": "one", "text": diff("fs/inode.c", 10, "one")}],
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 3, "profile": True},
        }
        return spec_from_mapping(given | fields)

    return make


def earlier(pairs: list[tuple[float, float]]) -> Experiment:
    """An experiment whose base and twin boots gave these, each boot in 8 seconds."""
    experiment = make_experiment(boots=len(pairs))
    base = make_variant(experiment)
    twin = make_twin(experiment)
    case = make_case(experiment)
    for block, values in enumerate(pairs):
        for variant, value in zip((base, twin), values, strict=True):
            run = make_run(variant, case, block=block)
            if block == 0 and variant == base:
                finish_builds(experiment)
            finish_run(run, {"ns_per_open": [1e6, value, value]})
    ended = timezone.now()
    Run.objects.update(started_at=ended - timedelta(seconds=8), finished_at=ended)
    return experiment


def test_a_preview_counts_builds_and_boots_and_writes_nothing(describe: Describe, tmp_path: Path) -> None:
    found = preview_experiment(spec=describe(), home=tmp_path)
    assert [(v.name, v.state) for v in found.variants] == [
        ("base", "to build"),
        ("one", "to build"),
        ("base-again", "to build"),
    ]
    assert (found.builds, found.boots, found.fewest, found.seconds) == (2, 3 * 3 + 3 * 3, 18, None)
    assert not Experiment.objects.exists()
    assert not Build.objects.exists()


def test_a_preview_of_boots_that_may_stop_early_gives_both_ends(describe: Describe, tmp_path: Path) -> None:
    found = preview_experiment(spec=describe(measure={"boots": "auto"}), home=tmp_path)
    assert (found.fewest, found.boots) == (9, 60)


def test_what_earlier_boots_took_and_varied_by_is_used(describe: Describe, tmp_path: Path) -> None:
    earlier([(100.0, 104.0), (103.0, 99.0), (98.0, 101.0)])
    common = {"state": "built", "cached": False}
    make_build("b", tree_id="t" * 40, wall_seconds=200.0, **common)
    make_build("v", tree_id="x" * 40, wall_seconds=20.0, **common)
    found = preview_experiment(spec=describe(measure={"boots": 10}), home=tmp_path)
    assert found.seconds == pytest.approx(200 + 20 + 30 * 8)
    (one,) = found.detectable
    assert (one.metric, one.experiments) == ("ns_per_open", 1)
    assert one.change is not None
    assert 0.01 < one.change < 0.1


def test_a_pruned_variant_is_shown_with_its_reason(describe: Describe, tmp_path: Path) -> None:
    two = {"name": "two", "text": diff("fs/dcache.c", 5, "two"), "excludes": ["one"]}
    patches = [{"name": "one", "text": diff("fs/inode.c", 10, "one")}, two]
    found = preview_experiment(spec=describe(patches=patches), home=tmp_path)
    assert [v.reason for v in found.variants if v.state == "pruned"] == ["two excludes one"]


def test_without_history_nothing_is_made_up() -> None:
    target = Target.objects.get(name="guest")
    assert build_durations().base_build is None
    assert boot_duration("showgids", "smoke", target, "wall", "measured") is None
    assert deviation("showgids", "smoke", target, "ns_per_open") is None


def test_the_deviation_is_that_of_one_boot_not_of_a_difference() -> None:
    earlier([(100.0, 110.0), (110.0, 100.0), (100.0, 110.0)])
    found = deviation("showgids", "smoke", Target.objects.get(name="guest"), "ns_per_open")
    assert found is not None
    assert found[0] == pytest.approx(0.0953 / 2**0.5, abs=1e-3)
