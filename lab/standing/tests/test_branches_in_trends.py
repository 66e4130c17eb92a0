# SPDX-License-Identifier: GPL-2.0-or-later
"""Two branches of one real repository are measured: each has its own trends, with its own steps and alerts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.comparisons.compare import compare_experiment
from lab.experiments.spec import spec_from_mapping
from lab.models import Experiment, Sample, Standing, Trend, User
from lab.models.states import Purpose, Role, RunState, VariantState
from lab.standing.alerts import raise_alerts
from lab.standing.changes import StandingFields, make_standing
from lab.standing.new_revisions import look
from lab.standing.tests.conftest import NOON
from lab.submission.submit import submit_experiment
from lab.tests.tiny_tree import git
from lab.trends.page import TrendPage, trend_list, trend_page
from lab.trends.summary import trend_summaries

pytestmark = [pytest.mark.django_db, pytest.mark.process]

STABLE = "linux-6.1.y"
Commit = Callable[[str, str], str]


@pytest.fixture
def commit_on(work: Path, commit: Callable[[str], str]) -> Commit:
    """Commit to a branch, which forks off main at the first call. The repository's default branch stays main."""

    def make(branch: str, subject: str) -> str:
        known = git(work, "branch", "--list", branch).strip()
        git(work, "checkout", "-q", *(() if known else ("-b",)), branch)
        made = commit(subject)
        git(work, "checkout", "-q", "main")
        return made

    return make


def measure(experiment: Experiment, level: float) -> None:
    """Let the base's boots of an experiment take so long, and compare it."""
    ground = experiment.runs.filter(variant__role__in=(Role.BASE, Role.AA), purpose=Purpose.MEASURED)
    metric = next(metric["name"] for metric in experiment.cases.get().metrics if metric["primary"])
    Sample.objects.bulk_create(
        Sample(run=run, metric=metric, iteration=1, value=level + run.position % 3) for run in ground
    )
    experiment.runs.update(state=RunState.DONE)
    experiment.variants.update(state=VariantState.READY)
    Experiment.objects.filter(pk=experiment.pk).update(state="done")
    compare_experiment(experiment.pk)
    Standing.objects.update(stale=True)


def look_and_measure(standing: Standing, level: float, home: Path) -> Experiment:
    outcome = look(standing_id=standing.pk, now=NOON, home=home)
    assert outcome is not None
    assert outcome.experiment is not None
    experiment = Experiment.objects.get(pk=outcome.experiment)
    measure(experiment, level)
    return experiment


def by_branch() -> Mapping[str, TrendPage]:
    pages = trend_list()
    assert len({page.line.branch for page in pages}) == len(pages)
    return {page.line.branch: page for page in pages}


def subjects(page: TrendPage) -> list[str]:
    return [point.revision.subject for point in page.points]


@pytest.fixture
def both(
    charlie: User, fields: Callable[..., StandingFields], commit_on: Commit, home: Path
) -> tuple[Standing, Standing]:
    """Six revisions of each branch; the stable one is slower, and gets slower still with its fourth."""
    commit_on("main", "m0")
    commit_on(STABLE, "s0")
    nightly = make_standing(by=charlie, fields=fields())
    stable = make_standing(by=charlie, fields=fields(name="stable", branch=STABLE))
    for number in range(6):
        commit_on("main", f"m{number + 1}")
        look_and_measure(nightly, 100.0, home)
        commit_on(STABLE, f"s{number + 1}")
        look_and_measure(stable, 200.0 if number < 3 else 260.0, home)
    return nightly, stable


def test_two_standing_experiments_on_two_branches_make_two_trends(both: tuple[Standing, Standing]) -> None:
    nightly, stable = both
    pages = by_branch()
    assert subjects(pages[""]) == [f"m{number}" for number in range(1, 7)]
    assert pages[""].steps == ()
    (step,) = pages[STABLE].steps
    assert (step.good.subject, step.bad.subject, step.verdict) == ("s3", "s4", "regression")
    assert subjects(pages[STABLE])[-6:] == [f"s{number}" for number in range(1, 7)]
    # The lists say the same.
    listed = {trend.line.branch: trend for trend in trend_summaries()}
    assert {branch: len(trend.steps) for branch, trend in listed.items()} == {"": 0, STABLE: 1}
    alerts = raise_alerts()
    assert [(alert.standing, alert.trend, alert.commit) for alert in alerts] == [
        (stable, pages[STABLE].line.key, step.bad.commit)
    ]
    assert not nightly.alerts.exists()


