# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from lab.comparisons.page import comparison_page
from lab.errors import UnknownRow
from lab.experiments.list_page import ExperimentFilter, list_page
from lab.experiments.page import experiment_page
from lab.experiments.progress import progress
from lab.models import Build, Experiment, Run
from lab.models.states import Outcome
from lab.profiles.analysis.frame_tree import build_tree
from lab.profiles.page import profile_page
from lab.runs.pages import build_page, run_page
from lab.runs.record import RunRecord, TakenProfile, record_run
from lab.runs.settle import cancel_experiment
from lab.runs.work_orders import build_order, run_order
from lab.submission.choices import submission_choices
from lab.tests.factories import (
    claimed_build,
    claimed_run,
    finish_build,
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_grid,
    make_patch_switch,
    make_run,
    make_variant,
)

pytestmark = pytest.mark.django_db


def finished() -> Experiment:
    """Five blocks of base and p, p a tenth slower; one profiled run of each; a pruned variant."""
    experiment = make_grid(blocks=5)
    base, patched = experiment.variants.all()
    case = experiment.cases.get()
    profiled = [make_run(v, case, purpose="profiled") for v in (base, patched)]
    make_variant(experiment, "p", "q", state="pruned", problem="q clashes with p in fs/inode.c").build = None
    experiment.variants.filter(state="pruned").update(build=None)
    claim = {"workload": "showgids", "metric": "ns_per_open", "direction": "lower", "source": "the mail"}
    make_patch_switch(experiment, "p", title="vfs: faster", report=["hunk 1: blanks"], claims=[claim])
    finish_builds(experiment)
    for run in experiment.runs.filter(purpose="measured").select_related("variant").order_by("position"):
        value = (110.0 if run.variant.switches else 100.0) + run.block
        finish_run(
            run, {"ns_per_open": [500.0, value, value]}, line=f"{value:g} ns", extras={"block": run.block}
        )
    for run, reads in zip(profiled, (68, 26), strict=True):
        stacks = {
            ("open", "kernfs_iop_permission", "down_read.isra.0"): reads,
            ("open", "memcpy"): 100 - reads,
        }
        finish_run(run, profiles=(TakenProfile(build_tree(stacks.items())),))
    experiment.refresh_from_db()
    return experiment


def test_the_list_has_the_newest_first_with_what_came_of_it() -> None:
    done = finished()
    waiting = make_grid()
    first, second = list_page(ExperimentFilter()).lines
    assert (first.row, second.row) == (waiting, done)
    assert (second.row.state, second.counts.verdicts) == ("done", {"regression": 1})
    assert (second.counts.variants, second.counts.pruned) == (2, 1)
    assert (second.counts.boots_over, second.counts.boots_total) == (12, 12)
    assert (first.counts.boots_over, first.counts.boots_total) == (0, 4)
    assert [line.row.pk for line in list_page(ExperimentFilter(), size=1).lines] == [waiting.pk]


def test_the_page_of_an_experiment_has_its_grid_with_states() -> None:
    experiment = make_grid([("p",)], blocks=2)
    finish_builds(experiment)
    first, second, *_ = experiment.runs.order_by("position")
    finish_run(first)
    claim = claimed_run(second)
    page = experiment_page(experiment.pk)
    base, patched = page.variants
    assert (base.row.name, base.row.state, base.cells[0].state) == ("base", "ready", "queued")
    assert (base.cells[0].done, base.cells[0].queued, base.cells[0].total) == (1, 1, 2)
    assert patched.cells[0].state == "running"
    assert patched.build is not None
    assert patched.build.row.release == "6.1-k1"
    assert [run.state for run in page.runs] == ["done", "running", "queued", "queued"]
    assert page.runs[0].seconds is not None
    assert page.runs[3].seconds is None
    record_run(claim, RunRecord(outcome=Outcome.PANICKED, blame="kernel", problem="Oops"))
    assert experiment_page(experiment.pk).variants[1].cells[0].state == "failed"


def test_a_pruned_variant_has_its_reason_and_no_cells() -> None:
    page = experiment_page(finished().pk)
    pruned = page.variants[-1]
    assert (pruned.row.state, pruned.cells, pruned.build) == ("pruned", (), None)
    assert pruned.row.problem == "q clashes with p in fs/inode.c"
    assert page.switches[0].report == ["hunk 1: blanks"]
    (claim,) = page.switches[0].claims
    assert (claim["metric"], claim["direction"]) == ("ns_per_open", "lower")


