# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends as the pages read them: which boots are points, in which order, and what a step is attributed to."""

import pytest

from lab.comparisons.compare import compare_experiment
from lab.errors import UnknownRow
from lab.models import Experiment, Revision, Sample, Tree
from lab.models.states import Role, RunState, VariantState
from lab.tests.factories import make_build, make_case, make_experiment, make_run, make_variant
from lab.trends.page import trend_list, trend_page

pytestmark = pytest.mark.django_db


CONFIG = {"cc": "gcc"}


def measured(number: int, *boots: float, fragments: object = (), **fields: object) -> Experiment:
    """An experiment on revision `number` whose base boots took so long."""
    commit = f"{number:040x}"
    experiment = make_experiment(base_commit=commit, state="done", **fields)
    Revision.objects.get_or_create(
        tree=Tree.objects.get(name="tiny"),
        commit=commit,
        defaults={"position": number, "subject": f"change {number}", "author": "Ann <ann@example.org>"},
    )
    build = make_build(f"{experiment.pk}", request=CONFIG | {"fragments": fragments})
    base = make_variant(experiment, build=build, role=Role.BASE, state=VariantState.READY)
    case = make_case(experiment)
    Sample.objects.bulk_create(
        Sample(
            run=run, metric="ns_per_open", iteration=iteration, warmup=iteration == 0, value=value * factor
        )
        for block, value in enumerate(boots)
        for run in [make_run(base, case, block=block, state=RunState.DONE)]
        for iteration, factor in enumerate((3.0, 1.0, 1.0))
    )
    compare_experiment(experiment.pk)
    return experiment


def course(levels: list[float], step: int = 1) -> None:
    for number, level in enumerate(levels):
        measured(number * step, *(level + wobble for wobble in (-1.0, 0.0, 1.0, 0.5, -0.5)))


def test_points_are_in_the_order_of_the_history_not_of_the_measurements() -> None:
    measured(5, 105.0, 107.0)
    measured(2, 100.0, 102.0)
    (page,) = trend_list()
    assert [(point.revision.position, point.median, point.boots) for point in page.points] == [
        (2, 101.0, 2),
        (5, 106.0, 2),
    ]


def test_a_revision_measured_twice_is_one_point_of_all_its_boots() -> None:
    first, second = measured(1, 100.0), measured(1, 110.0)
    measured(2, 100.0)
    (page,) = trend_list()
    assert (page.points[0].boots, page.points[0].median) == (2, 105.0)
    assert page.points[0].experiments == (first.pk, second.pk)


def test_a_step_names_the_revisions_between_the_last_good_and_the_first_bad_one() -> None:
    course([100, 100, 100, 110, 110, 110], step=3)
    Revision.objects.create(
        tree=Tree.objects.get(name="tiny"), commit="e" * 40, position=8, subject="between", author="Bob <b@x>"
    )
    (page,) = trend_list()
    (step,) = page.steps
    assert (step.good.position, step.bad.position, step.verdict, step.pending) == (6, 9, "regression", False)
    assert [suspect.subject for suspect in step.suspects] == ["between", "change 9"]
    assert step.unlisted == 1
    assert step.ratio == pytest.approx(1.1)


def test_a_commit_of_another_branch_at_the_same_place_is_no_suspect() -> None:
    course([100, 100, 100, 110, 110, 110], step=3)
    tree = Tree.objects.get(name="tiny")
    known = (("a", 7, "ours"), ("b", 8, "ours or theirs"), ("c", 8, "theirs or ours"), ("d", 9, "theirs"))
    for digit, position, subject in known:
        Revision.objects.create(
            tree=tree, commit=digit * 40, position=position, subject=subject, author="Bob <b@x>"
        )
    (step,) = trend_list()[0].steps
    assert [suspect.subject for suspect in step.suspects] == ["ours", "change 9"]
    assert step.unlisted == 1


def test_a_commit_that_is_known_to_be_of_another_branch_is_no_suspect() -> None:
    course([100, 100, 100, 110, 110, 110], step=4)
    tree = Tree.objects.get(name="tiny")
    for digit, position, branch in (("a", 9, "stable"), ("b", 10, ""), ("c", 10, "stable"), ("d", 11, None)):
        Revision.objects.create(
            tree=tree, commit=digit * 40, position=position, subject=digit, author="", branch=branch
        )
    (step,) = trend_list()[0].steps
    assert [suspect.subject for suspect in step.suspects] == ["b", "d", "change 12"]
    assert step.unlisted == 1


def test_what_gets_better_is_an_improvement() -> None:
    course([100, 100, 100, 90, 90, 90])
    assert [step.verdict for step in trend_list()[0].steps] == ["improvement"]


def test_clocks_and_configs_are_trends_of_their_own() -> None:
    measured(1, 100.0)
    measured(2, 100.0)
    measured(1, 5000.0, clock="instructions")
    measured(2, 5000.0, clock="instructions")
    measured(3, 100.0, fragments=[["guest", "CONFIG_SMP=n\n"]])
    assert [(page.line.clock, len(page.points)) for page in trend_list()] == [
        ("wall", 2),
        ("instructions", 2),
    ]


def test_boots_outside_their_gates_and_of_candidates_do_not_count() -> None:
    measured(1, 100.0)
    experiment = measured(2, 100.0, 900.0)
    experiment.runs.filter(block=1).update(invalid=["steal"])
    candidate = make_variant(experiment, "p", role=Role.CANDIDATE, state=VariantState.READY)
    run = make_run(candidate, experiment.cases.get(), state=RunState.DONE)
    Sample.objects.create(run=run, metric="ns_per_open", iteration=1, value=500.0)
    compare_experiment(experiment.pk)
    (page,) = trend_list()
    assert (page.points[1].boots, page.points[1].median) == (1, 100.0)


def test_a_revision_without_a_place_is_counted_and_left_out() -> None:
    for number in (1, 2, 3):
        measured(number, 100.0)
    Revision.objects.get(position=2).delete()
    (page,) = trend_list()
    assert (len(page.points), page.unplaced) == (2, 1)


def test_one_revision_is_no_trend_yet_but_has_its_page() -> None:
    measured(1, 100.0)
    assert trend_list() == ()
    measured(2, 100.0)
    (page,) = trend_list()
    assert trend_page(page.line.key) == page


def test_an_unknown_trend_is_said_to_be_none() -> None:
    with pytest.raises(UnknownRow, match="no trend"):
        trend_page("nowhere")