def test_suspects_of_a_step_are_commits_of_its_branch(
    charlie: User, fields: Callable[..., StandingFields], commit_on: Commit, home: Path
) -> None:
    nightly = make_standing(by=charlie, fields=fields())
    stable = make_standing(by=charlie, fields=fields(name="stable", branch=STABLE))
    for number in range(6):
        # Two revisions of main for one of stable, and another way round at the step of stable.
        commit_on("main", f"m{number}a")
        commit_on("main", f"m{number}b")
        if number == 3:
            commit_on(STABLE, "s3a")
        commit_on(STABLE, f"s{number}")
        look_and_measure(nightly, 100.0 if number < 3 else 130.0, home)
        look_and_measure(stable, 200.0 if number < 3 else 260.0, home)
    pages = by_branch()
    (step,) = pages[""].steps
    assert [suspect.subject for suspect in step.suspects] == ["m3a", "m3b"]
    (step,) = pages[STABLE].steps
    assert [suspect.subject for suspect in step.suspects] == ["s3a", "s3"]


@pytest.fixture
def submit(work: Path, home: Path, charlie: User) -> Callable[..., Experiment]:
    def once(base: str, level: float, **more: Any) -> Experiment:
        spec = {
            "name": "by hand",
            "git": str(work),
            "base": base,
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 3},
        }
        experiment = submit_experiment(spec=spec_from_mapping(spec), by=charlie, home=home, **more)
        measure(experiment, level)
        return experiment

    return once


def test_revisions_that_are_submitted_by_hand_go_to_the_trends_of_their_branches(
    commit_on: Commit, submit: Callable[..., Experiment]
) -> None:
    old = [commit_on("main", f"m{number}") for number in range(3)]
    stable = [commit_on(STABLE, f"s{number}") for number in range(4)]
    new = [commit_on("main", f"m{number}") for number in range(3, 7)]
    for commit in (*new[::-1], *old):
        submit(commit, 100.0)
    for number, commit in enumerate(stable):
        # By its id, and by the branch's name.
        submit(commit if number < 3 else STABLE, 150.0)
    pages = by_branch()
    assert subjects(pages[""]) == [f"m{number}" for number in range(7)]
    assert pages[""].steps == ()
    # Revisions before the fork belong to both branches.
    page = pages[STABLE]
    assert subjects(page) == [*(f"m{number}" for number in range(3)), *(f"s{number}" for number in range(4))]
    assert (page.shared, page.own) == (3, 4)
    assert [(step.good.subject, step.bad.subject) for step in page.steps] == [("m2", "s0")]


def test_a_point_before_the_fork_that_comes_later_is_in_both_trends_at_once(
    commit_on: Commit, submit: Callable[..., Experiment]
) -> None:
    old = [commit_on("main", f"m{number}") for number in range(3)]
    stable = [commit_on(STABLE, f"s{number}") for number in range(2)]
    new = [commit_on("main", f"m{number}") for number in range(3, 5)]
    for commit in (old[0], *stable):
        submit(commit, 100.0)
    trend_summaries()
    fresh = Trend.objects.filter(branch=STABLE, stale=False)
    assert fresh.exists()
    submit(new[-1], 100.0)
    # A revision after the fork does not concern the branch.
    assert fresh.exists()
    submit(old[2], 100.0)
    assert not fresh.exists()
    trend_summaries()
    row = Trend.objects.get(branch=STABLE, primary=True)
    assert (len(row.course), row.points) == (4, 2)
    assert subjects(trend_page(row.key)) == ["m0", "m2", "s0", "s1"]


def test_a_branch_that_is_rewritten_at_each_revision_stays_one_trend(
    charlie: User, fields: Callable[..., StandingFields], commit_on: Commit, work: Path, home: Path
) -> None:
    following = make_standing(by=charlie, fields=fields(name="next", branch="next"))
    for number in range(3):
        commit_on("main", f"m{number}")
        if number:
            git(work, "branch", "-D", "next")
        commit_on("next", f"n{number}")
        look_and_measure(following, 100.0, home)
    assert subjects(by_branch()["next"]) == ["n0", "n1", "n2"]


def test_a_revision_of_no_branch_any_more_stays_in_the_trend_of_the_default_branch(
    commit_on: Commit, submit: Callable[..., Experiment], work: Path
) -> None:
    commit_on("main", "m0")
    submit("main", 100.0)
    gone = commit_on("topic", "t0")
    git(work, "tag", "kept", gone)
    git(work, "branch", "-D", "topic")
    submit("kept", 100.0)
    assert {branch: subjects(page) for branch, page in by_branch().items()} == {"": ["m0", "t0"]}


def test_a_re_run_stays_on_the_branch_of_its_experiment(
    commit_on: Commit, submit: Callable[..., Experiment], work: Path
) -> None:
    commit_on("main", "m0")
    commit = commit_on("topic", "t0")
    first = submit(commit, 100.0)
    git(work, "merge", "-q", "--ff-only", "topic")
    again = submit(commit, 100.0, origin=first)
    assert (first.base_branch, again.base_branch) == ("topic", "topic")
    assert submit(commit, 100.0).base_branch == ""