def test_a_build_made_before_the_experiment_counts_as_reused() -> None:
    first = make_grid()
    finish_builds(first)
    build = Build.objects.order_by("pk")[0]
    second = make_experiment()
    make_variant(second, build=build, state="ready")
    assert [line.reused for line in experiment_page(second.pk).builds] == [True]
    assert not any(line.reused for line in experiment_page(first.pk).builds)


def test_the_pages_take_few_queries_however_many_boots(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    experiment = make_grid([(f"s{n}",) for n in range(6)], blocks=20)
    with django_assert_max_num_queries(14):
        experiment_page(experiment.pk)
    with django_assert_max_num_queries(7):
        list_page(ExperimentFilter())
    with django_assert_max_num_queries(14):
        comparison_page(experiment.pk)


def test_the_comparison_has_all_candidates_side_by_side() -> None:
    data = comparison_page(finished().pk).data
    assert data["base"]["name"] == "base"
    assert [(variant["name"], variant["state"]) for variant in data["variants"]] == [
        ("base", "ready"),
        ("p", "ready"),
        ("p+q", "pruned"),
    ]
    assert (data["verdicts"], data["exit_code"]) == ({"regression": 1}, 1)
    (case,) = data["cases"]
    (metric,) = case["metrics"]
    (cell,) = metric["cells"]
    assert (metric["name"], metric["unit"], metric["base_median"]) == ("ns_per_open", "ns", 102.0)
    assert (cell["verdict"], cell["boots"]) == ("regression", 5)
    # The five ratios are (110 + block) / (100 + block): the middle one, and their range.
    ratios = [cell["ratio"], cell["low"], cell["high"]]
    assert ratios == pytest.approx([(110 + b) / (100 + b) for b in (2, 4, 0)], rel=0.001)


def test_the_median_boot_speaks_for_its_variant() -> None:
    page = comparison_page(finished().pk)
    (boots,) = page.boots.values()
    assert [(median.variant, median.line, median.extras) for median in boots.medians] == [
        ("base", "102 ns", {"block": 2}),
        ("p", "112 ns", {"block": 2}),
    ]
    assert [line["line"] for line in page.data["cases"][0]["lines"]] == ["102 ns", "112 ns"]


def test_a_comparison_without_measurements_is_empty_not_broken() -> None:
    page = comparison_page(make_grid().pk)
    assert page.data["cases"][0]["metrics"] == []
    assert [boots.medians for boots in page.boots.values()] == [()]


def test_verified_runs_are_in_the_comparison_with_what_they_counted() -> None:
    experiment = make_experiment()
    base = make_variant(experiment)
    case = make_case(experiment)
    run = make_run(base, case, purpose="verified")
    finish_builds(experiment)
    finish_run(run, extras={"find_inode_fast": {"null": 5}})
    boots = comparison_page(experiment.pk).boots[case.pk]
    assert [boot.extras for boot in boots.verified] == [{"find_inode_fast": {"null": 5}}]
    assert boots.medians == ()


def test_the_profile_page_has_the_shares_of_the_mail_side_by_side() -> None:
    experiment = finished()
    page = profile_page(experiment.pk, experiment.cases.get().pk)
    assert [column.variant for column in page.columns] == ["base", "p"]
    assert [column.base for column in page.columns] == [True, False]
    split = page.splits[0]
    assert split.symbols == ("down_read", "up_read")
    assert [round(cell.share, 2) for cell in split.total] == [0.68, 0.26]
    assert [(row.caller, [cell.share for cell in row.cells]) for row in split.rows] == [
        ("kernfs_iop_permission", [0.68, 0.26])
    ]
    top = page.symbols[0]
    assert (top.symbol, [cell.share for cell in top.own]) == ("memcpy", [0.32, 0.74])
    assert page.symbols[1].raw == ("down_read.isra.0",)


def test_with_one_profiled_boot_a_side_nothing_is_certain() -> None:
    experiment = finished()
    page = profile_page(experiment.pk, experiment.cases.get().pk)
    base, patched = page.columns
    assert base.doubt == ""
    assert "profile_boots" in patched.doubt
    assert not any(cell.certain or cell.low for row in page.symbols for cell in (*row.own, *row.total))


def test_other_symbols_can_be_asked_for() -> None:
    experiment = finished()
    page = profile_page(experiment.pk, experiment.cases.get().pk, asked=("memcpy",), rows=1)
    assert page.splits[0].rows[0].caller == "open"
    assert len(page.symbols) == 1


def test_a_profile_page_without_profiles_is_empty_not_broken() -> None:
    experiment = make_grid()
    page = profile_page(experiment.pk, experiment.cases.get().pk)
    assert (page.columns, page.symbols, page.splits) == ((), (), ())


def test_the_page_of_a_run_has_values_and_findings() -> None:
    experiment = make_grid(blocks=1)
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    finding = {"kind": "warning", "title": "WARNING: x", "line_no": 3, "excerpt": "e"}
    finish_run(run, {"ns_per_open": [3.0, 1.0, 2.0]}, findings=(finding,), console="/runs/1/console.log")
    page = run_page(run.pk)
    assert (str(page.row.variant), page.row.state, page.row.outcome) == ("base", "done", "finished")
    assert page.metrics[0].values == (3.0, 1.0, 2.0)
    assert page.metrics[0].warmups == 1
    assert page.row.findings[0]["title"] == "WARNING: x"
    assert str(page.console) == "/runs/1/console.log"
    assert (page.directory, page.profiles) == (None, ())


def test_the_page_of_a_build_lists_who_uses_it() -> None:
    experiment = make_grid()
    finish_builds(experiment)
    build = Build.objects.order_by("pk")[0]
    page = build_page(build.pk)
    assert [(use.experiment_id, use.name) for use in page.uses] == [(experiment.pk, "base")]
    assert (page.row.state, page.log) == ("built", None)


@pytest.mark.parametrize(
    "read", [experiment_page, comparison_page, run_page, build_page, progress, run_order, build_order]
)
def test_a_number_that_nothing_has_is_told(read: object) -> None:
    with pytest.raises(UnknownRow, match="999"):
        read(999)  # type: ignore[operator]


def test_a_case_of_another_experiment_has_no_profile_here() -> None:
    first, two = make_grid(), make_grid()
    with pytest.raises(UnknownRow, match="no case"):
        profile_page(first.pk, two.cases.get().pk)


def test_progress_tells_what_is_done_and_what_is_going_on() -> None:
    experiment = make_grid(blocks=2)
    first, second = experiment.variants.all()
    assert first.build
    assert second.build
    claimed_build(first.build)
    seen = progress(experiment.pk)
    assert (seen.state, seen.builds_over, seen.builds_total, seen.boots_total) == ("running", 0, 2, 4)
    assert [(a.kind, a.label) for a in seen.now] == [("build", "base")]
    assert seen.eta_s is None
    assert seen.percent == 0


def test_the_time_left_is_guessed_from_what_was_done_here() -> None:
    experiment = make_grid(blocks=4)
    finish_builds(experiment)
    runs = list(experiment.runs.order_by("position"))
    for run in runs[:3]:
        finish_run(run)
    now = timezone.now()
    Run.objects.filter(state="done").update(started_at=now - timedelta(seconds=9), finished_at=now)
    claimed_run(runs[3])
    seen = progress(experiment.pk)
    assert seen.eta_s == pytest.approx(5 * 9.0)
    assert seen.now[0].label == "p: showgids, boot 2"
    assert seen.percent == int(100 * (10 + 3) / 18)


def test_a_finished_experiment_has_nothing_left() -> None:
    seen = progress(finished().pk)
    assert (seen.finished, seen.percent, seen.eta_s, seen.now) == (True, 100, None, ())
    assert (seen.builds_done, seen.boots_done, seen.boots_failed) == (2, 12, 0)


def test_what_was_cancelled_is_over_and_did_not_fail() -> None:
    experiment = make_grid(blocks=2)
    finish_builds(experiment)
    finish_run(experiment.runs.order_by("position")[0])
    assert cancel_experiment(experiment.pk)
    seen = progress(experiment.pk)
    assert (seen.boots_done, seen.boots_failed, seen.boots_cancelled) == (1, 0, 3)
    assert seen.percent == 100


def test_a_form_offers_what_there_is() -> None:
    choices = submission_choices()
    assert choices.targets == ("guest",)
    assert set(choices.workloads) >= {"showgids", "stat-walk"}


def test_a_build_with_a_different_release_is_not_mixed_up() -> None:
    experiment = make_grid()
    base, patched = experiment.variants.all()
    assert base.build
    assert patched.build
    finish_build(base.build, release="6.1-ka")
    finish_build(patched.build, release="6.1-kb")
    released = {v.row.name: v.build.row.release for v in experiment_page(experiment.pk).variants if v.build}
    assert released == {"base": "6.1-ka", "p": "6.1-kb"}
