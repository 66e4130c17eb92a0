# SPDX-License-Identifier: GPL-2.0-or-later
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec, spec_from_mapping
from lab.models import Build, Experiment, Run, Target
from lab.statistics.sequential import detectable
from lab.submission.past_figures import Durations, boot_duration, build_durations, deviation
from lab.submission.prepare import PLACEBO_FRAGMENT
from lab.submission.preview import NO_HISTORY, NOT_ESTIMATED, preview_experiment
from lab.submission.shipped_figures import SHIPPED, boot_deviation, build_seconds
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

pytestmark = [pytest.mark.django_db, pytest.mark.process]
Describe = Callable[..., ExperimentSpec]


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    repository = make_tiny_tree(tmp_path)

    def make(**fields: Any) -> ExperimentSpec:
        defaults = {
            "name": "n",
            "git": str(repository),
            "base": "v6.1",
            "patches": [{"name": "one", "text": diff("fs/inode.c", 10, "one")}],
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 3, "profile": True},
        }
        return spec_from_mapping(defaults | fields)

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
    preview = preview_experiment(spec=describe(), home=tmp_path)
    assert [(v.name, v.state) for v in preview.variants] == [
        ("base", "to build"),
        ("one", "to build"),
        ("base-again", "to build"),
    ]
    assert (preview.builds, preview.boots, preview.fewest) == (2, 3 * 3 + 3 * 3, 18)
    assert not Experiment.objects.exists()
    assert not Build.objects.exists()


def test_a_preview_of_boots_that_may_stop_early_gives_both_ends(describe: Describe, tmp_path: Path) -> None:
    preview = preview_experiment(spec=describe(measure={"boots": "auto"}), home=tmp_path)
    assert (preview.fewest, preview.boots) == (9, 60)


def test_what_earlier_boots_took_and_varied_by_is_used(describe: Describe, tmp_path: Path) -> None:
    earlier([(100.0, 104.0), (103.0, 99.0), (98.0, 101.0)])
    common = {"state": "built", "cached": False}
    make_build("b", tree_id="t" * 40, wall_seconds=200.0, **common)
    make_build("v", tree_id="x" * 40, wall_seconds=20.0, **common)
    preview = preview_experiment(spec=describe(measure={"boots": 10}), home=tmp_path)
    assert preview.seconds == pytest.approx(200 + 20 + 30 * 8)
    (limit,) = preview.detectable
    assert (limit.metric, limit.experiments, limit.estimate) == ("ns_per_open", 1, "")
    assert (preview.estimate, preview.at_least) == ("", False)
    assert limit.change is not None
    assert 0.01 < limit.change < 0.1


def test_a_build_of_a_config_change_is_no_build_from_nothing() -> None:
    common = {"state": "built", "cached": False}
    request = make_build("b", wall_seconds=200.0, **common).request
    for number in range(3):
        changed = [*request["fragments"], [f"c{number}", "CONFIG_DEBUG_LIST=y\n"]]
        make_build(f"c{number}", wall_seconds=20.0, request={**request, "fragments": changed}, **common)
    placebo = [*request["fragments"], [PLACEBO_FRAGMENT.name, PLACEBO_FRAGMENT.text]]
    make_build("p", wall_seconds=210.0, request={**request, "fragments": placebo}, **common)
    assert build_durations() == Durations(base_build=205.0, variant_build=20.0)


