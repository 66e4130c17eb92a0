# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

from lab.comparisons.regressions import (
    RegressionFilter,
    decisions,
    regression_choices,
    regression_page,
    triage_states,
)
from lab.comparisons.triage import Decision, Regression, decide
from lab.models import Bisection, BisectionStep, Comparison, Experiment, User
from lab.models.states import Role
from lab.tests.factories import make_case, make_comparison, make_experiment, make_user, make_variant

pytestmark = pytest.mark.django_db


def slower(name: str = "x", metric: str = "ns_per_open", **fields: object) -> Comparison:
    experiment = make_experiment(name=name)
    make_variant(experiment)
    variant = make_variant(experiment, "p")
    return make_comparison(make_case(experiment), variant, metric=metric, **fields)


def settle(row: Comparison, state: str, by: User) -> None:
    on = Regression(row.case_id, row.variant_id, row.metric)
    history = decisions(on)
    said = Decision(state, f"it is {state}", "1da177e" if state == "fixed" else "")
    decide(by=by, on=on, decision=said, seen=history[0].id if history else None)


def names(**chosen: object) -> list[str]:
    page = regression_page(RegressionFilter(**chosen), 1)  # type: ignore[arg-type]
    return [line.experiment.name for line in page]


def test_the_list_holds_what_is_open_the_newest_first() -> None:
    alice = make_user("alice")
    for name, state in (("a", ""), ("b", "acknowledged"), ("c", "expected"), ("d", "fixed"), ("e", "new")):
        row = slower(name)
        if state:
            settle(row, state, alice)
    assert names() == ["e", "b", "a"]
    assert names(state="fixed") == ["d"]
    assert names(state="new") == ["e", "a"]
    assert names(state="all") == ["e", "d", "c", "b", "a"]


def test_the_newest_decision_counts() -> None:
    alice, row = make_user("alice"), slower("a")
    settle(row, "expected", alice)
    settle(row, "acknowledged", alice)
    (line,) = regression_page(RegressionFilter(), 1)
    assert (line.triaged, line.decided_by) == ("acknowledged", "alice")
    history = decisions(Regression(row.case_id, row.variant_id, row.metric))
    assert [(decision.state, decision.reason) for decision in history] == [
        ("acknowledged", "it is acknowledged"),
        ("expected", "it is expected"),
    ]
    assert triage_states(row.experiment_id) == {row.pk: "acknowledged"}


def test_improvements_controls_and_bisections_are_no_regressions() -> None:
    slower("better", verdict="improvement")
    noise = slower("noise")
    noise.variant.role = Role.AA
    noise.variant.save()
    searched = slower("searched")
    target = searched.experiment.target
    bisection = Bisection.objects.create(
        tree=searched.experiment.tree,
        target=target,
        line=[],
        boots=2,
        most_boots=4,
        iterations=1,
    )
    BisectionStep.objects.create(
        bisection=bisection, number=1, revision=0, boots=2, experiment=searched.experiment
    )
    BisectionStep.objects.create(bisection=bisection, number=2, revision=0, boots=2)
    slower("one")
    assert names(state="all") == ["one"]


def test_filters_narrow_the_list_and_search_looks_at_names() -> None:
    slower("first", metric="max_us", primary=False)
    slower("second")
    assert names() == ["second"]
    assert names(primary=False) == ["second", "first"]
    assert names(primary=False, search="MAX") == ["first"]
    assert names(search="SECOND") == ["second"]
    assert names(tree="tiny", target="guest", workload="showgids") == ["second"]
    assert names(tree="other") == names(target="metal") == names(workload="x") == []
    assert regression_choices().workloads == ("showgids",)


def test_a_page_beyond_the_last_is_the_last() -> None:
    for number in range(51):
        slower(f"{number}")
    page = regression_page(RegressionFilter(), 99)
    assert (page.number, [line.experiment.name for line in page]) == (2, ["0"])


def test_the_list_asks_as_often_for_fifty_as_for_one(django_assert_num_queries: object) -> None:
    slower()
    with django_assert_num_queries(2):  # type: ignore[operator]
        list(regression_page(RegressionFilter(), 1))
    for _ in range(20):
        slower()
    with django_assert_num_queries(2):  # type: ignore[operator]
        list(regression_page(RegressionFilter(), 1))
    assert Experiment.objects.count() == 21