def test_a_new_lab_estimates_from_shipped_figures_and_says_so(
    describe: Describe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.submission.shipped_figures.os.cpu_count", lambda: 2)
    preview = preview_experiment(spec=describe(measure={"boots": 10}), home=tmp_path)
    assert preview.seconds == pytest.approx((600 + 23) / 2 + 30 * 9)
    assert (preview.estimate, preview.at_least) == (SHIPPED, True)
    (limit,) = preview.detectable
    assert (limit.change, limit.estimate, limit.experiments) == (detectable(0.21, 10, 3), SHIPPED, 0)


def test_a_shipped_build_over_a_base_takes_a_small_part_of_one_from_nothing() -> None:
    assert build_seconds(alone=False, cores=2) < build_seconds(alone=True, cores=2) / 10


def test_a_shipped_time_of_boots_that_may_stop_early_is_no_lower_bound(
    describe: Describe, tmp_path: Path
) -> None:
    preview = preview_experiment(spec=describe(measure={"boots": "auto"}), home=tmp_path)
    assert (preview.estimate, preview.at_least) == (SHIPPED, False)


def test_by_instructions_a_shipped_boot_is_longer_and_no_change_is_named(
    describe: Describe, tmp_path: Path
) -> None:
    by_wall, by_count = (
        preview_experiment(spec=describe(measure={"boots": 3, "clock": clock}), home=tmp_path)
        for clock in ("wall", "instructions")
    )
    assert by_wall.seconds is not None
    assert by_count.seconds is not None
    assert by_count.seconds - by_wall.seconds == pytest.approx(9 * 9 * 0.9)
    assert by_count.detectable == ()


def test_a_machine_of_metal_has_no_shipped_figures(describe: Describe, tmp_path: Path) -> None:
    Target.objects.create(name="metal-1", driver="metal", access={"mac": "52:54:00:00:00:01"})
    preview = preview_experiment(spec=describe(measure={"boots": 3}, target="metal-1"), home=tmp_path)
    assert preview.seconds is None
    assert [(limit.change, limit.estimate) for limit in preview.detectable] == [(None, "")]


def test_a_preview_without_a_smallest_change_says_why(describe: Describe, tmp_path: Path) -> None:
    Target.objects.create(name="metal-1", driver="metal", access={"mac": "52:54:00:00:00:01"})
    for measure, target, why in (
        ({"boots": 3}, "metal-1", NO_HISTORY),
        ({"boots": 3, "clock": "contention"}, "guest", NOT_ESTIMATED),
    ):
        (limit,) = preview_experiment(spec=describe(measure=measure, target=target), home=tmp_path).detectable
        assert (limit.change, limit.why) == (None, why)


def test_one_shipped_figure_marks_the_whole_time(describe: Describe, tmp_path: Path) -> None:
    earlier([(100.0, 104.0), (103.0, 99.0), (98.0, 101.0)])
    preview = preview_experiment(spec=describe(measure={"boots": 10}), home=tmp_path)
    assert (preview.estimate, preview.at_least) == (SHIPPED, False)
    assert [limit.estimate for limit in preview.detectable] == [""]


def test_a_workload_without_a_figure_has_the_largest_shipped_deviation() -> None:
    guest = Target.objects.get(name="guest")
    assert boot_deviation("stat-walk", guest) == 0.16
    assert boot_deviation("other", guest) == 0.21


def test_a_pruned_variant_is_shown_with_its_reason(describe: Describe, tmp_path: Path) -> None:
    two = {"name": "two", "text": diff("fs/dcache.c", 5, "two"), "excludes": ["one"]}
    patches = [{"name": "one", "text": diff("fs/inode.c", 10, "one")}, two]
    preview = preview_experiment(spec=describe(patches=patches), home=tmp_path)
    assert [v.reason for v in preview.variants if v.state == "pruned"] == ["two excludes one"]


def test_without_history_nothing_is_made_up() -> None:
    target = Target.objects.get(name="guest")
    assert build_durations().base_build is None
    assert boot_duration("showgids", "smoke", target, "wall", "measured") is None
    assert deviation("showgids", "smoke", target, "ns_per_open") is None


def test_the_deviation_is_that_of_one_boot_not_of_a_difference() -> None:
    earlier([(100.0, 110.0), (110.0, 100.0), (100.0, 110.0)])
    spread = deviation("showgids", "smoke", Target.objects.get(name="guest"), "ns_per_open")
    assert spread is not None
    assert spread[0] == pytest.approx(0.0953 / 2**0.5, abs=1e-3)


def test_a_fetch_names_the_limit_that_the_lab_sets(
    describe: Describe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.submission.sources.FETCH_BYTES", 100)
    with pytest.raises(SubmissionRejected, match="is more than 0 MiB, which is the most that is fetched"):
        preview_experiment(spec=describe(), home=tmp_path)


def test_a_preview_that_fetches_its_tree_says_how_much_of_it_is_there(describe: Describe) -> None:
    lines: list[str] = []
    spec = describe()
    preview_experiment(spec=spec, on_progress=lines.append)
    first, *shares = [line for line in lines if line.startswith("fetching ")]
    assert first == f"fetching {spec.git}"
    assert re.fullmatch(rf"fetching {spec.git}, (receiving objects|resolving deltas): 100 %", shares[-1])
